"""The structure of `irc/`: rooms on floors, and what keeps them apart.

`docs/design/rooms.md` draws the house. An arrow is an import, one inside a function too; only those
under `if TYPE_CHECKING:` are none.
"""

from __future__ import annotations

import ast
import functools
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import networkx
import pytest

from irc.ir import registry

ROOT = Path(__file__).resolve().parents[1]
HOUSE = ROOT / "irc"
PAGE = ROOT / "docs" / "design" / "rooms.md"
LONGEST = 600
#: The faces: what users import, from all rooms. `irc` itself, and the words of rules.
FACES = {"irc", "irc.rules"}


def rooms() -> list[str]:
    """The rooms from the lowest floor up, as the page lists them."""
    table = PAGE.read_text(encoding="utf-8").partition("## What each room knows")[2]
    return re.findall(r"^\| `(\w+)` \|", table.partition("\n## ")[0], re.MULTILINE)


@functools.cache
def files() -> dict[str, Path]:
    """Every file by its module's name."""
    found = {}
    for path in HOUSE.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@functools.cache
def tree(module: str) -> ast.Module:
    return ast.parse(files()[module].read_text(encoding="utf-8"))


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those that only a type checker reads."""
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from walk(child)


def imported(module: str) -> set[str]:
    """The modules of irc that a file imports."""
    found: set[str] = set()
    for node in walk(tree(module)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}:{node.lineno}: imports are absolute"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in files() else str(node.module))
    return {name for name in found if name in files() and name != module}


@functools.cache
def arrows() -> networkx.DiGraph:
    graph = networkx.DiGraph()
    graph.add_nodes_from(files())
    graph.add_edges_from((module, other) for module in files() for other in imported(module))
    return graph


def room_of(module: str) -> str:
    return module.split(".")[1]


def test_every_room_has_a_floor() -> None:
    folders = {p.name for p in HOUSE.iterdir() if (p / "__init__.py").is_file()}
    alone = {p.stem for p in HOUSE.glob("*.py")} - {"__init__", "rules"}
    assert sorted(rooms()) == sorted(folders | alone)


def test_arrows_point_down() -> None:
    floors = {room: floor for floor, room in enumerate(rooms())}
    upward = [
        f"{module} -> {other}"
        for module, other in arrows().edges
        if module not in FACES
        if other in FACES or floors[room_of(other)] > floors[room_of(module)]
    ]
    assert not upward


def test_no_files_import_each_other_in_a_circle() -> None:
    circles = [sorted(c) for c in networkx.strongly_connected_components(arrows()) if len(c) > 1]
    assert not circles


def test_generators_and_runtime_share_plain_data_only() -> None:
    for module in files():
        if module.startswith("irc.codegen"):
            assert not [o for o in imported(module) if o.startswith("irc.runtime")], module


def test_the_interpreter_shares_nothing_with_the_generators() -> None:
    shared = {"irc.codegen", "irc.passes", "irc.runtime", "irc.program", "irc.boundary"}
    for module in files():
        if module.startswith("irc.interp"):
            assert not [o for o in imported(module) if ".".join(o.split(".")[:2]) in shared], module


def test_a_class_has_a_name_of_its_own() -> None:
    """In the whole house, operations that tables make included."""
    homes: dict[str, set[str]] = defaultdict(set)
    for module in files():
        for node in tree(module).body:
            if isinstance(node, ast.ClassDef):
                homes[node.name.lstrip("_")].add(module)
    for dialect in registry.DIALECT_MODULES:
        registry.load_dialect(dialect)
        for cls in registry.registered_ops(dialect):
            if cls.__module__.startswith("irc."):
                homes[cls.__name__].add(cls.__module__)
    assert not {name: where for name, where in homes.items() if len(where) > 1}


#: Private names that are not irc's.
OTHERS = {
    "_boxed_call": "what AOTAutograd looks for on a function: it takes its arguments in one list",
    "_insert": "llvmlite's builder has no public way to put an instruction that it didn't make",
}


def own_members(module: str) -> set[str]:
    """The private names of classes that a file defines: methods, fields, slots, attributes."""
    names: set[str] = set()
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.ClassDef):
            for part in ast.walk(node):
                if isinstance(part, ast.FunctionDef):
                    names.add(part.name)
                elif isinstance(part, ast.Attribute | ast.Name) and is_bound(part):
                    names.add(part.attr if isinstance(part, ast.Attribute) else part.id)
    return {name for name in names if name.startswith("_") and not name.startswith("__")}


def is_bound(node: ast.Attribute | ast.Name) -> bool:
    return not isinstance(node.ctx, ast.Load)


def test_no_file_reaches_for_what_is_private_to_a_class_of_another() -> None:
    """But in `ir`, whose rooms are made of the same operations, and of `self`: a class knows its
    base."""
    private = {name for module in files() for name in own_members(module)}
    classes = {n.name for m in files() for n in ast.walk(tree(m)) if isinstance(n, ast.ClassDef)}
    reaches = []
    for module in files():
        if module.startswith("irc.ir."):
            continue
        own = own_members(module)
        for node in ast.walk(tree(module)):
            if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
                itself = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
                if not itself and node.attr in (private | classes) - own - OTHERS.keys():
                    reaches.append(f"{module}:{node.lineno}: {ast.unparse(node)}")
    assert not reaches, "\n".join(reaches)


#: What operations, and operators that they call, are called by.
NAMES = {"name", "callee", "qualified"}


def test_no_operation_is_told_by_its_name() -> None:
    """Outside of text: a class, a trait or a fact tells what an operation is, a table what an
    operator of ATen is."""
    found = []
    for module in files():
        if module.startswith("irc.ir.text") or module.endswith(".text"):
            continue
        for node in walk(tree(module)):
            if not isinstance(node, ast.Compare):
                continue
            sides = [node.left, *node.comparators]
            asks = any(isinstance(s, ast.Attribute) and s.attr in NAMES for s in sides)
            words = {c.value for s in sides for c in ast.walk(s) if isinstance(c, ast.Constant)}
            if asks and any(isinstance(w, str) and is_operation(w) for w in words):
                found.append(f"{module}:{node.lineno}: {sorted(map(str, words))}")
    assert not found


def test_no_converter_asks_which_operator_it_serves() -> None:
    """That is data of its registration: `@converts("aten.amax.default", largest=True)`."""
    found = []
    for module in files():
        whole = module.startswith("irc.passes.graph.convert_aten.")
        for place in [tree(module)] if whole else filter(is_converter, walk(tree(module))):
            for node in walk(place):
                if isinstance(node, ast.Attribute) and node.attr in ("name", "overload"):
                    owner = node.value
                    if "schema" in (getattr(owner, "attr", ""), getattr(owner, "id", "")):
                        found.append(f"{module}:{node.lineno}")
    assert not found


def is_converter(node: ast.AST) -> bool:
    """Whether it is a function that `converts` registers."""
    if not isinstance(node, ast.FunctionDef):
        return False
    calls = [d.func for d in node.decorator_list if isinstance(d, ast.Call)]
    return any(ast.unparse(f).rpartition(".")[2].endswith("converts") for f in calls)


def is_operation(word: str) -> bool:
    dialect, _, rest = word.partition(".")
    return bool(rest) and dialect in registry.DIALECT_MODULES


@pytest.mark.parametrize("module", ["irc.pipeline"])
def test_no_text_of_a_pipeline_is_edited(module: str) -> None:
    calls = [n.func.attr for n in walk(tree(module))
             if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]  # fmt: skip
    assert not {"replace", "sub", "removeprefix", "removesuffix", "translate"} & set(calls)


def test_options_are_typed() -> None:
    """Nothing asks an option by a text of its own, nor a context for what is not declared."""
    for module in files():
        for node in walk(tree(module)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                if node.func.id == "getattr" and isinstance(node.args[0], ast.Name):
                    named = isinstance(node.args[1], ast.Constant)
                    assert not (node.args[0].id == "options" and named), f"{module}:{node.lineno}"
            if isinstance(node, ast.Attribute) and node.attr == "data":
                owner = node.value
                assert not (isinstance(owner, ast.Name) and owner.id == "context"), module


def test_files_have_one_thought() -> None:
    long = {m: n for m, p in files().items() if (n := len(p.read_text().splitlines())) > LONGEST}
    assert not long


def test_every_dialect_is_a_folder_that_holds_its_operations() -> None:
    for name, module in registry.DIALECT_MODULES.items():
        registry.load_dialect(name)
        if name == "builtin":
            continue
        assert files()[module].name == "__init__.py"
        assert f"{module}.ops" in files()
        for cls in registry.registered_ops(name):
            if cls.__module__.startswith("irc."):
                assert cls.__module__.startswith(f"{module}."), cls


#: Names that say how a value came, not what it is: a result, an entry, operands, a producer.
SAY_NOTHING = {"found", "made", "given", "wanted"}
#: Where `kind` is the word for what is meant, and what that is; elsewhere it is a `type_`.
KINDS = {
    "irc.analysis.channels_last": "of a convolution, by which its time differs",
    "irc.boundary.aten_paths": "dtype, layout, memory_format or device",
    "irc.codegen.host.aten": "what a result is: a tensor, a number, a truth value",
    "irc.codegen.host.items": "int, float or bool",
    "irc.dialects.aten.schema": "of a token",
    "irc.dialects.loop.ops": "par, red, scan of an axis; map, reduce, scan, scatter of an output",
    "irc.dialects.loop.text": "of an axis, of an output",
    "irc.dialects.sym.facts": "size, stride, argument or data: where a symbol comes from",
    "irc.frontend.importing.importer": "input, parameter, buffer: what an argument is",
    "irc.ir.definition": "one, optional or variadic",
    "irc.ir.diagnostics": "error or internal error, as it is shown",
    "irc.ir.symbols.text": "of a token",
    "irc.ir.text.attribute_parser": "of a token",
    "irc.ir.text.lexer": "of a token",
    "irc.ir.text.operation_parser": "of a token",
    "irc.ir.text.parser": "of a token",
    "irc.ir.text.type_parser": "of a token",
    "irc.passes.common.bodies": "of axes",
    "irc.passes.kernel.cpu.plan": "of an axis; where a value is stored: register, scratch, ...",
    "irc.passes.loop.factor_axes": "of axes",
    "irc.passes.loop.merge_computes": "of the axes that members share, of an output",
    "irc.passes.loop.split_reductions": "of axes",
    "irc.program.host_program": "tensor, int, float, bool, none; cond, while, scan of a control",
    "irc.program.read_host": "of a register, as the host program has it",
    "irc.runtime.arguments": "tensor, int, float or bool",
    "irc.runtime.build_program": "cpu or gpu",
    "irc.runtime.executable": "of a result",
    "irc.runtime.graphs_cuts": "of a register, as the host program has it",
    "irc.target.record": "cpu or gpu",
    "irc.validation.semantics": "error, as it is shown; which trials are selected",
}


def bound_names(module: str) -> Iterator[tuple[str, int]]:
    """The variables, parameters, fields, functions and attributes that a file binds, by line."""
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            yield node.attr, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            yield node.name, node.lineno


def test_names_say_what_a_value_is() -> None:
    poor: dict[str, list[str]] = defaultdict(list)
    kinds = set()
    for module in files():
        for name, line in bound_names(module):
            if name == "kind" and module in KINDS:
                kinds.add(module)
            elif name.lstrip("_") in SAY_NOTHING or name == "kind":
                poor[module].append(f"{name} in line {line}")
    assert not dict(poor), "what is it? a result, an entry, operands; a type is a `type_`"
    assert not KINDS.keys() - kinds, "there is none: strike them off"


def annotations(node: ast.AST) -> Iterator[ast.AST]:
    """What a node says of types, which makes and asks nothing."""
    if isinstance(node, ast.AnnAssign):
        yield node.annotation
    elif isinstance(node, ast.arg) and node.annotation is not None:
        yield node.annotation
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is not None:
        yield node.returns


def classes_named(module: str) -> Iterator[tuple[str, bool, str]]:
    """(name, as a base, inside of which class) of what is irc's, wherever a file's code names it
    and not only its annotations. A class has a name of its own, so that the name says which."""
    own = {node.name for node in tree(module).body if isinstance(node, ast.ClassDef)}
    known = set(own)
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "irc":
            known |= {alias.asname or alias.name for alias in node.names}

    def is_ours(node: ast.AST) -> bool:
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and node.id in known

    def visit(node: ast.AST, inside: str) -> Iterator[tuple[str, bool, str]]:
        bases: list[ast.expr] = []
        if isinstance(node, ast.ClassDef):
            inside = inside or node.name
            bases = [b.value if isinstance(b, ast.Subscript) else b for b in node.bases]
            yield from ((last_name(base), True, inside) for base in bases if is_ours(base))
        elif isinstance(node, ast.Name | ast.Attribute) and is_ours(node):
            yield last_name(node), False, inside
        passed = {id(part) for part in (*bases, *annotations(node))}
        for child in ast.iter_child_nodes(node):
            if id(child) not in passed:
                yield from visit(child, inside)

    yield from visit(tree(module), "")


def last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def test_no_class_is_cut_by_size() -> None:
    """A class with one subclass, and that nothing makes or asks for, is no thing of its own: the
    two are one class in two files. What a part knows is an object, which others hold."""
    subclasses: dict[str, set[str]] = defaultdict(set)
    used: set[str] = set()
    for module in files():
        for name, is_base, inside in classes_named(module):
            if is_base:
                subclasses[name].add(inside)
            elif name != inside:
                used.add(name)
    assert {"Operation", "Attribute", "Op"} < subclasses.keys()
    single = {name: subs for name, subs in subclasses.items() if len(subs) == 1}
    assert not {name: subs for name, subs in single.items() if name not in used}
