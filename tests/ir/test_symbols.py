"""Symbolic expressions: normal form, walks, ranges, simplification, text, bridge."""

from __future__ import annotations

import copy
import pickle
import random
import subprocess
import sys

import pytest

from irc.ir.symbols import (
    CeilQuotient,
    Dim,
    Expr,
    FloorQuotient,
    Range,
    SymbolError,
    SymbolSyntaxError,
    affine_parts,
    ceildiv,
    coefficient,
    dim_product,
    dim_sum,
    evaluate,
    evaluate_with,
    floordiv,
    fold,
    free_symbols,
    from_sympy,
    function,
    known_divisible,
    known_nonnegative,
    known_positive,
    maximum,
    minimum,
    mod,
    parse_dim,
    provable_le,
    range_of,
    simplify,
    statically_known_equal,
    substitute,
    symbol,
    to_sympy,
)

i, j, k, m = (symbol(name) for name in "ijkm")
s0, s1, s2, u0 = (symbol(name) for name in ("s0", "s1", "s2", "u0"))

DIVISORS: list[Dim] = [2, 3, 4, 6, 8, 12, -4, s0, s1 * 2, s0 + s1, s0 * s1, s0 * 4, s0 + 1, u0]


def random_dim(rng: random.Random, depth: int) -> Dim:
    if depth == 0 or rng.random() < 0.15:
        return rng.choice([i, j, s0, s1, u0, rng.randint(-6, 9)])
    kind = rng.choice(["add", "add", "sub", "mul", "floordiv", "mod", "ceildiv", "min", "max"])
    a = random_dim(rng, depth - 1)
    if kind in ("floordiv", "mod", "ceildiv"):
        b = rng.choice(DIVISORS)
        if isinstance(b, Expr) and rng.random() < 0.5:
            a = a * b + random_dim(rng, depth - 1)
        return {"floordiv": floordiv, "mod": mod, "ceildiv": ceildiv}[kind](a, b)
    b = random_dim(rng, depth - 1)
    if kind == "add":
        return a + b
    if kind == "sub":
        return a - b
    if kind == "mul":
        return a * b
    return minimum(a, b) if kind == "min" else maximum(a, b)


def random_value(rng: random.Random, depth: int, env: dict[str, int]) -> tuple[Dim, int]:
    """An expression built step by step beside its value computed on Python ints."""
    if depth == 0 or rng.random() < 0.15:
        x = rng.choice([i, j, s0, s1, rng.randint(-6, 9)])
        return x, env[str(x)] if isinstance(x, Expr) else x
    kind = rng.choice(["+", "+", "-", "*", "//", "//", "%", "%", "ceil", "min", "max"])
    a, x = random_value(rng, depth - 1, env)
    if kind in ("//", "%", "ceil"):
        b = rng.choice([2, 3, 4, 6, 8, 12, -4, s0, s1 * 2, s0 + s1])
        y = b if isinstance(b, int) else {s0: env["s0"], s1 * 2: env["s1"] * 2}.get(b)
        y = env["s0"] + env["s1"] if y is None else y
        if kind == "//":
            return a // b, x // y
        return (a % b, x % y) if kind == "%" else (ceildiv(a, b), -(-x // y))
    b, y = random_value(rng, depth - 1, env)
    if kind == "+":
        return a + b, x + y
    if kind == "-":
        return a - b, x - y
    if kind == "*":
        return a * b, x * y
    return (minimum(a, b), min(x, y)) if kind == "min" else (maximum(a, b), max(x, y))


# Normal form ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_normal_form_keeps_the_value_and_the_text_reads_back(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(1500):
        env = {"i": rng.randint(-9, 9), "j": rng.randint(-9, 20)}
        env |= {"s0": rng.randint(1, 9), "s1": rng.randint(1, 5)}
        d, value = random_value(rng, 4, env)
        assert evaluate(d, env) == value, str(d)
        assert statically_known_equal(parse_dim(str(d)), d), str(d)
        assert type(d) is int or isinstance(d, Expr)


@pytest.mark.parametrize(
    ("d", "expected"),
    [
        ((2 * i) // 2, i),
        ((2 * i + 4) // 2, i + 2),
        ((6 * i + j) % 3, j % 3),
        (i // 1, i),
        (i % 1, 0),
        (i - i, 0),
        (0 * i, 0),
        (i * j - j * i, 0),
        ((i + 1) * (i - 1), i * i - 1),
        ((4 * i + 2) // 4, i),
        ((4 * i + 6) % 4, 2),
        ((4 * i + 6 * j) // 8, (2 * i + 3 * j) // 4),
        ((4 * i + 5) % 8, (i + 1) % 2 * 4 + 1),
        (i // 4 // 8, i // 32),
        ((i // 4 + 3) // 8, (i + 12) // 32),
        ((i % 64) // 8, i // 8 % 8),
        (i % 64 % 8, i % 8),
        ((i % 64 + j) % 8, (i + j) % 8),
        (i // -4, (-i) // 4),
        ((i * 4) // (s0 * 2), (i * 2) // s0),
        ((i * 4) % (s0 * 2), (i * 2) % s0 * 2),
        (0 // s0, 0),
        (ceildiv(s0 * 4, 2), s0 * 2),
        (ceildiv(s0, 128), (s0 + 127) // 128),
        (minimum(i, i + 3), i),
        (maximum(i, i + 3, j, 2, 5), maximum(5, j, i + 3)),
        (minimum(j, minimum(i, 4), 7), minimum(4, i, j)),
        (minimum(2, 3), 2),
        (dim_product([2, s0, s1 + 1, 3]), s0 * s1 * 6 + s0 * 6),
        (dim_product([]), 1),
        (dim_sum([i, 1, j, -1, i]), i * 2 + j),
        (7 - i, -i + 7),
        (True + i, i + 1),
        (function("min", i, 3), minimum(i, 3)),
    ],
)
def test_normal_form_identities(d: Dim, expected: Dim) -> None:
    assert statically_known_equal(d, expected), f"{d} is not {expected}"


def test_a_symbolic_divisor_cancels_only_under_simplify() -> None:
    assert isinstance((i * s0) // s0, FloorQuotient)
    assert simplify((i * s0) // s0, {}) is i


def test_constants_are_plain_ints() -> None:
    for d in (i - i + 3, floordiv(7, 2), mod(-7, 4), ceildiv(7, 2), minimum(4, True)):
        assert type(d) is int


def test_equality_is_identity_and_expressions_are_immutable() -> None:
    d = s0 * 4 + i
    assert d is i + 4 * s0 and d == i + 4 * s0 and d != s0 * 4
    assert copy.deepcopy(d) is d and pickle.loads(pickle.dumps(d)) is d
    with pytest.raises(AttributeError):
        d.order = "x"
    with pytest.raises(TypeError):
        type(d)()
    with pytest.raises(TypeError):
        d < 3  # noqa: B015
    for wrong in (1.0, "s0", None):
        with pytest.raises(TypeError):
            i + wrong
        with pytest.raises(TypeError):
            i * wrong


def test_division_by_zero_raises() -> None:
    for make in (floordiv, mod):
        with pytest.raises(ZeroDivisionError):
            make(i, 0)
    with pytest.raises(ZeroDivisionError):
        ceildiv(i, 0)


def test_order_is_the_same_in_every_process() -> None:
    script = (
        "import random; from irc.ir.symbols import *\n"
        "names = [f's{n}' for n in range(12)]; random.shuffle(names)\n"
        "parts = {n: symbol(n) for n in names}\n"
        "print(dim_sum(parts[n] * parts['s3'] + parts[n] // 3 for n in names))"
    )
    runs = {
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout
        for _ in range(2)
    }
    (text,) = runs
    assert text.index("s2*s3") < text.index("s3*s10")


def test_size_and_depth_are_bounded() -> None:
    d: Dim = i
    with pytest.raises(SymbolError, match="nested"):
        for _ in range(300):
            d = function("f", d)
    wide = dim_sum(symbol(f"w{n}") for n in range(300))
    with pytest.raises(SymbolError):
        wide * wide * wide
    shared: Dim = i
    for _ in range(100):
        shared = function("f", shared, shared)
    assert len(shared.order) < 1000
    assert substitute(shared, {"i": j}) is not shared
    with pytest.raises(SymbolError):
        symbol("a b")


# Walks ------------------------------------------------------------------------------------


def test_free_symbols_and_substitute() -> None:
    d = (i * s0 + j) // 4 + minimum(k, 3)
    assert free_symbols(d) == {"i", "s0", "j", "k"} and free_symbols(3) == frozenset()
    assert substitute(d, {"q": 1}) is d
    assert substitute(i * 2 + j, {"i": j, "j": i}) is j * 2 + i
    assert substitute(d, {"i": 1, "s0": 6, "j": 2, "k": 9}) == 5


@pytest.mark.parametrize("seed", range(2))
def test_substitution_agrees_with_evaluation(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(800):
        d = random_dim(rng, 3)
        mapping = {"i": random_dim(rng, 2), "s0": rng.choice([4, s1 + 1])}
        env = {name: rng.randint(1, 9) for name in ("i", "j", "s0", "s1", "u0")}
        try:
            inner = {name: evaluate(value, env) for name, value in mapping.items()}
            expected = evaluate(d, env | inner)
            result = evaluate(substitute(d, mapping), env)
        except ZeroDivisionError:
            continue
        assert result == expected, f"{d} with {mapping}"


def test_fold_and_evaluate_with() -> None:
    d = (i * 4 + j) // s0 + maximum(i, j, 1) - 2
    text = fold(d, str, lambda name, *args: f"{name}({','.join(args)})")
    assert text == "add(add(floordiv(add(mul(i,4),j),s0),max(max(i,j),1)),-2)"
    operations = {
        "add": lambda a, b: a + b,
        "mul": lambda a, b: a * b,
        "floordiv": lambda a, b: a // b,
        "max": max,
    }
    assert evaluate_with(d, {"i": 3, "j": 5, "s0": 4}, operations) == 7
    with pytest.raises(SymbolError, match="mod"):
        evaluate_with(i % 3, {"i": 3}, operations)
    with pytest.raises(SymbolError, match="mystery"):
        evaluate(function("mystery", i), {"i": 1})


def test_coefficient_and_affine_parts() -> None:
    d = i * s0 * 4 + j + k * 3 + s1 // 2 + 7
    assert coefficient(d, "i") is s0 * 4
    assert coefficient(d, "j") == 1 and coefficient(d, "m") == 0
    assert coefficient(d, "s1") is None and coefficient(i * i, "i") is None
    assert coefficient(i * (i // 2), "i") is None
    assert coefficient((i + 1) * s0, "s0") is i + 1
    parts = affine_parts(d, ["i", "j", "k", "m"])
    assert parts == ({"i": s0 * 4, "j": 1, "k": 3, "m": 0}, s1 // 2 + 7)
    assert affine_parts(i * j, ["i", "j"]) is None
    assert affine_parts(i % 2, ["i"]) is None
    assert affine_parts(5, ["i"]) == ({"i": 0}, 5)


# Ranges and facts -------------------------------------------------------------------------


def test_ranges() -> None:
    ranges = {"i": Range(0, 9), "j": Range(-3, 4), "u0": Range()}
    assert range_of(i * 2 - j, ranges) == Range(-4, 21)
    assert range_of(i * j, ranges) == Range(-27, 36)
    assert range_of(j * j, ranges) == Range(0, 16)
    assert range_of(i // 4, ranges) == Range(0, 2)
    assert range_of(j % 8, ranges) == Range(0, 7)
    assert range_of(i % 64, ranges) == Range(0, 9)
    assert range_of(s0 * s1 + 1, ranges) == Range(1, None)
    assert range_of(i // s0, ranges) == Range(0, 9)
    assert range_of(i // u0, ranges) == Range(None, None)
    assert range_of(minimum(s0, 8)) == Range(0, 8)
    assert range_of(maximum(s0, 8)) == Range(8, None)
    with pytest.raises(ValueError, match="empty"):
        Range(3, 2)


def test_facts() -> None:
    assert known_nonnegative(s0 * s1) and not known_nonnegative(s0 - 1)
    assert not known_nonnegative(u0, {"u0": Range()})
    assert known_positive(s0 * s1 + 1) and not known_positive(s0)
    assert known_positive(s0 * s1, {"s0": Range(1), "s1": Range(2)})
    assert known_nonnegative(s0 * s1 - s0, {"s1": Range(1)})
    assert known_nonnegative(maximum(s0, 1) * s1 - s1)
    assert provable_le(i * s0 + j, s1 * s0 - 1, {}, {"i": s1, "j": s0})
    assert not provable_le(i * s0 + j, s1 * s0 - 2, {}, {"i": s1, "j": s0})
    assert provable_le(s0 // 2 * 4, s0 * 4) and not provable_le(s0 // 2 * 2 + 1, s0)
    assert provable_le((s0 + 1) // 2, s0, {"s0": Range(1)})
    assert not provable_le((s0 + 1) // 2 * 2, s0)
    assert provable_le(s0 // 2 * s1, s0 * s1) and not provable_le(s0 * s1, s0 // 2 * s1)
    assert known_divisible(s0 * 8 + 16, 8) and not known_divisible(s0 * 8 + 4, 8)
    assert known_divisible(maximum(s0 * 4, 8) * s1, 4) and known_divisible(s0 * 8 % 32, 8)
    assert known_divisible(s0 * s1 + s0, s0) and not known_divisible(s0 + 1, s0)
    assert not known_divisible(s0, 0)


@pytest.mark.parametrize("seed", range(4))
def test_simplify_and_ranges_are_sound(seed: int) -> None:
    rng = random.Random(seed)
    changed = 0
    for _ in range(900):
        d = random_dim(rng, 4)
        extents = rng.choice([{"i": s0, "j": s1}, {"i": s0 * s1, "j": 4}, {"j": s0 + 1}, {}])
        ranges = {"u0": Range(-5, rng.choice([5, None])), "s1": rng.choice([Range(0), Range(2, 4)])}
        simple = simplify(d, ranges, extents)
        changed += simple is not d
        interval = range_of(d, ranges)
        proven = provable_le(0, d, ranges, extents)
        for _ in range(10):
            env = {"s0": rng.randint(0, 5), "s1": rng.randint(2, 4), "u0": rng.randint(-5, 5)}
            counts = {a: evaluate(extents[a], env) if a in extents else 10 for a in "ij"}
            if min(counts.values()) <= 0:
                continue
            env |= {axis: rng.randrange(count) for axis, count in counts.items()}
            try:
                value = evaluate(d, env)
            except ZeroDivisionError:
                continue
            assert evaluate(simple, env) == value, f"{d} -> {simple} at {env}, {extents}"
            assert value in interval, f"{d} at {env}"
            assert not proven or value >= 0, f"{d} at {env}"
    assert changed > 100


# Simplification ---------------------------------------------------------------------------

FLAT = (i * s1 + j) * s2 + k
FLAT_EXTENTS = {"i": s0, "j": s1, "k": s2}
HEADS = (i * s0 + j) * 768 + k * 64 + m
HEADS_EXTENTS = {"i": s1, "j": s0, "k": 12, "m": 64}


@pytest.mark.parametrize(
    ("d", "extents", "expected"),
    [
        ((i * 128 + j) // 128, {"j": 128}, i),
        ((i * 128 + j) % 128, {"j": 128}, j),
        ((i * s0 + j) // s0, {"j": s0}, i),
        ((i * s0 + j) % s0, {"j": s0}, j),
        (i // 128 * 128 + i % 128, {}, i),
        (i // s0 * s0 + i % s0, {}, i),
        ((i // s0) // s1, {}, i // (s0 * s1)),
        ((i % (s0 * s1)) // s0, {}, (i // s0) % s1),
        ((i // s0) % s1 * s0 + i % s0, {}, i % (s0 * s1)),
        (i // 4096 * 4096 + i // 64 % 64 * 64 + i % 64, {}, i),
        (i // (s1 * 64) * s1 * 64 + i // 64 % s1 * 64 + i % 64, {}, i),
        (s2 * (i // s0) * s0 + s2 * (i % s0), {}, i * s2),
        ((i * 128 + j) // 256, {"j": 128}, i // 2),
        ((i * 128 + j) % 256, {"j": 128}, i % 2 * 128 + j),
        ((i * s0 + j) // (s0 * 2), {"j": s0}, i // 2),
        (FLAT // (s1 * s2), FLAT_EXTENTS, i),
        (FLAT // s2, FLAT_EXTENTS, i * s1 + j),
        (FLAT // s2 % s1, FLAT_EXTENTS, j),
        (FLAT % (s1 * s2) // s2, FLAT_EXTENTS, j),
        (FLAT % (s1 * s2), FLAT_EXTENTS, j * s2 + k),
        (FLAT % s2, FLAT_EXTENTS, k),
        (HEADS // (s0 * 768), HEADS_EXTENTS, i),
        (HEADS // 768 % s0, HEADS_EXTENTS, j),
        (HEADS % 768 // 64, HEADS_EXTENTS, k),
        (HEADS // 64 % 12, HEADS_EXTENTS, k),
        (HEADS % 64, HEADS_EXTENTS, m),
        (HEADS % 768, HEADS_EXTENTS, k * 64 + m),
        ((i * (s0 + 1) + j) // (s0 + 1), {"j": s0 + 1}, i),
        ((i * (s0 + 1) + j) % (s0 + 1), {"j": s0 + 1}, j),
        ((s0 - 1 - i) // s0, {"i": s0}, 0),
        ((s0 - 1 - i) % s0, {"i": s0}, s0 - 1 - i),
        (minimum(i, s0 - 1), {"i": s0}, i),
        (maximum(0, i), {}, i),
        ((i - 5) // 64, {"i": 5}, -1),
        (ceildiv(i * s0 + j + 1, s0), {"j": s0}, i + 1),
        (i % s0, {"i": s0 + 1}, i % s0),
        ((i * s0 + j) // s0, {"j": s0 * 2}, i + j // s0),
    ],
)
def test_reshape_arithmetic_vanishes(d: Dim, extents: dict[str, Dim], expected: Dim) -> None:
    simple = simplify(d, {}, extents)
    assert statically_known_equal(simple, expected), f"{d} became {simple}"


def test_simplify_uses_ranges() -> None:
    assert simplify(i // 128, {"i": Range(128, 255)}) == 1
    assert simplify(i % 128, {"i": Range(128, 255)}) is i - 128
    assert simplify(minimum(i, 8), {"i": Range(0, 8)}) is i
    assert simplify(maximum(s0, s1), {"s0": Range(8), "s1": Range(0, 8)}) is s0
    # A divisor of unknown sign cancels nothing.
    assert simplify((i * u0) // u0, {"u0": Range()}) is (i * u0) // u0


# Text -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("d", "text"),
    [
        (s0 * 4 + 1, "s0*4 + 1"),
        (s0 // 2, "floordiv(s0, 2)"),
        (s0 % 8, "mod(s0, 8)"),
        (minimum(s1, s0, 3), "min(s0, s1, 3)"),
        (maximum(s0, 1), "max(s0, 1)"),
        (ceildiv(s0, 128), "ceildiv(s0, 128)"),
        (ceildiv(s0, s1), "ceildiv(s0, s1)"),
        (-i, "-i"),
        (3 - i * 2 - j * s0, "-i*2 - j*s0 + 3"),
        (function("pow", 2, s0 + 1) * 2, "pow(2, s0 + 1)*2"),
        (function("now"), "now()"),
        (symbol("s10") + symbol("s9"), "s9 + s10"),
        (symbol("mod") + mod(i, 2), "mod + mod(i, 2)"),
        (-5, "-5"),
    ],
)
def test_text(d: Dim, text: str) -> None:
    from irc.ir.symbols import format_dim

    assert format_dim(d) == text
    assert statically_known_equal(parse_dim(text), d)


def test_parser_accepts_parentheses_and_spaces() -> None:
    assert parse_dim(" ( i+1 )*2 - -3 ") is i * 2 + 5
    assert parse_dim("2*(i - (j - 1))*s0") is (i - j + 1) * s0 * 2
    assert isinstance(parse_dim("ceildiv(i, s0)"), CeilQuotient)


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("", 0),
        ("s0 +", 4),
        ("s0 s1", 3),
        ("(s0", 3),
        ("mod(s0)", 0),
        ("1 + mod(s0, 0)", 4),
        ("min()", 0),
        ("f(s0,)", 5),
        ("s0 // 2", 3),
        ("s0 >= 1", 3),
        ("s\u00e9", 1),
        ("3s0", 1),
        ("__import__('os')", 11),
        ("1" * 101, 0),
        ("1" * (1 << 17), 1 << 16),
        ("a" * 300, 0),
        ("(" * 100000, 1 << 16),
        ("(" * 5000, 200),
        ("f(" * 5000 + "1", 400),
    ],
)
def test_bad_text_is_refused_with_its_place(text: str, offset: int) -> None:
    with pytest.raises(SymbolSyntaxError) as caught:
        parse_dim(text)
    assert caught.value.offset == offset


def test_hostile_text_ends_quickly() -> None:
    with pytest.raises(SymbolSyntaxError):
        parse_dim("*".join(["(a+b+c+d+e+f+g+h+1)"] * 60))
    with pytest.raises(SymbolSyntaxError):
        parse_dim("*".join(["x"] * 5000))
    assert parse_dim("-" * 60000 + "x") is symbol("x")
    assert parse_dim("+".join(["x"] * 20000)) is symbol("x") * 20000


def test_the_deepest_expression_is_handled_near_the_recursion_limit() -> None:
    d: Dim = i
    for level in range(100):
        d = maximum(floordiv(d * s0 + level, s1) * 2, 5)

    def at_depth(frames: int) -> None:
        if frames:
            return at_depth(frames - 1)
        assert parse_dim(str(d)) is d
        assert substitute(d, {"i": j}) is not d
        assert evaluate(d, {"i": 1, "s0": 1, "s1": 2}) > 0
        assert range_of(d).lo == 5
        assert isinstance(simplify(d, {"s0": Range(1)}), Expr)

    at_depth(600)


# Sympy ------------------------------------------------------------------------------------


def test_sympy_expressions_are_read() -> None:
    sympy = pytest.importorskip("sympy")
    a, b = sympy.symbols("s0 s1", integer=True, positive=True)
    assert from_sympy(a**2 * 3 - b + 1) is s0 * s0 * 3 - s1 + 1
    assert from_sympy(sympy.floor(a / 2 + b / 3)) is (s0 * 3 + s1 * 2) // 6
    assert from_sympy(sympy.ceiling(a / 4)) is ceildiv(s0, 4)
    assert from_sympy(sympy.floor(a / b)) is s0 // s1
    assert from_sympy(sympy.Max(3, a)) is maximum(s0, 3)
    assert from_sympy(sympy.Integer(7)) == 7 and from_sympy(3) == 3
    assert from_sympy(a + 1, name_of=lambda s: s.name + "_x") is symbol("s0_x") + 1
    for wrong in (a / 2, sympy.Float(1.5), sympy.oo, sympy.sin(a), sympy.nan):
        with pytest.raises(SymbolError):
            from_sympy(wrong)


def test_torch_functions_are_read() -> None:
    pytest.importorskip("torch")
    import sympy
    from torch.utils._sympy import functions as f

    a, b = sympy.symbols("s0 s1", integer=True, positive=True)
    assert from_sympy(f.FloorDiv(a + 1, 2)) is (s0 + 1) // 2
    assert from_sympy(f.CleanDiv(a, b)) is s0 // s1
    assert from_sympy(f.Mod(a, 8)) is s0 % 8 and from_sympy(f.PythonMod(a, b)) is s0 % s1
    assert from_sympy(f.ModularIndexing(a, 4, b)) is s0 // 4 % s1
    assert from_sympy(f.PowByNatural(a, 3)) is s0 * s0 * s0
    assert from_sympy(f.Max(a, 4)) is maximum(s0, 4)
    assert str(from_sympy(f.Where(a < 3, a, b))) == "where(lt(s0, 3), s0, s1)"
    scaled = from_sympy(f.TruncToInt(f.FloatTrueDiv(f.ToFloat(a), f.ToFloat(b)) * 2.5))
    assert evaluate(scaled, {"s0": 7, "s1": 2}) == 8
    tenth = from_sympy(f.FloorToInt(f.ToFloat(a) * 0.1))
    assert [evaluate(tenth, {"s0": n}) for n in (9, 30, 1000)] == [0, 3, 100]
    assert evaluate(from_sympy(f.CeilToInt(f.IntTrueDiv(a, 3))), {"s0": 7}) == 3


def test_sympy_round_trip_keeps_the_value() -> None:
    pytest.importorskip("sympy")
    for d in (5, s0, s0 * 4 - s1, s0 // 3, ceildiv(s0, 3) * s1, s0 % s1, maximum(s0, 3, s1)):
        back = from_sympy(to_sympy(d))
        for env in ({"s0": 5, "s1": 3}, {"s0": 12, "s1": 7}):
            assert evaluate(back, env) == evaluate(d, env)
    assert from_sympy(to_sympy(function("opaque", s0 + 1))) is function("opaque", s0 + 1)


def test_symbols_need_only_the_standard_library() -> None:
    script = "import sys, irc.ir.symbols; print(sorted({'torch', 'sympy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_the_block_of_a_place_is_below_the_number_of_blocks() -> None:
    m, s = symbol("m"), symbol("s")
    for block in (1, 7, 32):
        assert provable_le(floordiv(m, block) + 1, ceildiv(s, block), {}, {"m": s})
        assert not provable_le(floordiv(m, block) + 2, ceildiv(s, block), {}, {"m": s})
    assert not provable_le(floordiv(m, 16) + 1, ceildiv(s, 32), {}, {"m": s})
    assert not provable_le(floordiv(m + 1, 32) + 1, ceildiv(s, 32), {}, {"m": s})
