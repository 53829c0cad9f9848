"""Mutants of a file: small edits of its syntax tree that turn a decision around.

| operator    | the edit                                                                        |
| ---         | ---                                                                             |
| `negate`    | a condition (`if`, `while`, `x if c else y`, of a comprehension) is negated     |
| `operand`   | an operand of `and` or `or` is dropped                                          |
| `compare`   | `<` is `<=`, `>` is `>=` and back; `==`, `is` and `in` are negated              |
| `return`    | the result of a predicate is negated                                            |
| `guard`     | `if c: return / raise / continue / break / op.fail(...)` is removed             |
| `check`     | a statement that calls a check (`verify...`, `check...`, `require...`) is removed |
| `constant`  | an integer is one more                                                          |
| `quantifier`| `any` is `all` and back                                                         |
"""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
CHECKS = ("verify", "check", "require", "assert")
#: Words of conditions that decide what is told, not what is done.
TOLD = ("explains", "remark", "TYPE_CHECKING")
Function = ast.FunctionDef | ast.AsyncFunctionDef


@attrs.frozen
class Mutant:
    """One edit of one file. `begin` and `end` are byte offsets, `line` counts from 1.

    The key is made from the content alone (the file's name, the function, the edit), so that it
    stays when the file moves or other lines change.
    """

    path: str
    function: str
    operator: str
    line: int
    last_line: int
    begin: int
    end: int
    old: str
    new: str
    key: str = ""

    def applied(self, source: str) -> str:
        """The text of the file with the edit."""
        data = source.encode()
        return (data[: self.begin] + self.new.encode() + data[self.end :]).decode()

    @property
    def where(self) -> str:
        """File and line."""
        return f"{self.path}:{self.line}"

    @property
    def change(self) -> str:
        """The edit on one line."""
        return f"{' '.join(self.old.split())}  ->  {' '.join(self.new.split())}"


def mutants(path: str, source: str, decides: Callable[[Function], bool]) -> list[Mutant]:
    """All mutants of the functions that `decides` takes, in the order of the file, with keys."""
    tree = ast.parse(source)
    starts = [0]
    for line in source.encode().split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    made: list[Mutant] = []
    for name, function in functions(tree):
        if decides(function):
            for operator, node, new in edits(function):
                made.append(_mutant(path, source, starts, name, operator, node, new))
    seen: Counter[str] = Counter()
    keyed: list[Mutant] = []
    for mutant in made:
        content = "|".join(
            (Path(path).name, mutant.function, mutant.operator, mutant.old, mutant.new)
        )
        text = f"{content}|{seen[content]}"
        seen[content] += 1
        keyed.append(attrs.evolve(mutant, key=hashlib.sha256(text.encode()).hexdigest()[:12]))
    return keyed


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, Function]]:
    """The outermost functions and the methods of a module, by qualified name."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from functions(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.If):
            yield from functions(node, prefix)


def _mutant(
    path: str,
    source: str,
    starts: list[int],
    function: str,
    operator: str,
    node: ast.expr | ast.stmt,
    new: str,
) -> Mutant:
    assert node.end_lineno is not None and node.end_col_offset is not None
    begin = starts[node.lineno - 1] + node.col_offset
    end = starts[node.end_lineno - 1] + node.end_col_offset
    old = source.encode()[begin:end].decode()
    return Mutant(path, function, operator, node.lineno, node.end_lineno, begin, end, old, new)


Edit = tuple[str, "ast.expr | ast.stmt", str]


def edits(function: Function) -> Iterator[Edit]:
    """The edits of a function: operator, the node that is replaced, the new text."""
    predicate = _returns_bool(function)
    for node in _nodes(function):
        yield from _of_condition(node)
        if isinstance(node, ast.BoolOp):
            yield from _of_operands(node)
        elif isinstance(node, ast.Compare):
            yield from _of_comparison(node)
        elif isinstance(node, ast.BinOp | ast.Subscript | ast.Slice):
            for child in ast.iter_child_nodes(node):
                yield from _of_constant(child)
        elif isinstance(node, ast.Return) and predicate and node.value is not None:
            yield "return", node.value, _negated(node.value)
        elif isinstance(node, ast.Expr) and _is_check(node.value):
            yield "check", node, "pass"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            other = {"any": "all", "all": "any"}.get(node.func.id)
            if other is not None:
                yield "quantifier", node.func, other


def _nodes(function: Function) -> Iterator[ast.AST]:
    """The nodes of a body in order, without what only tells: f-strings, asserts, annotations."""
    waiting: list[ast.AST] = [*reversed(function.body)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.JoinedStr | ast.Assert | ast.Raise):
            continue
        if isinstance(node, ast.If) and any(word in ast.unparse(node.test) for word in TOLD):
            waiting += reversed(node.orelse)
            continue
        yield node
        children = list(ast.iter_child_nodes(node))
        if isinstance(node, ast.AnnAssign):
            children.remove(node.annotation)
        if isinstance(node, Function):
            children = [*node.body]
        waiting += reversed(children)


def _of_condition(node: ast.AST) -> Iterator[Edit]:
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        yield "negate", node.test, _negated(node.test)
    if isinstance(node, ast.comprehension):
        for test in node.ifs:
            yield "negate", test, _negated(test)
    if isinstance(node, ast.If) and not node.orelse and _leaves(node.body):
        yield "guard", node.test, "False"


def _leaves(body: list[ast.stmt]) -> bool:
    last = body[-1]
    if isinstance(last, ast.Return | ast.Raise | ast.Continue | ast.Break):
        return True
    call = last.value if isinstance(last, ast.Expr) else None
    name = call.func if isinstance(call, ast.Call) else None
    return isinstance(name, ast.Attribute) and name.attr in ("fail", "error", "no_match")


def _of_operands(node: ast.BoolOp) -> Iterator[Edit]:
    for dropped in range(len(node.values)):
        left = [v for k, v in enumerate(node.values) if k != dropped]
        text = ast.unparse(left[0] if len(left) == 1 else ast.BoolOp(node.op, left))
        yield "operand", node, f"({text})"


def _of_comparison(node: ast.Compare) -> Iterator[Edit]:
    for place, op in enumerate(node.ops):
        ops = [*node.ops]
        ops[place] = COMPARISONS[type(op)]()
        yield "compare", node, f"({ast.unparse(ast.Compare(node.left, ops, node.comparators))})"
    for operand in (node.left, *node.comparators):
        yield from _of_constant(operand)


def _of_constant(node: ast.AST) -> Iterator[Edit]:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield "constant", node, str(node.value + 1)


def _negated(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return str(not node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return f"({ast.unparse(node.operand)})"
    return f"(not ({ast.unparse(node)}))"


def _returns_bool(function: Function) -> bool:
    return isinstance(function.returns, ast.Name) and function.returns.id == "bool"


def _is_check(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
    return name.lstrip("_").startswith(CHECKS)
