"""By which way a program calls an ATen operator: a C shim, torch's C dispatcher, or Python.

* `shim`: a C function of torch for this very operator, below the dispatcher for most. Its C
  signature follows from the operator's schema by a fixed rule (`shim_parameters`), and only
  functions in `SHIMS` are used: those whose derived signature a test compared with torch's header.
* `dispatcher`: `torch_call_dispatcher`, a stack of 64-bit words, for schemas without Scalar,
  Generator, Storage, Stream, complex or dictionary arguments.
* `boxed`: the operator's Python object, for all others. Always right, about a microsecond dearer.

A shim takes every Scalar as a double, which changes integer results (`int_tensor * 2` would become
floating): with such a parameter it is used only when the tensors are floating point.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal

import attrs
import torch

from irc.boundary import torch_abi
from irc.boundary.templates import fill
from irc.dialects.aten.facts import OWN, USER_KERNELS
from irc.dialects.aten.schema import load_own_operators
from irc.ir.diagnostics import UserError

if TYPE_CHECKING:
    from irc.boundary.cuda import Gpu

PathName = Literal["shim", "dispatcher", "boxed"]

#: Operators whose shim's signature was compared with the header; views and resizes left out,
#: which a program makes itself.
_SHIM_NAMES = {
    "aten": """
        _adaptive_avg_pool2d _adaptive_avg_pool2d_backward _adaptive_avg_pool3d
        _adaptive_avg_pool3d_backward _addmm_activation _cdist_backward _cdist_forward
        _dyn_quant_matmul_4bit _dyn_quant_pack_4bit_weight _embedding_bag
        _embedding_bag_dense_backward _embedding_bag_forward_only
        _embedding_bag_per_sample_weights_backward _fft_c2c _fft_r2c
        _fused_moving_avg_obs_fq_helper_functional _fused_rms_norm _grouped_mm _int_mm.out
        _pdist_backward _pdist_forward _scaled_dot_product_flash_attention_for_cpu
        _scaled_dot_product_flash_attention_for_cpu_backward
        _scaled_dot_product_fused_attention_overrideable_backward _segment_reduce_backward
        _trilinear _weight_int8pack_mm abs adaptive_max_pool2d adaptive_max_pool2d_backward
        adaptive_max_pool3d adaptive_max_pool3d_backward add.Scalar add.Tensor addbmm addmm.out
        addmv angle avg_pool2d avg_pool2d_backward avg_pool3d avg_pool3d_backward baddbmm.out
        bernoulli_.Tensor bernoulli_.float bmm.out bucketize.Tensor cat cholesky_inverse
        cholesky_solve convolution convolution_backward cummax cummin cumprod cumsum exponential
        fill_.Scalar fractional_max_pool2d fractional_max_pool2d_backward fractional_max_pool3d
        fractional_max_pool3d_backward gcd geqrf grid_sampler_2d_backward grid_sampler_3d
        grid_sampler_3d_backward hann_window histc index.Tensor index_put index_reduce kthvalue
        logcumsumexp lu_unpack masked_scatter masked_scatter_backward masked_select
        max_pool2d_with_indices max_pool2d_with_indices_backward max_pool3d_with_indices
        max_pool3d_with_indices_backward max_unpool2d max_unpool3d median mkldnn_rnn_layer mm.out
        mode mul.Scalar mul.Tensor nanmedian native_dropout nonzero nonzero_static
        normal_functional ormqr pad polar pow.Scalar pow.Tensor_Scalar pow.Tensor_Tensor rand
        rand.generator rand_like rand_like.generator randint randint.generator randint.low
        randint.low_out randint_like randint_like.low_dtype randn randn.generator randn_like
        randn_like.generator randperm repeat_interleave.Tensor replication_pad1d_backward
        replication_pad2d_backward scatter.src_out scatter.value_out scatter_reduce.two_out
        searchsorted.Scalar searchsorted.Tensor segment_reduce soft_margin_loss_backward sort
        sort.stable topk triangular_solve uniform upsample_bicubic2d_backward
        upsample_linear1d_backward upsample_trilinear3d_backward
    """,
    "mkl": """
        _mkl_linear
    """,
    "mkldnn": """
        _convolution_pointwise _convolution_pointwise.binary _convolution_pointwise_.binary
        _convolution_transpose_pointwise _linear_pointwise _linear_pointwise.binary
    """,
}


def _shim_keys() -> frozenset[tuple[str, str, str]]:
    keys = set()
    for namespace, names in _SHIM_NAMES.items():
        for full in names.split():
            name, _, overload = full.partition(".")
            keys.add((namespace, name, overload))
    return frozenset(keys)


#: The same as (namespace, name, overload).
SHIMS = _shim_keys()

#: Operators that only GPUs have shims of, compared likewise.
CUDA_SHIMS = frozenset(
    ("aten", name, overload)
    for name, overload in (
        ("_scaled_dot_product_flash_attention", ""),
        ("_scaled_dot_product_flash_attention_backward", ""),
        ("_scaled_dot_product_efficient_attention", ""),
        ("_scaled_dot_product_efficient_attention_backward", ""),
        ("_scaled_dot_product_cudnn_attention", ""),
        ("_scaled_dot_product_cudnn_attention_backward", ""),
        ("_scaled_mm", "out"),
    )
)

#: Shims that aren't named by the rule.
_IRREGULAR = {
    ("mkldnn", "_linear_pointwise", ""): "aoti_torch_cpu__linear_pointwise",
    ("mkldnn", "_linear_pointwise", "binary"): "aoti_torch_cpu__linear_pointwise_binary",
    ("mkl", "_mkl_linear", ""): "aoti_torch_cpu__mkl_linear",
    ("mkldnn", "_convolution_pointwise_", "binary"): (
        "aoti_torch_cpu_mkldnn__convolution_pointwise_binary_"
    ),
}

#: Operators that write an argument, whose shims give a handle on it nevertheless.
_GIVES_ARGUMENT = frozenset({"mkldnn::_convolution_pointwise_"})


@attrs.frozen
class ShimParameter:
    """One C parameter of a shim: the schema argument that it carries (or a result) and its C form.

    `form`: handle, handle?, i64, i64?, double, double?, i32, i32?, text, text?, i64s, i64s?, i32s,
    handles, handles?, doubles?, generator?, length, index, result.
    """

    argument: str
    form: str


@attrs.frozen
class CallPath:
    """How to call one operator. `symbol` and `parameters` only for a shim."""

    name: PathName
    symbol: str = ""
    parameters: tuple[ShimParameter, ...] = ()
    #: True when a Scalar goes through a double: right only for floating point tensors.
    floating_only: bool = False


#: C form of each schema type, without those that need a length.
_FORMS = {
    "Tensor": "handle",
    "Optional[Tensor]": "handle?",
    "int": "i64",
    "SymInt": "i64",
    "Optional[int]": "i64?",
    "Optional[SymInt]": "i64?",
    "float": "double",
    "Optional[float]": "double?",
    "number": "double",
    "Scalar": "double",
    "Optional[number]": "double?",
    "Optional[Scalar]": "double?",
    "bool": "i32",
    "Optional[bool]": "i32?",
    "str": "text",
    "Optional[str]": "text?",
    "ScalarType": "i32",
    "Optional[ScalarType]": "i32?",
    "Optional[Layout]": "i32?",
    "Layout": "i32",
    "Optional[MemoryFormat]": "i32?",
    "MemoryFormat": "i32",
    "Optional[Generator]": "generator?",
}
_LIST_FORMS = {
    "List[int]": "i64s",
    "List[SymInt]": "i64s",
    "Optional[List[int]]": "i64s?",
    "Optional[List[SymInt]]": "i64s?",
    "List[bool]": "i32s",
    "List[Tensor]": "handles",
    "List[Optional[Tensor]]": "handles?",
    "List[Optional[number]]": "doubles?",
}
#: Schema types that torch's C dispatcher interface can carry, alone, optional or in a list.
_DISPATCHER_TYPES = frozenset(
    {
        "Tensor",
        "int",
        "SymInt",
        "float",
        "bool",
        "ScalarType",
        "Layout",
        "MemoryFormat",
        "str",
    }
)


def type_of(argument: torch._C.Argument) -> str:
    """The schema type of an argument as text, `ScalarType` and the like not turned into int."""
    return str(argument.real_type)


def shim_symbol(namespace: str, name: str, overload: str, device: str = "cpu") -> str:
    """The name that torch gives to an operator's shim for a kind of device, whether or not it has
    one."""
    if (namespace, name, overload) in _IRREGULAR:
        return _IRREGULAR[namespace, name, overload]
    suffix = f"_{overload}" if overload not in ("", "default") else ""
    prefix = "" if namespace == "aten" else f"{namespace}_"
    return f"aoti_torch_{device}_{prefix}{name}{suffix}"


def shim_parameters(schema: torch._C.FunctionSchema) -> tuple[ShimParameter, ...] | None:
    """The C parameters of a shim with this schema; None when the rule doesn't cover a type.

    Outputs given by the caller come first; fresh results last, one handle pointer each.
    """
    outputs = [a for a in schema.arguments if a.is_out]
    inputs = [a for a in schema.arguments if not a.is_out]
    parameters: list[ShimParameter] = []
    for argument in (*outputs, *inputs):
        type_ = type_of(argument)
        if type_ in _FORMS:
            parameters.append(ShimParameter(argument.name, _FORMS[type_]))
        elif type_ in _LIST_FORMS:
            parameters.append(ShimParameter(argument.name, _LIST_FORMS[type_]))
            parameters.append(ShimParameter(argument.name, "length"))
        elif type_ in ("Device", "Optional[Device]"):
            parameters.append(ShimParameter(argument.name, "i32?" if "Opt" in type_ else "i32"))
            parameters.append(ShimParameter(argument.name, "index"))
        else:
            return None
    mutates_self = any(a.alias_info is not None and a.alias_info.is_write for a in inputs)
    if not outputs and (not mutates_self or schema.name in _GIVES_ARGUMENT):
        for i, result in enumerate(schema.returns):
            if str(result.type) not in ("Tensor", "int"):
                return None
            parameters.append(ShimParameter(f"result{i}", "result"))
    return tuple(parameters)


def dispatcher_can(schema: torch._C.FunctionSchema) -> bool:
    """Whether torch's C dispatcher interface carries every argument and result of the schema."""
    if any(str(r.type) not in ("Tensor", "int", "float", "bool") for r in schema.returns):
        return False
    if any(_lists_symbols(a.real_type) for a in schema.arguments):
        return False  # torch 2.13 makes a list of symbolic sizes, which int[] kernels refuse
    boxes = any("Optional[" in type_of(a) for a in schema.arguments)  # also in a list
    if boxes and torch_abi.symbol_address("torch_new_stable_ivalue") is None:
        return False
    return all(_innermost(type_of(a)) in _DISPATCHER_TYPES for a in schema.arguments)


def _lists_symbols(type_: torch._C.JitType) -> bool:
    """Whether it is SymInt[], which prints as a list of ints."""
    if type_.kind() == "OptionalType":
        return _lists_symbols(type_.getElementType())
    return type_.kind() == "ListType" and type_.getElementType().kind() == "SymIntType"


def _innermost(type_: str) -> str:
    while type_.endswith("]"):
        type_ = type_[type_.index("[") + 1 : -1]
    return type_


@functools.lru_cache(maxsize=4096)
def classify(
    op: torch._ops.OpOverload, *, floating: bool, device: str = "cpu", gpu: Gpu | None = None
) -> CallPath:
    """The fastest way to call `op` right. `floating`: are its tensors floating point? `device`: the
    kind of device that they are on, "" where they differ; `gpu` has the functions for GPUs."""
    schema = op._schema
    namespace, name = schema.name.split("::")
    key = (namespace, name, schema.overload_name)
    if device and (key in SHIMS or (device == "cuda" and key in CUDA_SHIMS)):
        symbol = shim_symbol(*key, device)
        parameters = shim_parameters(schema)
        through_double = any("number" in str(a.type) for a in schema.arguments)
        address = torch_abi.symbol_address if gpu is None else gpu.symbol_address
        known = parameters is not None and address(symbol) is not None
        if known and (floating or not through_double):
            return CallPath("shim", symbol, parameters or (), through_double)
    if dispatcher_can(schema):
        return CallPath("dispatcher")
    return CallPath("boxed")


@attrs.frozen
class Named:
    """A dtype, layout, memory_format or device in an ATen call's arguments, by its torch name."""

    kind: Literal["dtype", "layout", "memory_format", "device"]
    name: str

    def resolve(self) -> object:
        """The torch object; ValueError for a name that torch doesn't have."""
        if self.kind == "device":
            return torch.device(self.name)
        cls = {
            "dtype": torch.dtype,
            "layout": torch.layout,
            "memory_format": torch.memory_format,
        }[self.kind]
        named = getattr(torch, self.name, None)
        if not isinstance(named, cls):
            raise ValueError(f"torch has no {self.kind} {self.name!r}")
        return named

    def code(self) -> int:
        """The integer that torch's C interface uses for it."""
        if self.kind == "dtype":
            return torch_abi.dtype_code(self.resolve())  # type: ignore[arg-type]
        if self.kind == "device":
            device_type = torch.device(self.name).type
            return torch_abi.c_function(f"aoti_torch_device_type_{device_type}", ctypes.c_int32)()
        name = f"aoti_torch_{self.kind}_{self.name}"
        return torch_abi.c_function(name, ctypes.c_int32)()


    def device_index(self) -> int:
        """Which device of its kind a device is, -1 for the current one."""
        index = torch.device(self.name).index
        return -1 if index is None else index


def find_operator(callee: str) -> torch._ops.OpOverload:
    """The operator named `namespace.name.overload`. Raises UserError when torch doesn't have it."""
    namespace, _, rest = callee.partition(".")
    name, _, overload = rest.partition(".")
    load_own_operators(namespace)
    packet = getattr(getattr(torch.ops, namespace), name, None) if namespace and name else None
    if packet is None or (overload or "default") not in packet.overloads():
        raise UserError(
            f"torch has no operator {callee}", notes=("is the library loaded that defines it?",)
        )
    return getattr(packet, overload or "default")


def function_of(op: torch._ops.OpOverload) -> Callable[..., Any]:
    """What to call for an operator in Python: one of irc's own is a function, which needs no way
    through torch."""
    if op.namespace not in OWN:
        return op
    from irc.dialects.aten.own import FUNCTIONS

    namespace, name = op._schema.name.split("::")
    function = FUNCTIONS.get(f"{namespace}.{name}.default")
    if function is None:
        from irc.boundary import cuda_generator

        function = cuda_generator.FUNCTIONS.get(name, op)
    return function


def complex_number(items: tuple[object, ...] | list[object]) -> complex | None:
    """The number that a list ["complex", real, imaginary] stands for; None for any other list."""
    if len(items) == 3 and items[0] == "complex" and isinstance(items[0], str):
        return complex(items[1], items[2])  # type: ignore[call-overload]
    return None


def _resolve_names(template: object) -> object:
    if isinstance(template, Named):
        return template.resolve()
    if isinstance(template, tuple):
        number = complex_number(template)
        if number is not None:
            return number
        return tuple(_resolve_names(item) for item in template)
    return template


def _flat(results: Iterable[object]) -> Iterator[object]:
    for item in results:
        if isinstance(item, (tuple, list)):
            yield from item
        else:
            yield item


def boxed_callable(
    callee: str, arguments: tuple[tuple[str, object], ...]
) -> Callable[..., tuple[object, ...]]:
    """A function of the dynamic values: calls `callee`, returns its results as one flat tuple.

    `arguments` are (schema name, template) pairs: constants, `Named`, `Dynamic`, tuples for lists.
    """
    op = find_operator(callee)
    if op.namespace == USER_KERNELS:
        from irc.boundary.user_launches import prepared

        return prepared(dict(arguments))
    function = function_of(op)
    templates = {name: _resolve_names(template) for name, template in arguments}
    positional = []
    for argument in op._schema.arguments:
        if argument.kwarg_only or argument.name not in templates:
            break
        positional.append(templates.pop(argument.name))

    def call(*values: object) -> tuple[object, ...]:
        keywords = {name: fill(template, values) for name, template in templates.items()}
        result = function(*(fill(template, values) for template in positional), **keywords)
        if isinstance(result, (tuple, list)):
            return tuple(_flat(result))
        return () if result is None and not op._schema.returns else (result,)

    return call


def replay_callable(callee: str, arguments: tuple[tuple[str, object], ...]) -> Callable[..., None]:
    """A function that repeats a failed call through Python, so that torch raises its own error."""
    call = boxed_callable(callee, arguments)

    def replay(*values: object) -> None:
        text = torch_abi.last_error_text()
        call(*values)
        raise RuntimeError(f"{callee}: {text}")

    return replay
