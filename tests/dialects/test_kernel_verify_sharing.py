"""Kernels that read an element which they have overwritten in the memory that arrays share."""

from __future__ import annotations

import itertools
import random

import pytest

import irc
from irc.dialects.kernel import verify_sharing as sharing
from irc.dialects.kernel.verify_sharing import Linear, _comes_to, _meet
from irc.ir.diagnostics import InvalidIR
from irc.ir.verifier import verify
from tests.dialects.verifying import check

PTR = "!kernel.ptr<f32>"


def cpu(body: str, grid: str = "64", inplace: str = "inplace = array<i64: 0, 1>, ") -> str:
    """A cpu kernel whose body runs for each %i; %x may be the memory of %y."""
    numbers = "".join(
        f"%c{n} = arith.constant {n} : index\n" for n in (0, 1, 8, 16, 32, 64)
    )
    return f"""kernel.func @k(%x: {PTR}, %y: {PTR}, %n: index, %begin: index, %end: index)
      attributes {{grid = #sym<{grid}>, {inplace}outputs = array<i64: 1>, symbols = ["n"],
      target = "cpu"}} {{ {numbers}
      %f = arith.constant 1.0 : f32
      %v = arith.constant dense<1.0> : vector<16xf32>
      %t = arith.cmpi slt, %n, %c8 : index
      %u = arith.cmpi slt, %n, %c16 : index
      kernel.for %i = %begin to %end step %c1 {{
        %next = arith.addi %i, %c1 : index
        %row = arith.muli %i, %n : index
        %wide = arith.muli %i, %c64 : index
        {body} kernel.yield }}
      kernel.return }}"""


def loop(variable: str, bounds: str, body: str) -> str:
    return f"kernel.for %{variable} = {bounds} {{ {body} kernel.yield }}"


def at(row: str, variable: str) -> str:
    return f"%p{variable} = arith.addi {row}, %{variable} : index\n"


def load(place: str, name: str = "l", kind: str = "f32", more: str = "") -> str:
    return f"%{name} = kernel.load %x[{place}]{more} : {kind}\n"


def store(place: str, value: str = "%f", kind: str = "f32", more: str = "") -> str:
    return f"kernel.store {value}, %y[{place}]{more} : {kind}\n"


WIDE = "vector<16xf32>"
AFTER = "reads argument 0 after storing there through argument 1"
EARLIER = "reads argument 0 where another pass of a loop stores through argument 1"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (cpu(load("%i") + store("%i")), None),
        (cpu(store("%i") + load("%i")), AFTER),
        (cpu(store("%i") + load("%i"), inplace=""), None),
        (cpu(store("%i") + "%p = arith.subi %next, %c1 : index\n" + load("%p")), AFTER),
        (cpu(load("%next") + store("%i")), EARLIER),
        (cpu(load("%i") + store("%next")), EARLIER),
        (cpu(load("%next") + store("%i"), "1"), None),
        (cpu(load("%next") + store("%i"), "n"), EARLIER),
        (cpu(load("%n") + store("%n")), EARLIER),
        (cpu(load("%n") + store("%n"), "1"), None),
        (cpu("%q = kernel.load %y[%i] : f32\n" + store("%i")), None),
    ],
)
def test_one_loop(text, error):
    check(text, error)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        # A row is read, then written.
        (cpu(loop("j", "%c0 to %n step %c1", at("%row", "j") + load("%pj"))
             + loop("k", "%c0 to %n step %c1", at("%row", "k") + load("%pk") + store("%pk"))),
         None),
        (cpu(loop("j", "%c0 to %n step %c1", at("%row", "j") + load("%pj") + store("%pj"))
             + loop("k", "%c0 to %n step %c1", at("%row", "k") + load("%pk"))), AFTER),
        # Other passes, of which nothing is known to be the same.
        (cpu(loop("j", "%c0 to %n step %c1", at("%row", "j") + store("%pj"))
             + loop("k", "%c8 to %n step %c1", at("%row", "k") + load("%pk"))), None),
        # What an inner loop has not come to yet may be read, what it has been at not.
        (cpu(loop("j", "%c0 to %c8 step %c1", at("%wide", "j") + store("%pj")
                  + "%m = arith.addi %pj, %c1 : index\n" + load("%m"))), None),
        (cpu(loop("j", "%c0 to %c8 step %c1", at("%wide", "j")
                  + "%m = arith.subi %pj, %c1 : index\n" + load("%m") + store("%pj"))), EARLIER),
        (cpu(loop("j", "%c0 to %c8 step %c8", at("%wide", "j")
                  + "%m = arith.subi %pj, %c8 : index\n" + load("%m") + store("%pj"))), None),
        # How often a loop runs may depend on the pass of the one around it.
        (cpu(loop("j", "%i to %c8 step %c1", at("%i", "j") + load("%pj") + store("%pj"))), None),
    ],
)  # fmt: skip
def test_loops_in_a_loop(text, error):
    check(text, error)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (cpu(loop("j", "%c0 to %c64 step %c32", at("%wide", "j") + store("%pj", "%v", WIDE)
                  + "%m = arith.addi %pj, %c16 : index\n" + load("%m", kind=WIDE)
                  + store("%m", "%v", WIDE))), None),
        (cpu(loop("j", "%c0 to %c64 step %c32", at("%wide", "j") + store("%pj", "%v", WIDE)
                  + "%m = arith.addi %pj, %c8 : index\n" + load("%m", kind=WIDE))), AFTER),
        (cpu(loop("j", "%c0 to %c64 step %c8", at("%wide", "j") + load("%pj", kind=WIDE)
                  + store("%pj", "%v", WIDE))), EARLIER),
        (cpu(loop("j", "%c0 to %c64 step %c16", at("%wide", "j") + load("%pj", kind=WIDE)
                  + store("%pj", "%v", WIDE))), None),
    ],
)  # fmt: skip
def test_vectors(text, error):
    check(text, error)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (cpu(store("%i", more=" (where %t)") + load("%i", more=" (where %t)")), AFTER),
        (cpu(store("%i", more=" (where %t)") + load("%i", more=" (where %u)")), None),
        (cpu(store("%i", more=" (where %t)") + load("%i")), AFTER),
        (cpu("kernel.if %t { " + store("%i") + "kernel.yield } else { " + load("%i")
             + "kernel.yield }"), None),
        (cpu("kernel.if %t { " + store("%i") + "kernel.yield } else { kernel.yield }"
             + load("%i")), AFTER),
        (cpu("kernel.if %t { " + store("%i") + load("%i") + "kernel.yield } else { kernel.yield }"),
         AFTER),
    ],
)  # fmt: skip
def test_masks_and_branches(text, error):
    check(text, error)


def gpu(body: str, grid: str = "n") -> str:
    """A gpu kernel of tiles of 256 elements; %x may be the memory of %y."""
    return f"""kernel.func @k(%x: {PTR}, %y: {PTR}, %n: index) attributes {{grid = #sym<{grid}>,
      inplace = array<i64: 0, 1>, outputs = array<i64: 1>, symbols = ["n"], target = "gpu"}} {{
      %v = arith.constant dense<1.0> : vector<256xf32>
      %c = arith.constant 256 : index
      %o = arith.constant dense<1> : vector<256xindex>
      %p = kernel.program_id : index
      %b = arith.muli %p, %c : index
      %l = kernel.iota : vector<256xindex>
      %s = kernel.splat %b : (index) -> vector<256xindex>
      %a = arith.addi %s, %l : vector<256xindex>
      %d = arith.addi %a, %o : vector<256xindex>
      {body} kernel.return }}"""


GATHER = "%g = kernel.gather %x[%a] : vector<256xf32>\n"
SCATTER = 'kernel.scatter %v, %y[%a] {combiner = "set"} : vector<256xf32>\n'


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (gpu(GATHER + SCATTER), None),
        (gpu(SCATTER + GATHER), AFTER),
        (gpu(GATHER.replace("%a", "%d") + SCATTER), "another program stores through argument 1"),
        (gpu(GATHER.replace("%a", "%d") + SCATTER, "1"), None),
        (gpu(GATHER.replace("%a", "%l") + SCATTER), None),
    ],
)
def test_programs(text, error):
    check(text, error)


# -- what is refused does read what it has overwritten

STEPS = {1: "%c1", 8: "%c8", 16: "%c16"}


def random_body(choose: random.Random) -> list[tuple]:
    """Accesses in one or two inner loops, or none: (kind, loop, factors of i and j, number)."""
    parts = []
    outers, alongs = choose.sample([0, 1, 8, 64], 2), choose.sample([0, 1, 1, 8], 2)
    for _ in range(choose.randint(1, 2)):
        bounds = choose.choice([None, (0, 16, 8), (0, 8, 1), (8, 32, 8), (0, 1, 1)])
        accesses = [
            (kind, choose.choice([outers[0], *outers]), choose.choice([alongs[0], *alongs]),
             choose.choice([0, 0, 1, 8, 16]), choose.choice([1, 16]))
            for kind in choose.choice([("load",), ("store",), ("load", "store"),
                                       ("store", "load")])
        ]  # fmt: skip
        parts.append((bounds, accesses))
    return parts


def text_of(parts: list[tuple], grid: int) -> str:
    lines, numbers = [], itertools.count()
    for bounds, accesses in parts:
        inner = []
        for kind, outer, along, number, lanes in accesses:
            k = next(numbers)
            inner.append(f"%a{k} = arith.constant {outer} : index\n"
                         f"%b{k} = arith.constant {along} : index\n"
                         f"%d{k} = arith.constant {number} : index\n"
                         f"%e{k} = arith.muli %i, %a{k} : index\n"
                         f"%g{k} = arith.addi %e{k}, %d{k} : index\n")  # fmt: skip
            place = f"%g{k}"
            if bounds is not None:
                inner.append(f"%h{k} = arith.muli %j, %b{k} : index\n"
                             f"%q{k} = arith.addi %g{k}, %h{k} : index\n")  # fmt: skip
                place = f"%q{k}"
            vector, type_ = ("%v", WIDE) if lanes > 1 else ("%f", "f32")
            inner.append(load(place, f"l{k}", type_) if kind == "load"
                         else store(place, vector, type_))  # fmt: skip
        body = "".join(inner)
        if bounds is not None:
            low, high, step = bounds
            lines.append(f"%low{len(lines)} = arith.constant {low} : index\n"
                         f"%high{len(lines)} = arith.constant {high} : index\n"
                         + loop("j", f"%low{len(lines)} to %high{len(lines)} step {STEPS[step]}",
                                body))  # fmt: skip
        else:
            lines.append(body)
    return cpu("".join(lines), str(grid))


def reads_what_it_wrote(parts: list[tuple], grid: int) -> bool:
    """Whether a load reads an element that was stored before, or in another pass of the outermost
    loop."""
    stored: list[tuple[int, int]] = []
    loaded: list[tuple[int, int, int]] = []
    for i in range(grid):
        for bounds, accesses in parts:
            for j in [0] if bounds is None else range(*bounds):
                for kind, outer, along, number, lanes in accesses:
                    place = outer * i + (0 if bounds is None else along * j) + number
                    if kind == "load":
                        loaded += [(p, i, len(stored)) for p in range(place, place + lanes)]
                    else:
                        stored += [(p, i) for p in range(place, place + lanes)]
    writers: dict[int, list[tuple[int, int]]] = {}
    for time, (place, i) in enumerate(stored):
        writers.setdefault(place, []).append((i, time))
    return any(
        other != i or time < when
        for place, i, when in loaded for other, time in writers.get(place, ())
    )  # fmt: skip


def test_refused_kernels_read_what_they_wrote():
    choose = random.Random(5)
    refused = wrong = 0
    for _ in range(400):
        parts, grid = random_body(choose), choose.choice([1, 2, 3])
        text = text_of(parts, grid)
        is_wrong = reads_what_it_wrote(parts, grid)
        wrong += is_wrong
        try:
            verify(irc.parse(text))
        except InvalidIR as error:
            assert "which may be the same memory" in str(error)
            assert is_wrong, text
            refused += 1
    assert refused > 60 and wrong < 250


LANES = """%two = arith.constant dense<2> : vector<256xindex>
  %far = arith.constant 512 : index
  %row = arith.muli %p, %far : index
  %base = kernel.splat %row : (index) -> vector<256xindex>
  %each = arith.muli %l, %two : vector<256xindex>
  %even = arith.addi %base, %each : vector<256xindex>
  %odd = arith.addi %even, %o : vector<256xindex>
"""


@pytest.mark.parametrize(
    ("stored", "loaded", "error"),
    [
        ("%even", "%even", AFTER),  # the very same places
        ("%even", "%odd", None),  # every second element: none in common
        ("%a", "%d", AFTER),  # consecutive ones: all but one in common
    ],
)
def test_lanes_that_are_apart(stored, loaded, error):
    body = SCATTER.replace("%a", stored) + GATHER.replace("%a", loaded)
    check(gpu(LANES + body), error)


def test_two_loads_of_one_place_may_differ():
    """What is read as a place is not known to be what was read there before."""
    places = """%j = kernel.load %z[%i] : i64
      %k = kernel.load %z[%i] : i64
      %p = arith.index_cast %j : i64 to index
      %q = arith.index_cast KIND : i64 to index
    """
    for other, error in (("%j", AFTER), ("%k", None)):
        text = cpu(places.replace("KIND", other) + store("%p") + load("%q"))
        text = text.replace(f"%y: {PTR}", f"%z: !kernel.ptr<i64>, %y: {PTR}")
        text = text.replace("inplace = array<i64: 0, 1>", "inplace = array<i64: 0, 2>")
        check(text.replace("outputs = array<i64: 1>", "outputs = array<i64: 2>"),
              error and error.replace("argument 1", "argument 2"))  # fmt: skip


TILES = """%r = kernel.iota : vector<8xindex>
  %k2 = arith.constant 2 : index
  %half = arith.divsi %n, %k2 : index
  %eight = arith.constant dense<8> : vector<8x8xindex>
  %one = arith.constant dense<1> : vector<8x8xindex>
  %seven = arith.constant dense<7> : vector<8xindex>
  %w = arith.constant dense<1.0> : vector<8x8xf32>
  %odd = arith.remsi %r, %seven : vector<8xindex>
  %row = kernel.expand %r {dims = array<i64: 0>} : (vector<8xindex>) -> vector<8x8xindex>
  %col = kernel.expand %r {dims = array<i64: 1>} : (vector<8xindex>) -> vector<8x8xindex>
  %odds = kernel.expand %odd {dims = array<i64: 0>} : (vector<8xindex>) -> vector<8x8xindex>
  %dodd = kernel.expand %odd {dims = array<i64: 1>} : (vector<8xindex>) -> vector<8x8xindex>
"""


def expanded(name: str, scalar: str) -> str:
    return f"""%{name}v = kernel.splat {scalar} : (index) -> vector<8xindex>
      %{name}e = kernel.expand %{name}v {{dims = array<i64: 1>}} : (vector<8xindex>) -> vector<8x8xindex>
      %{name}s = kernel.splat {scalar} : (index) -> vector<8x8xindex>
      %{name}r = arith.addi %{name}e, %row : vector<8x8xindex>
      %{name}q = arith.addi %{name}s, %row : vector<8x8xindex>
    """  # noqa: E501


@pytest.mark.parametrize(
    ("stored", "loaded", "error"),
    [
        ("%row", "%row", AFTER),
        ("%row", "%col", None),
        ("%odds", "%odds", AFTER),
        ("%odds", "%dodd", None),
        ("%nr", "%nq", AFTER),  # a scalar is one in whichever dimension it is spread
        ("%hr", "%hq", AFTER),
        ("%pr", "%pq", AFTER),
        ("%nr", "%hq", None),
        ("%nr", "%pr", None),
    ],
)
def test_lanes_of_tiles_are_along_their_dimensions(stored, loaded, error):
    body = TILES + expanded("n", "%n") + expanded("h", "%half") + expanded("p", "%p")
    body += f"kernel.scatter %w, %y[{stored}] : vector<8x8xf32>\n"
    body += f"%g2 = kernel.gather %x[{loaded}] : vector<8x8xf32>\n"
    check(gpu(body), error)


@pytest.mark.parametrize(
    ("stored", "loaded", "error"),
    [
        ("%b0", "%b1", "another program stores through argument 1"),
        # Of the part of the program's number that is divided nothing is known.
        ("%q0", "%q1", None),
    ],
)
def test_places_that_depend_on_the_program_otherwise(stored, loaded, error):
    body = """%k2 = arith.constant 2 : index
      %d2 = arith.divsi %p, %k2 : index
      %s2 = kernel.splat %d2 : (index) -> vector<256xindex>
      %b0 = arith.addi %s, %l : vector<256xindex>
      %b1 = arith.addi %b0, %o : vector<256xindex>
      %q0 = arith.addi %b0, %s2 : vector<256xindex>
      %q1 = arith.addi %b1, %s2 : vector<256xindex>
    """
    check(gpu(body + GATHER.replace("%a", loaded) + SCATTER.replace("%a", stored)), error)


@pytest.mark.parametrize(("length", "error"), [(3, AFTER), (64, AFTER), (65, None)])
def test_sums_are_followed_to_a_depth(length, error):
    chain = "".join(
        f"%s{k + 1} = arith.addi {f'%s{k}' if k else '%i'}, %c1 : index\n" for k in range(length)
    )
    far = f"%far = arith.constant {length} : index\n"
    far += "%there = arith.addi %i, %far : index\n"
    check(cpu(chain + far + store(f"%s{length}") + load("%there"), "1"), error)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (load("%next") + store("%i"), EARLIER),
        ("kernel.if %t { " + load("%next") + "kernel.yield } else { kernel.yield }\n"
         + store("%i"), None),
        (load("%next") + "kernel.if %t { " + store("%i")
         + "kernel.yield } else { kernel.yield }\n", None),
        (load("%next", more=" (where %t)") + store("%i", more=" (where %t)"), EARLIER),
        (load("%next", more=" (where %t)") + store("%i"), None),
    ],
)  # fmt: skip
def test_what_another_pass_stores_under_a_condition(body, error):
    check(cpu(body), error)


@pytest.mark.parametrize(
    ("made", "number"),
    [("%q = arith.index_cast %w : i64 to index", None), ("%q = arith.addi %n, %c0 : index", "n")],
)
def test_other_numbers_are_themselves(made, number):
    """What is no constant, no sum and no known value is a place of its own."""
    body = "%w = arith.index_cast %n : index to i64\n" + made + "\n"
    error = AFTER if number else None
    check(cpu(body + store("%q") + load("%n"), "1"), error)
    check(cpu(body + store("%q") + load("%q"), "1"), AFTER)



BOUNDS = """%least = arith.minsi %n, %c8 : index
  %two = arith.addi %c1, %c1 : index
"""


@pytest.mark.parametrize(
    ("bounds", "error"),
    [
        ("%c0 to %c8 step %c1", EARLIER),
        ("%c0 to %n step %c1", EARLIER),
        # How often these run is not known, nor how far they step.
        ("%c0 to %least step %c1", None),
        ("%least to %c8 step %c1", None),
        ("%c0 to %c8 step %two", None),
        ("%c0 to %c1 step %c1", None),  # once
        ("%c8 to %c0 step %c1", None),  # never
        ("%c0 to %n step %n", None),
    ],
)
def test_loops_whose_bounds_are_computed(bounds, error):
    body = loop("j", bounds, "%m = arith.addi %j, %c1 : index\n" + load("%j") + store("%m"))
    check(cpu(BOUNDS + body, "1"), error)


def test_stretches_and_passes_meet():
    """What is said of passes is what counting them gives."""
    for apart, moved, lanes, wide in itertools.product(range(-6, 7), (-3, -1, 0, 1, 2, 5),
                                                       (1, 3), (1, 4)):  # fmt: skip
        places = set(range(apart, apart + lanes))
        assert _meet(apart, lanes, 0, wide) == bool(places & set(range(wide)))
        assert _meet(apart, lanes, moved, wide) == bool(places & set(range(moved, moved + wide)))
        for passes in range(5):
            met = any(_meet(apart + k * moved, lanes, 0, wide) for k in range(1, passes + 1))
            assert _comes_to(apart, moved, passes, lanes, wide) == met


def test_sums_are_added_and_multiplied():
    one, other = Linear({"a": 2, "b": 1}, 3), Linear({"a": 2, "c": 5}, 1)
    assert one.plus(other, -1) == Linear({"b": 1, "c": -5}, 2)
    assert one.plus(other) == Linear({"a": 4, "b": 1, "c": 5}, 4)
    assert one.times(-2) == Linear({"a": -4, "b": -2}, -6) and one.times(0) == Linear({}, 0)


PRODUCTS = """%a1 = arith.muli %i, %c8 : index
  %a2 = arith.muli %c8, %i : index
  %a3 = arith.muli %i, %n : index
  %a4 = arith.muli %n, %i : index
  %a5 = arith.addi %a1, %n : index
  %a6 = arith.subi %a5, %n : index
  %a7 = arith.subi %c0, %i : index
"""


@pytest.mark.parametrize(
    ("stored", "loaded", "error"),
    [("%a1", "%a2", AFTER), ("%a3", "%a3", AFTER), ("%a3", "%a4", None), ("%a6", "%a1", AFTER),
     ("%a5", "%a1", None), ("%a7", "%i", None), ("%a7", "%a7", AFTER), ("%a1", "%i", None)],
)  # fmt: skip
def test_products_and_differences(stored, loaded, error):
    check(cpu(PRODUCTS + store(stored) + load(loaded), "1"), error)


@pytest.mark.parametrize(
    ("pairs", "place", "error"),
    [
        ("0, 2, 1, 3", ("y", "w"), "reads argument 1 after storing there through argument 3"),
        ("0, 2, 1, 3", ("x", "z"), "reads argument 0 after storing there through argument 2"),
        ("0, 2, 1, 3", ("x", "w"), None),
        ("0, 2, 1, 2", ("y", "z"), "reads argument 1 after storing there through argument 2"),
        ("0, 2", ("y", "w"), None),
    ],
)
def test_each_pair_is_looked_at(pairs, place, error):
    arguments = ", ".join(f"%{name}: {PTR}" for name in "xyzw")
    check(f"""kernel.func @k({arguments}) attributes {{target = "gpu",
      inplace = array<i64: {pairs}>, outputs = array<i64: 2, 3>}} {{
      %c = arith.constant 0 : index
      %f = arith.constant 1.0 : f32
      kernel.store %f, %{place[1]}[%c] : f32
      %l = kernel.load %{place[0]}[%c] : f32
      kernel.return }}""", error)  # fmt: skip


def test_prefetches_store_nothing():
    prefetch = f"kernel.prefetch %y, %i : ({PTR}, index)\n"
    check(cpu(prefetch + load("%i") + store("%i")), None)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (load("%i") + store("%i") + load("%i", "m"), AFTER),
        (load("%i") + load("%next", "m") + store("%i"), EARLIER),
        (load("%i") + load("%i", "w", WIDE) + store("%i"), EARLIER),
        (load("%i") + store("%i") + store("%next"), EARLIER),
        (load("%i", "w", WIDE) + store("%wide") + store("%i", "%v", WIDE), EARLIER),
        (load("%i") + store("%i") + loop("j", "%c0 to %c8 step %c1", load("%i", "m")), AFTER),
    ],
)
def test_pairs_that_are_not_alike_are_looked_at_each(body, error):
    check(cpu(body), error)


def test_pairs_that_are_alike_are_looked_at_once(monkeypatch):
    made = []
    count, init = 12, sharing._Pair.__init__

    def noted(pair, *parts):
        made.append(parts)
        init(pair, *parts)

    monkeypatch.setattr(sharing._Pair, "__init__", noted)
    names = [f"%x{k}" for k in range(count)] + [f"%y{k}" for k in range(count)]
    pairs = ", ".join(f"{a}, {count + b}" for a in range(count) for b in range(count))
    loads = "".join(f"%l{k} = kernel.load %x{k}[%c] : f32\n" for k in range(count))
    stores = "".join(f"kernel.store %l{k}, %y{k}[%c] : f32\n" for k in range(count))
    outputs = ", ".join(str(count + k) for k in range(count))
    check(f"""kernel.func @k({", ".join(f"{n}: {PTR}" for n in names)}) attributes {{target = "gpu",
      inplace = array<i64: {pairs}>, outputs = array<i64: {outputs}>}} {{
      %c = arith.constant 0 : index
      {loads}{stores}
      kernel.return }}""", None)  # fmt: skip
    assert len(made) == 1


CARRIED = """%d = arith.constant 2.0 : f32
  %r0 = kernel.for %j = %c0 to %n step %c1 iter_args(%a = %f) -> (f32) {{
    {0}
    kernel.yield %a : f32
  }}
  %r1 = kernel.for %k = %c0 to %n step %c1 iter_args(%b = %d) -> (f32) {{
    {1}
    kernel.yield %b : f32
  }}
"""


def test_loops_over_the_same_numbers_may_carry_others():
    first = at("%row", "j") + store("%pj")
    second = at("%row", "k") + load("%pk")
    check(cpu(CARRIED.format(first, second)), AFTER)
    other = "%n step %c1 iter_args(%b", "%c8 step %c1 iter_args(%b"
    check(cpu(CARRIED.format(first, second).replace(*other)), None)
    first, second = at("%row", "j") + load("%pj"), at("%row", "k") + store("%pk")
    check(cpu(CARRIED.format(first, second)), None)


def test_what_a_loop_carries_says_nothing_of_its_passes():
    body = """%o = kernel.load %x[%i] : f32
    %r0 = kernel.for %j = %c0 to %c8 step %c1 iter_args(%a = %o) -> (f32) {
      %l = kernel.load %x[%next] : f32
      kernel.store %f, %y[%i] : f32
      kernel.yield %a : f32
    }"""  # noqa: E501
    check(cpu(body), EARLIER)


@pytest.mark.parametrize("stored", [True, False])
def test_places_in_no_order_are_not_known_to_meet(stored):
    """All lanes at one place: how many elements are moved is not said."""
    places = "%s = kernel.splat %next : (index) -> vector<16xindex>\n"
    if stored:
        body = places + load("%i", kind=WIDE) + f"kernel.scatter %v, %y[%s] : {WIDE}\n"
    else:
        body = places + f"%l = kernel.gather %x[%s] : {WIDE}\n" + store("%i", "%v", WIDE)
    check(cpu(body), None)


def test_values_are_looked_through_only_so_deep():
    adds = "".join(f"%a{k + 1} = arith.addi %a{k}, %n : index\n" for k in range(70))
    module = irc.parse(cpu("%a0 = arith.muli %i, %n : index\n" + adds))
    sums = [op.results[0] for op in module.walk() if op.name == "arith.addi"][1:]
    assert sharing.key_of(sums[0], {}) != sums[0], "it is what it adds"
    assert sharing.key_of(sums[0], {}, sharing._DEEPEST) != sums[0]
    assert sharing.key_of(sums[0], {}, sharing._DEEPEST + 1) is sums[0]
    key, depth = sharing.key_of(sums[-1], {}), 0
    while isinstance(key, tuple):
        key, depth = key[4], depth + 1
    assert depth == sharing._DEEPEST + 1 and key is sums[-1 - depth]
