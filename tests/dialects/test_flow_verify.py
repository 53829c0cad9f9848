"""What fits the functions that control flow and calls name, and what just does not."""

from __future__ import annotations

import pytest

import irc
from irc.dialects.func.calls import called_by, is_called
from irc.ir.diagnostics import InvalidIR
from irc.ir.verifier import verify
from tests.dialects.verifying import check

T, XS = "tensor<4xf32>", "tensor<6x4xf32>"


def declared(name: str, inputs: str, results: str) -> str:
    """A function that is only declared."""
    arguments = ", ".join(f"%a{k}: {kind}" for k, kind in enumerate(_split(inputs)))
    return f"func.func private @{name}({arguments}) -> ({results})\n"


def _split(kinds: str) -> list[str]:
    return [k.strip() for k in kinds.split(";") if k.strip()]


def program(body: str, arguments: str, *functions: tuple[str, str, str]) -> str:
    given = ", ".join(f"%{name}: {kind}" for name, kind in
                      (part.split("=") for part in _split(arguments)))  # fmt: skip
    made = "".join(declared(name, inputs, ", ".join(_split(results)))
                   for name, inputs, results in functions)  # fmt: skip
    return (f'func.func @main({given}) attributes {{level = "graph"}} {{\n{body}\nfunc.return\n}}\n'
            + made)  # fmt: skip


def cond(kind: str, result: str, then: tuple[str, str], otherwise: tuple[str, str]) -> str:
    body = f"%y = flow.cond %c, %x {{otherwise = @g, then = @f}} : (i1, {kind}) -> {result}"
    return program(body, f"c=i1; x={kind}", ("f", *then), ("g", *otherwise))


@pytest.mark.parametrize(
    ("kind", "inputs", "results", "error"),
    [
        (T, T, T, None),
        (T, "tensor<5xf32>", T, "argument 0 of @f is tensor<5xf32>, not tensor<4xf32>"),
        (T, T, "tensor<5xf32>", "result 0 of @f is tensor<5xf32>, not tensor<4xf32>"),
        (T, "tensor<4xf64>", T, "argument 0 of @f is tensor<4xf64>"),
        (T, "tensor<4x1xf32>", T, "argument 0 of @f is tensor<4x1xf32>"),
        (T, 'tensor<[4] x f32, "cuda:0">', T, "argument 0 of @f is"),
        (T, "tensor<[4] x f32, strides [7]>", T, None),
        (T, "tensor<[s0] x f32>", "tensor<[s1] x f32>", None),
        (XS, "tensor<6x5xf32>", XS, "argument 0 of @f is tensor<6x5xf32>, not tensor<6x4xf32>"),
        (XS, "tensor<5x4xf32>", XS, "argument 0 of @f is tensor<5x4xf32>, not tensor<6x4xf32>"),
        (XS, "tensor<[s0, 4] x f32>", XS, None),
        (T, f"{T}; {T}", T, "@f has 2 arguments, not 1"),
        (T, T, f"{T}; {T}", "@f has 2 results, not 1"),
        (T, "", T, "@f has 0 arguments, not 1"),
        (T, "i1", T, "argument 0 of @f is i1, not tensor<4xf32>"),
        ("f32", "f32", "f32", None),
        ("f32", "f64", "f32", "argument 0 of @f is f64, not f32"),
        ("f32", T, "f32", "argument 0 of @f is tensor<4xf32>, not f32"),
    ],
)
@pytest.mark.parametrize("second", [False, True])
def test_both_functions_fit(kind, inputs, results, error, second):
    good = kind, kind
    pairs = (good, (inputs, results)) if second else ((inputs, results), good)
    check(cond(kind, kind, *pairs), error and (error.replace("@f", "@g") if second else error))


WHILE = "%y = flow.while %x, %n {body = @b, carried = 1 : i64, condition = @c} : "


@pytest.mark.parametrize(
    ("condition", "body", "error"),
    [
        ((f"{T}; {XS}", "i1"), (f"{T}; {XS}", T), None),
        ((f"{T}; {XS}", "tensor<i1>"), (f"{T}; {XS}", T), None),
        ((f"{T}; {XS}", "tensor<1xi1>"), (f"{T}; {XS}", T), r"@c gives \(tensor<1xi1>\), not one"),
        ((f"{T}; {XS}", "tensor<i8>"), (f"{T}; {XS}", T), r"@c gives \(tensor<i8>\), not one i1"),
        ((f"{T}; {XS}", "i8"), (f"{T}; {XS}", T), r"@c gives \(i8\), not one i1"),
        ((f"{T}; {XS}", "i1; i1"), (f"{T}; {XS}", T), r"@c gives \(i1, i1\), not one i1"),
        ((f"{T}; {XS}", ""), (f"{T}; {XS}", T), r"@c gives \(\), not one i1"),
        ((T, "i1"), (f"{T}; {XS}", T), "@c has 1 arguments, not 2"),
        ((f"{T}; {XS}", "i1"), (T, T), "@b has 1 arguments, not 2"),
        ((f"{T}; {XS}", "i1"), (f"{T}; {T}", T), "argument 1 of @b is tensor<4xf32>"),
        ((f"{T}; {XS}", "i1"), (f"{T}; {XS}", XS), "result 0 of @b is tensor<6x4xf32>"),
        ((f"{T}; {XS}", "i1"), (f"{T}; {XS}", f"{T}; {XS}"), "@b has 2 results, not 1"),
    ],
)
def test_conditions_and_bodies(condition, body, error):
    text = WHILE + f"({T}, {XS}) -> {T}"
    check(program(text, f"x={T}; n={XS}", ("c", *condition), ("b", *body)), error)


@pytest.mark.parametrize(
    ("flags", "result", "error"),
    [
        ("carried = 1", T, None),
        ("carried = 1", XS, "result 0 is tensor<6x4xf32>, not tensor<4xf32>"),
        ("carried = 1", f"{T}, {T}", "there are 2 results, not 1"),
        ("carried = 1", "", "there are 0 results, not 1"),
        ("carried = 3", T, "3 do not fit 2 operands"),
        ("carried = -1", T, "-1 do not fit 2 operands"),
        ("stacked, carried = 1", XS, None),
        ("stacked, carried = 1", "tensor<[s9, 4] x f32>", "symbol 's9'"),
        ("stacked, carried = 1", T, r"result 0 is tensor<f32>, not tensor<4xf32>"),
        ("stacked, carried = 1", "f32", "a result is f32, which has no first dimension"),
        ("stacked, carried = 1", "tensor<f32>", "a result is tensor<f32>, which has no first"),
    ],
)
def test_results_of_loops(flags, result, error):
    names = "" if not result else "%y, %z = " if result == f"{T}, {T}" else "%y = "
    body = WHILE.replace("%y = ", names).replace("carried = 1", flags)
    body += f"({T}, {XS}) -> ({result})"
    both = f"{T}; {XS}"
    check(program(body, f"x={T}; n={XS}", ("c", both, "i1"), ("b", both, T)), error)


def scan(arrays: str, rest: str, results: str, function: tuple[str, str], counts=(1, 1)) -> str:
    kinds = [T, *_split(arrays), *_split(rest)]
    names = [f"x{k}" for k in range(len(kinds))]
    made = ", ".join(f"%y{k}" for k in range(len(_split(results))))
    body = (f"{made}{' = ' if made else ''}flow.scan {', '.join(f'%{n}' for n in names)} "
            f"{{carried = {counts[0]} : i64, combine = @f, scanned = {counts[1]} : i64}} : "
            f"({', '.join(kinds)}) -> ({', '.join(_split(results))})")  # fmt: skip
    bind = ('%s = sym.bind_size %x1 {dim = 0 : i64, symbol = "s0"} : '
            f"({kinds[1] if len(kinds) > 1 else T}) -> index\n")  # fmt: skip
    arguments = "; ".join(f"{n}={k}" for n, k in zip(names, kinds, strict=True))
    return program((bind if "s0" in arrays else "") + body, arguments, ("f", *function))


STEP = f"{T}; {T}", f"{T}; {T}"


@pytest.mark.parametrize(
    ("arrays", "rest", "results", "function", "error"),
    [
        (XS, "", f"{T}; {XS}", STEP, None),
        (XS, "", T, (f"{T}; {T}", T), None),
        (XS, "", "", STEP, "0 results for 1 carried values"),
        (XS, "", f"{XS}; {XS}", STEP, "result 0 is tensor<6x4xf32>, not tensor<4xf32>"),
        (XS, "", f"{T}; tensor<5x4xf32>", STEP, "a stacked result is .*, of another length"),
        (XS, "", f"{T}; tensor<6x5xf32>", STEP, "result 1 of @f is tensor<4xf32>, not tensor<5x"),
        (XS, "", f"{T}; f32", STEP, "a stacked result is f32, which has no first dimension"),
        ("f32", "", f"{T}; {XS}", STEP, "a scanned operand is f32, which has no first"),
        ("tensor<f32>", "", f"{T}; {XS}", STEP, "a scanned operand is tensor<f32>, which has no"),
        (XS, "i64", f"{T}; {XS}", (f"{T}; {T}; i64", f"{T}; {T}"), None),
        (XS, "i64", f"{T}; {XS}", STEP, "@f has 2 arguments, not 3"),
        (XS, "i64", f"{T}; {XS}", (f"{T}; {T}; i8", f"{T}; {T}"), "argument 2 of @f is i8"),
        (XS, "", f"{T}; {XS}", (f"{T}; {XS}", f"{T}; {T}"), "argument 1 of @f is tensor<6x4xf32>"),
        (XS, "", f"{T}; {XS}", (f"{T}; {T}", f"{XS}; {T}"), "result 0 of @f is tensor<6x4xf32>"),
        (XS, "", f"{T}; {XS}", (f"{T}; {T}", f"{T}"), "@f has 1 results, not 2"),
        ("tensor<[s0, 4] x f32>", "", f"{T}; tensor<[s0, 4] x f32>", STEP, None),
        ("tensor<[s0, 4] x f32>", "", f"{T}; tensor<[7, 4] x f32>", STEP, None),
    ],
)
def test_scans(arrays, rest, results, function, error):
    check(scan(arrays, rest, results, function), error)


@pytest.mark.parametrize(
    ("first", "second", "made", "error"),
    [
        ("6", "6", "6", None),
        ("6", "5", "6", "the arrays have different lengths: 5, 6"),
        ("s0", "6", "6", None),
        ("s0", "6", "5", "a stacked result is .*, of another length"),
        ("s0", "6", "s0", None),
    ],
)
def test_lengths_of_arrays(first, second, made, error):
    kinds = [f"tensor<[{n}, 4] x f32>" for n in (first, second, made)]
    function = f"{T}; {T}; {T}", f"{T}; {T}"
    check(scan("; ".join(kinds[:2]), "", f"{T}; {kinds[2]}", function, (1, 2)), error)


@pytest.mark.parametrize(
    ("counts", "error"),
    [((1, 0), "there is no array to scan: scanned is 0"), ((2, 0), "no array to scan"),
     ((1, 2), "1 and 2 do not fit 2 operands"), ((2, 1), "2 and 1 do not fit 2 operands"),
     ((-1, 1), "-1 and 1 do not fit"), ((1, -1), "1 and -1 do not fit")],
)  # fmt: skip
def test_counts_of_scans(counts, error):
    check(scan(XS, "", f"{T}; {XS}", STEP, counts), error)


# -- the functions


def calls(**bodies: str) -> str:
    """Functions, each with the names of those that it calls."""
    made = ""
    for name, called in bodies.items():
        lines = "".join(f"%{k} = func.call @{c}(%x) : ({T}) -> {T}\n"
                        for k, c in enumerate(called.split()))  # fmt: skip
        made += f"func.func @{name}(%x: {T}) -> {T} {{\n{lines}func.return %x : {T}\n}}\n"
    return made


@pytest.mark.parametrize(
    ("bodies", "error"),
    [
        ({"a": "b c", "b": "c", "c": ""}, None),
        ({"a": "a"}, "@a calls the function that this stands in: there is no recursion"),
        ({"a": "b", "b": "a"}, "there is no recursion"),
        ({"a": "b", "b": "c", "c": "a"}, "there is no recursion"),
        ({"a": "b", "b": "b"}, "there is no recursion"),
        ({"a": "b c d", "b": "d", "c": "d b", "d": ""}, None),
        ({"a": "b", "b": "none"}, "there is no function @none in the module, but nothing"),
    ],
)
def test_functions_call_others_in_no_circle(bodies, error):
    check(calls(**bodies), error)


def test_a_circle_may_go_through_any_block():
    text = """func.func @a() {
        "t.jump"()[^b] : () -> ()
      ^b:
        func.call @b() : () -> ()
        func.return
      }
      func.func @b() { func.call @a() : () -> () func.return }"""
    with pytest.raises(InvalidIR, match="there is no recursion"):
        verify(irc.parse(text, allow_unregistered=True))


def test_a_call_names_a_function():
    kernel = 'kernel.func @k(%b: index, %e: index) attributes {target = "cpu"} { kernel.return }'
    text = f"{calls(a='k')}{kernel}\n"
    check(text, "there is no function @k in the module, but a kernel.func")
    function = irc.parse(text).lookup("a")
    function.detach()
    verify(function)  # outside of a module nothing is known of others


def test_who_is_called():
    module = irc.parse(calls(a="b c", b="", c="", d="") + declared("e", T, T))
    names = {f: is_called(module.lookup(f)) for f in "abcde"}
    assert names == {"a": False, "b": True, "c": True, "d": False, "e": False}
    assert list(called_by(module.lookup("a"))) == ["b", "c"]
    assert list(called_by(module.lookup("e"))) == []
    alone = module.lookup("b")
    alone.detach()
    assert not is_called(alone)
    assert not is_called(irc.parse(calls(a="a")).lookup("a"))  # the verifier refuses it


@pytest.mark.parametrize(
    "text",
    [
        cond(T, T, (T, T), (T, T)),
        program(WHILE + f"({T}, {XS}) -> {T}", f"x={T}; n={XS}",
                ("c", f"{T}; {XS}", "i1"), ("b", f"{T}; {XS}", T)),
        scan(XS, "", f"{T}; {XS}", STEP),
    ],
    ids=["cond", "while", "scan"],
)  # fmt: skip
def test_outside_of_a_module_nothing_is_known_of_functions(text):
    function = irc.parse(text).lookup("main")
    function.detach()
    verify(function)


def test_a_call_that_stands_in_no_function():
    text = """func.call @a() : () -> ()
      func.func @a() { func.call @NAME() : () -> () func.return }
      func.func @b() { func.return }"""
    check(text.replace("NAME", "b"), None)
    check(text.replace("NAME", "none"), "there is no function @none in the module")
