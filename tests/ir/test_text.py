"""Text: what is printed parses back to the same program, in every form."""

from __future__ import annotations

import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from irc.dialects.aten import AtenOp
from irc.ir import attributes as A
from irc.ir import parse, parse_attribute, parse_type, print_attribute, print_op
from irc.ir import types as T
from irc.ir.equality import first_difference
from irc.ir.registry import DIALECT_MODULES, load_dialect, registered_ops

for _dialect in DIALECT_MODULES:
    load_dialect(_dialect)

FORMS = (
    {},
    {"generic": True},
    {"locations": True},
    {"aliases": True},
    {"generic": True, "locations": True, "aliases": True},
)


def check_round_trip(module, allow_unregistered=False):
    """Every form parses back to an equal program that prints the same text."""
    for form in FORMS:
        text = print_op(module, **form)
        again = parse(
            text, allow_unregistered=allow_unregistered, resources=getattr(module, "resources", {})
        )
        difference = first_difference(module, again, locations="locations" in form)
        assert difference is None, f"{form}: {difference}\n{text}"
        assert print_op(again, **form) == text


# -- the examples in the documentation of the operations

# The types of values that an example does not tell.
S = "tensor<[4, 4] x f32, strides [4, 1]>"
DECLARED = {
    "loop.read": {"%x": "tensor<[4, 4] x f32, strides [4, 1]>"},
    "loop.yield": {"%a": "f32", "%k": "index", "%c": "i1"},
    "loop.compute": {"%x": "tensor<[4, 4] x f32, strides [4, 1]>"},
    "loop.group": {"%x": "tensor<[4, 4] x f32, strides [4, 1]>"},
    "kernel.for": {"%lo": "index", "%hi": "index", "%c16": "index", "%zero": "vector<16xf32>"},
    "kernel.if": {"%c": "i1", "%a": "f32", "%b": "f32"},
    "kernel.load": {"%p": "!kernel.ptr<f32>", "%i": "index"},
    "kernel.store": {"%v": "vector<16xf32>", "%p": "!kernel.ptr<f32>", "%i": "index"},
    "kernel.gather": {"%p": "!kernel.ptr<f32>", "%offs": "vector<16xindex>"},
    "kernel.scatter": {
        "%v": "vector<16xf32>", "%p": "!kernel.ptr<f32>", "%offs": "vector<16xindex>",
    },
}  # fmt: skip


def example_of(cls):
    """The line of IR in the documentation of an operation class."""
    doc = " ".join(inspect.cleandoc(cls.__doc__ or "").split())
    quoted = [t for t in re.findall(r"`([^`]+)`", doc) if re.search(rf"{cls.name}\b", t)]
    return quoted[-1] if quoted else None


def declarations(cls, example):
    """Block arguments for the values that the example uses and does not define."""
    if cls.name in DECLARED or cls.region_fields:
        return DECLARED.get(cls.name, {})
    operands = re.search(rf"{re.escape(cls.name)}(?: @\w+\()? ?((?:%\w+(?:, )?)*)", example)[1]
    names = re.findall(r"%\w+", operands)
    if not names:
        return {}
    rest = example[example.rindex(" : ") + 3 :]
    if " : (" in example:
        rest = example[example.rindex(" : (") + 3 :]
    if rest.startswith("("):
        types = parse_type(rest if "->" in rest else rest + " -> ()").inputs
    else:
        types = tuple(parse_type(t) for t in rest.split(", ") if "tensor" not in rest) or (
            parse_type(rest),
        )
        types = types if len(types) == len(names) else types * len(names)
    return {name: str(t) for name, t in zip(names, types, strict=True)}


EXAMPLES = [c for c in registered_ops() if not issubclass(c, AtenOp)]


@pytest.mark.parametrize("cls", EXAMPLES, ids=lambda c: c.name)
def test_example_in_documentation_parses_and_prints_back(cls):
    example = example_of(cls)
    assert example is not None, f"the documentation of {cls.name} has no line of IR"
    types = declarations(cls, example)
    arguments = ", ".join(f"{name}: {type_}" for name, type_ in types.items())
    label = f"^bb0({arguments}):" if arguments else ""
    text = f'"test.wrap"() ({{\n{label}\n{example}\n}}) : () -> ()'
    resources = {"0123": b""}
    module = parse(text, allow_unregistered=True, resources=resources)
    found = [op for op in module.walk() if type(op) is cls]
    assert found
    check_round_trip(module, allow_unregistered=True)
