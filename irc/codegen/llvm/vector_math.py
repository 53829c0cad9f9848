"""Elementary functions and conversions on scalars and vectors, emitted into llvmlite IR.

    math = VectorMath(module, TargetFeatures.host())
    y = math.emit(builder, "tanh", [x])                  # x: float or <16 x float>
    b = math.convert(builder, y, "f32", "bf16")          # <16 x i16>

A function is recorded once per process for its element type, lane count and target, then pasted
as text at each use, with polynomials in line.  Functions whose rare lanes go to libm (`sin` of
1e6, `fmod` with a huge quotient) branch: **`emit` may leave the builder in another block**, so
read `builder.block` afterwards, as around any loop.  Meanings are torch's; results are within 4
ulp of the exact value (tests/codegen/llvm/test_vector_math.py holds the bound of each).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence

import attrs
from llvmlite import ir

from irc.codegen.math import basic, conversions, exponential, special, trigonometric
from irc.codegen.math.code import BITS, Code, Lane
from irc.codegen.math.registry import DEFINITIONS, Definition
from irc.target.cpu import TargetFeatures

FAMILIES = (basic, exponential, trigonometric, special)
_IR_TYPES: dict[str, ir.Type] = {
    "f64": ir.DoubleType(),
    "f32": ir.FloatType(),
    "f16": ir.HalfType(),
} | {f"i{width}": ir.IntType(width) for width in (1, 8, 16, 32, 64)}
_LLVM_TYPES = {str(type_): type_ for type_ in _IR_TYPES.values()}
_ELEMENTS = {str(type_): element for element, type_ in _IR_TYPES.items()}
_HOLES = re.compile(r"\$([p0-9])")
# Made of several definitions, because fmod between them may branch.
_COMPOSED = {"remainder", "floor_divide"}


def supported(name: str, element: str) -> bool:
    """Whether `emit` has the function for operands of `element` ("f32" or "f64")."""
    return (name, element) in DEFINITIONS or (name in _COMPOSED and element in ("f32", "f64"))


def is_inline(name: str, element: str) -> bool:
    """Whether the common case is in line; otherwise every lane is a call to libm."""
    if name in _COMPOSED:
        return element in ("f32", "f64")
    definition = DEFINITIONS.get((name, element))
    return definition is not None and definition.emit is not None


def function_names() -> list[str]:
    """Every function that `emit` knows for some element type."""
    return sorted({name for name, _ in DEFINITIONS} | _COMPOSED)


def element_and_lanes(type_: ir.Type) -> tuple[str, int]:
    """("f32", 16) of `<16 x float>`, ("f32", 0) of `float`.  Raises TypeError for other types."""
    lanes = type_.count if isinstance(type_, ir.VectorType) else 0
    scalar = type_.element if isinstance(type_, ir.VectorType) else type_
    element = _ELEMENTS.get(str(scalar))
    if element is None:
        raise TypeError(f"{type_} is not a number or a vector of numbers")
    return element, lanes


def ir_type(element: str, lanes: int) -> ir.Type:
    """The llvmlite type of `lanes` lanes of `element`; 0 is a scalar."""
    return ir.VectorType(_IR_TYPES[element], lanes) if lanes else _IR_TYPES[element]


def _declared_type(declared: str, lanes: int) -> ir.Type:
    """The type of an operand in `Code.declarations`: an element, or "=" and an LLVM type."""
    if not declared.startswith("="):
        return ir_type(declared, lanes)
    vector = re.fullmatch(r"=<(\d+) x (\w+)>", declared)
    if vector is None:
        return ir.IntType(int(declared[2:]))
    return ir.VectorType(_LLVM_TYPES[vector[2]], int(vector[1]))


@attrs.frozen
class Template:
    """Recorded instructions: `$p` stands for a unique prefix, `$0` `$1` ... for the operands."""

    text: str
    result: str
    element: str
    rare: str | None
    declarations: tuple[tuple[str, tuple[str, tuple[str, ...]]], ...]


def _record(
    lanes: int,
    features: TargetFeatures,
    operands: Sequence[str],
    emit: Callable[..., Lane | tuple[Lane, Lane]],
) -> Template:
    code = Code(lanes, features)
    result = emit(code, *(Lane(code, element, f"${i}") for i, element in enumerate(operands)))
    rare = None
    if isinstance(result, tuple):
        result, condition = result
        rare = _any_lane(code, condition).ref
    text = "\n  ".join(code.lines)
    return Template(text, result.ref, result.element, rare, tuple(code.declarations.items()))


def _any_lane(code: Code, condition: Lane) -> Lane:
    if not code.lanes:
        return condition
    mask = f"i{code.lanes}"
    bits = code.record(f"bitcast {code.type('i1')} {condition.ref} to {mask}", mask)
    return code.record(f"icmp ne {mask} {bits.ref}, 0", "i1")


@functools.lru_cache(maxsize=4096)
def function_template(
    name: str, element: str, lanes: int, features: TargetFeatures, operands: tuple[str, ...]
) -> Template:
    """The recording of a function that is emitted in line."""
    definition = DEFINITIONS[name, element]
    assert definition.emit is not None
    return _record(lanes, features, operands, definition.emit)


@functools.lru_cache(maxsize=1024)
def conversion_template(
    source: str, target: str, lanes: int, features: TargetFeatures
) -> Template:
    """The recording of a conversion."""

    def emit(code: Code, value: Lane) -> Lane:
        return conversions.convert(code, value, source, target)

    return _record(lanes, features, [conversions.carrier(source)], emit)


@functools.lru_cache(maxsize=64)
def cut_template(lanes: int, features: TargetFeatures, half: int) -> Template:
    """The recording of f32 to bf16 by its upper bits."""

    def emit(code: Code, value: Lane) -> Lane:
        return conversions.f32_cut_to_bf16(code, value, half)

    return _record(lanes, features, ["f32"], emit)


@functools.lru_cache(maxsize=64)
def bf16_rounding_template(lanes: int, features: TargetFeatures) -> Template | None:
    """The recording of f32 to bf16 by one instruction, wrong where its `rare` holds; None where
    there is no such instruction."""
    if not conversions.rounds_to_bf16(Code(lanes, features)):
        return None
    return _record(lanes, features, ["f32"], conversions.f32_to_bf16_by_instruction)


def divides_by_inverse(element: str, lanes: int, features: TargetFeatures) -> bool:
    """Whether many quotients of one divisor cost less as products with its inverse."""
    wide = element in ("f32", "f64") and lanes * BITS[element] == 512
    return wide and features.has_avx512 and not features.fast_division


@functools.lru_cache(maxsize=16)
def division_template(element: str, lanes: int, features: TargetFeatures) -> Template:
    """The recording of x / y from x, y and 1 / y; its `rare` holds where it gives NaN."""
    return _record(lanes, features, [element] * 3, basic.divided_by_inverse)


class _Pasted(ir.Instruction):
    """A recorded sequence as one llvmlite instruction; its value is the sequence's result."""

    def __init__(
        self, block: ir.Block, type_: ir.Type, template: Template, operands: list[ir.Value],
        name: str,
    ) -> None:
        super().__init__(block, type_, "pasted", operands, name=name)
        self._template = template

    def expand(self, text: str) -> str:
        """`text` of the template with the operands and the prefix of this use."""
        values = {str(i): operand.get_reference() for i, operand in enumerate(self.operands)}
        values["p"] = f"{self.name}~"
        return _HOLES.sub(lambda hole: values[hole[1]], text)

    def _get_reference(self) -> str:
        return self.expand(self._template.result)

    def _to_string(self) -> str:
        return self.expand(self._template.text)


class _Text(ir.Value):
    """A value that is known by the text of its reference."""

    def __init__(self, type_: ir.Type, text: str) -> None:
        self.type = type_
        self._text = text

    def get_reference(self) -> str:
        return self._text

    def __str__(self) -> str:
        return f"{self.type} {self._text}"


class VectorMath:
    """Emits functions into one module for one target.

    With `precise`, f32 functions other than single instructions are computed in f64 and rounded
    once: slower, and within one ulp.
    """

    def __init__(
        self, module: ir.Module, features: TargetFeatures, precise: bool = False
    ) -> None:
        self.module = module
        self.features = features
        self.precise = precise

    def emit(self, builder: ir.IRBuilder, name: str, args: Sequence[ir.Value]) -> ir.Value:
        """The function `name` of `args`, all of one type: float, double or a vector of either.

        The result has that type; tests (`isnan`, `signbit`...) give i1 lanes.  Raises KeyError for
        a function that is not `supported` on the type, TypeError for a wrong operand.
        """
        args = list(args)
        element, lanes = element_and_lanes(args[0].type)
        if name in _COMPOSED:
            return self._composed(builder, name, args)
        definition = DEFINITIONS.get((name, element))
        if definition is None:
            raise KeyError(f"there is no vector function {name!r} of {element}")
        if len(args) != definition.arity or any(a.type != args[0].type for a in args):
            kinds = ", ".join(str(a.type) for a in args)
            raise TypeError(f"{name} takes {definition.arity} operands of one type, not ({kinds})")
        rounds_once = definition.exact or definition.emit is None
        if self.precise and element == "f32" and not rounds_once and supported(name, "f64"):
            return self._through_double(builder, name, args, lanes)
        if definition.emit is None:
            return self._libm(builder, definition, args, element, lanes)
        template = function_template(
            name, element, lanes, self.features, (element,) * len(args)
        )
        result = self._paste(builder, template, args, lanes, name)
        if template.rare is None:
            return result
        return self._mend_rare(builder, definition, template, result, args)

    def convert(
        self, builder: ir.IRBuilder, value: ir.Value, source: str, target: str
    ) -> ir.Value:
        """`value` of type `source` as `target`; see `math.conversions` for names and meaning."""
        for name in (source, target):
            if name not in conversions.TYPES:
                raise KeyError(f"there is no conversion of {name!r}")
        element, lanes = element_and_lanes(value.type)
        if element != conversions.carrier(source):
            expected = conversions.carrier(source)
            raise TypeError(f"a {source} is carried as {expected}, not {element}")
        template = conversion_template(source, target, lanes, self.features)
        return self._paste(builder, template, [value], lanes, "convert")

    def _paste(
        self, builder: ir.IRBuilder, template: Template, args: list[ir.Value], lanes: int,
        name: str,
    ) -> ir.Value:
        for declared, signature in template.declarations:
            self._declare(declared, signature, lanes)
        type_ = ir_type(template.element, lanes)
        if not template.text:
            return args[0]
        pasted = _Pasted(builder.block, type_, template, args, name)
        builder._insert(pasted)
        return pasted

    def _declare(self, name: str, signature: tuple[str, tuple[str, ...]], lanes: int) -> None:
        if name in self.module.globals:
            return
        result, *operands = (_declared_type(d, lanes) for d in (signature[0], *signature[1]))
        ir.Function(self.module, ir.FunctionType(result, operands), name)

    def _through_double(
        self, builder: ir.IRBuilder, name: str, args: list[ir.Value], lanes: int
    ) -> ir.Value:
        wide = [self.convert(builder, a, "f32", "f64") for a in args]
        return self.convert(builder, self.emit(builder, name, wide), "f64", "f32")

    def _composed(self, builder: ir.IRBuilder, name: str, args: list[ir.Value]) -> ir.Value:
        mod = self.emit(builder, "fmod", args)
        if name == "remainder":
            return self.emit(builder, "remainder_of_fmod", [mod, args[1]])
        return self.emit(builder, "floor_divide_of_fmod", [*args, mod])

    def _mend_rare(
        self,
        builder: ir.IRBuilder,
        definition: Definition,
        template: Template,
        fast: _Pasted,
        args: list[ir.Value],
    ) -> ir.Value:
        """`fast`, or libm's results when a lane is outside the range of the short method."""
        element, lanes = element_and_lanes(fast.type)
        assert template.rare is not None
        condition = _Text(ir.IntType(1), fast.expand(template.rare))
        before = builder.block
        with builder.if_then(condition, likely=False):
            slow = self._libm(builder, definition, args, element, lanes)
            after = builder.block
        phi = builder.phi(fast.type, name=definition.name)
        phi.add_incoming(fast, before)
        phi.add_incoming(slow, after)
        return phi

    def _libm(
        self,
        builder: ir.IRBuilder,
        definition: Definition,
        args: list[ir.Value],
        element: str,
        lanes: int,
    ) -> ir.Value:
        """libm's function of each lane, through a function of the module that loops over them."""
        symbol = f"{definition.libm}{'f' if element == 'f32' else ''}"
        scalar = _IR_TYPES[element]
        function = self.module.globals.get(symbol)
        if function is None:
            function_type = ir.FunctionType(scalar, [scalar] * len(args))
            function = ir.Function(self.module, function_type, symbol)
        elif not isinstance(function, ir.Function) or not function.is_declaration:
            raise ValueError(f"the module defines {symbol!r}, which {definition.name} must call")
        if not lanes:
            return builder.call(function, args)
        return builder.call(self._lane_loop(function, args[0].type, len(args)), args)

    def _lane_loop(self, function: ir.Function, vector: ir.VectorType, arity: int) -> ir.Function:
        element, lanes = element_and_lanes(vector)
        name = f"irc.lanes.{function.name}.v{lanes}{element}"
        if name in self.module.globals:
            return self.module.globals[name]
        function_type = ir.FunctionType(vector, [vector] * arity)
        helper = ir.Function(self.module, function_type, name)
        helper.linkage = "internal"
        helper.attributes.add("noinline")
        builder = ir.IRBuilder(helper.append_basic_block("entry"))
        i32 = ir.IntType(32)
        entry = builder.block
        loop, done = (helper.append_basic_block(label) for label in ("loop", "done"))
        builder.branch(loop)
        builder.position_at_end(loop)
        lane = builder.phi(i32, name="lane")
        result = builder.phi(vector, name="result")
        values = [builder.extract_element(operand, lane) for operand in helper.args]
        following = builder.insert_element(result, builder.call(function, values), lane)
        step = builder.add(lane, i32(1))
        lane.add_incoming(i32(0), entry)
        lane.add_incoming(step, loop)
        result.add_incoming(_Text(vector, "zeroinitializer"), entry)
        result.add_incoming(following, loop)
        builder.cbranch(builder.icmp_unsigned("<", step, i32(lanes)), loop, done)
        builder.position_at_end(done)
        builder.ret(following)
        return helper
