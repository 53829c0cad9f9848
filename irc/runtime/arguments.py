"""What a program's arguments must be, and the error that names the one that isn't.

The native host function tests the common case in nanoseconds and knows no words. This is the
complete test in Python: it accepts everything the native one does and also tensor subclasses, and
says of anything else which argument it is, what was expected, what was given and what to do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import attrs
import torch

from irc.boundary import torch_abi
from irc.ir.diagnostics import UserError
from irc.ir.symbols import Dim, Symbol, SymbolError, evaluate, format_dim


class ArgumentError(UserError):
    """A call's argument is not what the program was compiled for."""


@attrs.frozen
class ArgumentSpec:
    """One argument: a tensor with dtype, sizes and strides, or a number.

    `sizes` and `strides` are in elements and may mention symbols. A size that is a bare symbol
    binds it where it comes first; everything else is compared. `strides` None accepts any, and so
    does an entry None; the stride of a dimension of at most one element is not looked at.
    """

    name: str
    kind: Literal["tensor", "int", "float", "bool"]
    dtype: torch.dtype | None = None
    sizes: tuple[Dim, ...] = ()
    strides: tuple[Dim | None, ...] | None = None
    device: str = "cpu"
    #: The symbol that an int argument binds, if any.
    symbol: Dim | None = None

    def describe(self) -> str:
        """`tensor<float32, [s0, 8]>`, as error messages name it."""
        if self.kind != "tensor":
            return self.kind
        sizes = ", ".join(format_dim(d) for d in self.sizes)
        return f"{self.dtype} tensor of size [{sizes}]".removeprefix("torch.")


def check_arguments(specs: Sequence[ArgumentSpec], arguments: Sequence[object]) -> dict[str, int]:
    """The values of the symbols that `arguments` bind.

    Raises ArgumentError for the first argument that doesn't fit. Tensors come first to be bound,
    then compared, so an argument may mention a symbol that a later one binds.
    """
    if len(arguments) != len(specs):
        raise ArgumentError(
            f"the program takes {len(specs)} arguments and was called with {len(arguments)}"
        )
    symbols: dict[str, int] = {}
    origins: dict[str, str] = {}
    for spec, argument in zip(specs, arguments, strict=True):
        _check_kind(spec, argument)
        for dim, value, what in _bindable(spec, argument):
            if isinstance(dim, Symbol) and dim.name not in symbols:
                symbols[dim.name] = value
                origins[dim.name] = what
    for spec, argument in zip(specs, arguments, strict=True):
        _check_dims(spec, argument, symbols, origins)
    return symbols


class AcceptedKinds:
    """Knows arguments again like those of a call that was accepted, in a fraction of the test's
    time: the same sizes, strides and dtypes, and dispatch keys that were seen at that place.

    For programs whose arguments are tensors and numbers without symbols; never knows any other's.
    """

    def __init__(self, specs: Sequence[ArgumentSpec]) -> None:
        self._tensors: list[tuple[int, Any]] = []
        self._numbers: list[tuple[int, type]] = []
        self._count = len(specs) if all(_is_constant(s) for s in specs) else -1
        for position, spec in enumerate(specs):
            if spec.kind == "tensor":
                facts = spec.dtype, tuple(spec.sizes), spec.strides, set[int]()
                self._tensors.append((position, facts))
            else:
                self._numbers.append((position, _NUMBERS[spec.kind]))

    def knows(self, arguments: Sequence[Any]) -> bool:
        """Whether `check_arguments` would accept these."""
        if len(arguments) != self._count:
            return False
        for position, (dtype, sizes, strides, words) in self._tensors:
            tensor = arguments[position]
            if (
                type(tensor) not in _PLAIN
                or tensor.dtype is not dtype
                or tensor.shape != sizes
                or (strides is not None and tensor.stride() != strides)
                or torch._C._dispatch_keys(tensor).raw_repr() not in words
            ):
                return False
        return all([type(arguments[position]) is type_ for position, type_ in self._numbers])

    def accept(self, arguments: Sequence[Any]) -> None:
        """Remember the arguments of a call that `check_arguments` has accepted."""
        if len(arguments) == self._count:
            for position, (_, _, _, words) in self._tensors:
                words.add(torch._C._dispatch_keys(arguments[position]).raw_repr())


_NUMBERS: Mapping[str, type] = {"int": int, "float": float, "bool": bool}
_PLAIN = (torch.Tensor, torch.nn.Parameter)


def _is_constant(spec: ArgumentSpec) -> bool:
    """Whether an argument binds no symbol, and is compared with constants alone."""
    dims = (*spec.sizes, *(spec.strides or ()))
    return spec.symbol is None and all(isinstance(d, int) for d in dims)


def _bindable(spec: ArgumentSpec, argument: object) -> list[tuple[Dim, int, str]]:
    if spec.kind == "int" and spec.symbol is not None:
        return [(spec.symbol, int(argument), spec.name)]  # type: ignore[call-overload]
    if not isinstance(argument, torch.Tensor):
        return []
    dims = [
        (dim, size, f"{spec.name}.size({i})")
        for i, (dim, size) in enumerate(zip(spec.sizes, argument.shape, strict=True))
    ]
    for i, dim in enumerate(spec.strides or ()):
        if dim is not None and argument.shape[i] > 1:
            dims.append((dim, argument.stride(i), f"{spec.name}.stride({i})"))
    return dims


def _check_dims(
    spec: ArgumentSpec, argument: object, symbols: Mapping[str, int], origins: Mapping[str, str]
) -> None:
    for dim, value, what in _bindable(spec, argument):
        try:
            expected = evaluate(dim, symbols)
        except KeyError:
            continue  # a symbol that the program itself binds later
        except (ZeroDivisionError, SymbolError) as error:
            raise ArgumentError(f"{what}: {format_dim(dim)} has no value here: {error}") from error
        if value != expected:
            why = format_dim(dim)
            if not isinstance(dim, int):
                used = [n for n in origins if n in dim.symbols]
                why = (
                    f"{why} = {expected} ("
                    + ", ".join(f"{n} = {symbols[n]} from {origins[n]}" for n in used)
                    + ")"
                )
            raise ArgumentError(f"{what} is {value}, the program was compiled for {why}")


def _check_kind(spec: ArgumentSpec, argument: object) -> None:
    if spec.kind != "tensor":
        expected = _NUMBERS[spec.kind]
        if type(argument) is not expected:
            raise ArgumentError(
                f"argument {spec.name} must be of type {spec.kind}, got {type(argument).__name__}"
            )
        return
    if not isinstance(argument, torch.Tensor):
        raise ArgumentError(
            f"argument {spec.name} must be a {spec.describe()}, got {type(argument).__name__}"
        )
    problem = _tensor_problem(spec, argument)
    if problem is not None:
        raise ArgumentError(f"argument {spec.name}: expected a {spec.describe()}, {problem}")


def _tensor_problem(spec: ArgumentSpec, tensor: torch.Tensor) -> str | None:
    """What is wrong with the tensor, sizes and strides apart."""
    from torch._subclasses.fake_tensor import FakeTensor

    if isinstance(tensor, FakeTensor):
        return "got a fake tensor: it has no data"
    if tensor.device.type == "meta":
        return "got a meta tensor: it has no data"
    if tensor.is_nested:
        return "got a nested tensor: make it dense with to_padded_tensor()"
    if tensor.is_quantized:
        return "got a quantized tensor: call dequantize()"
    if tensor.layout != torch.strided:
        return f"got layout {tensor.layout}: call to_dense()"
    device_type = spec.device.split(":")[0]
    # Beside a GPU's tensors torch takes one number of the CPU, and attention saves such as its own.
    number = tensor.dim() == 0 and tensor.device.type == "cpu" and device_type == "cuda"
    if tensor.device.type != device_type and not number:
        return f"got one on {tensor.device}: move it with to({spec.device!r})"
    if tensor.dtype != spec.dtype:
        return f"got dtype {str(tensor.dtype).removeprefix('torch.')}"
    if tensor.dim() != len(spec.sizes):
        return f"got rank {tensor.dim()} instead of {len(spec.sizes)}: {list(tensor.shape)}"
    return _key_problem(tensor)


def _key_problem(tensor: torch.Tensor) -> str | None:
    if type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        return f"got a {type(tensor).__name__}, which has its own dispatch"
    if tensor.device.type == "cpu":
        required, allowed = torch_abi.dense_cpu_keys()
        keys = torch._C._dispatch_keys(tensor)
        if keys.raw_repr() & required != required or keys.raw_repr() & ~allowed:
            return f"got one that is wrapped or special: {keys}"
    return None
