"""What ATen's operators do to memory that their schemas and tags don't say: one table.

`Schema.facts` looks an operator up, by its name (all overloads) or by "name.overload". Of operators
of other libraries nothing is known but their schemas.
"""

from __future__ import annotations

from enum import Flag, auto

#: The namespace of the operator that launches the user's kernels.
USER_KERNELS = "irc_triton"
#: The namespaces of irc's own operators.
OWN = frozenset(("irc", USER_KERNELS))


class Fact(Flag):
    """What an operator does. One that no row of the table names does none of it."""

    NONE = 0
    SAME_BEGIN = auto()
    """A view whose first element is its source's."""
    RESHAPES = auto()
    """A view of the elements in row-major order under other sizes."""
    MAYBE_VIEW = auto()
    """A view for some operands and a copy for others."""
    SELF_IF_ALIKE = auto()
    """The operand itself where nothing is to be changed, else a copy."""
    OVERLAPS = auto()
    """A view in which an element may stand more than once."""
    CONJUGATES = auto()
    """A view whose reads give the conjugates of what is in memory."""
    NEGATES = auto()
    """A view whose reads give the negatives of what is in memory."""
    OTHER_ELEMENTS = auto()
    """Reads its first operand's memory as elements of another size: eager refuses one that begins
    in its storage between such elements."""
    KEEPS_PLACE = auto()
    """Computes in a copy of the whole storage of `self`: the result begins there where `self` does
    in its own."""
    NEW_IF_DENSE = auto()
    """In what torch traces the result begins at 0 where `self` is dense."""
    BEGINS_INSIDE = auto()
    """A view whose first element is that at `index`, or at `start`, along `dim` of its source."""
    UNIFORM = auto()
    """Writes the same to each element: places may be named twice."""
    CLONES = auto()
    """Gives its operand's elements in memory that is nobody else's."""
    ASSIGNS = auto()
    """Writes its second operand's elements to its first."""


_TABLE: dict[Fact, str] = {
    Fact.SAME_BEGIN: "view _unsafe_view reshape _reshape_alias permute transpose t expand "
    "unsqueeze squeeze alias detach view_as unfold expand_as movedim",
    Fact.RESHAPES: "view _unsafe_view reshape _reshape_alias view_as reshape_as flatten unflatten",
    Fact.MAYBE_VIEW: "reshape contiguous to _to_copy expand_as flatten reshape_as ravel type_as "
    "resolve_conj resolve_neg real conj unflatten lift_fresh cpu narrow",
    Fact.SELF_IF_ALIKE: "contiguous to _to_copy",
    Fact.OVERLAPS: "unfold",
    Fact.CONJUGATES: "_conj",
    Fact.NEGATES: "_neg_view",
    Fact.OTHER_ELEMENTS: "view.dtype view_copy.dtype view_as_complex view_as_complex_copy",
    Fact.KEEPS_PLACE: "copy slice_scatter select_scatter diagonal_scatter as_strided_scatter",
    Fact.NEW_IF_DENSE: "copy",
    Fact.BEGINS_INSIDE: "slice select",
    Fact.UNIFORM: "fill_ zero_",
    Fact.CLONES: "clone",
    Fact.ASSIGNS: "copy_",
}

#: In-place changes of sizes and strides only: the view that each stands for. Without an overload
#: it has the operator's own.
IN_PLACE_VIEWS = {
    "transpose_": "transpose.int", "t_": "t.default", "squeeze_": "squeeze",
    "unsqueeze_": "unsqueeze.default", "swapdims_": "transpose.int", "swapaxes_": "transpose.int",
    "as_strided_": "as_strided.default", "detach_": "detach.default",
}  # fmt: skip

#: What waits for a group of processes without naming it, in whatever library.
WAITS = frozenset({"wait_tensor"})

#: What changes a storage itself, for which no value can stand.
STORAGE_CHANGES = {
    "set_": "it exchanges the storage under a tensor",
    "resize_": "it changes the size of a storage",
    "resize_as_": "it changes the size of a storage",
    "resize": "it changes the size of a storage",
    "set_data": "it exchanges the storage under a tensor",
}


#: The operator whose result is its operand's memory as elements of another type.
VIEW_AS = "aten.view.dtype"


class MatrixFactors:
    """How a matrix product calls its factors, and what it adds to them (None: nothing)."""

    def __init__(
        self, left: str, right: str, added: str | None = None, batched: bool = False
    ) -> None:
        self.left, self.right = left, right
        self.added = added
        self.batched = batched


_FACTORS = {
    "mm": MatrixFactors("self", "mat2"),
    "_int_mm": MatrixFactors("self", "mat2"),
    "addmm": MatrixFactors("mat1", "mat2", "self"),
    "bmm": MatrixFactors("self", "mat2", batched=True),
    "baddbmm": MatrixFactors("batch1", "batch2", "self", batched=True),
}
#: The overloads that make their result, and those of two matrices, without and with a bias.
MATRIX_PRODUCTS = frozenset(f"aten.{name}.default" for name in _FACTORS)
LINEARS = ("aten.mm.default", "aten.addmm.default")

#: The library's fused attention of a GPU; a CPU has no kernels for these.
GPU_ATTENTION = frozenset(
    f"aten._scaled_dot_product_{kernel}_attention.default"
    for kernel in ("flash", "efficient", "cudnn")
)


def factors_of(callee: str) -> MatrixFactors:
    """Those of a matrix product of ATen's, "aten.mm.out"; whichever overload. Raises KeyError."""
    return _FACTORS[callee.split(".")[1]]


#: ATen multiplies a batch of fewer points (rows by columns by depth) in loops of its own.
LOOPS = 400


def skips_unused_factors(device: str, element: str, points: int | None) -> bool:
    """Whether a matrix product of ATen's doesn't look at its factors where alpha is 0, so that
    their NaN and infinities stay outside: BLAS's gemm doesn't, which multiplies on a CPU matrices
    of f32 and f64, complex ones too, and everything on a GPU. ATen's own loops look, and oneDNN's
    kernels (of a batch of bf16 their results are undefined then). points: of one of a batch's
    products; None: of matrices."""
    if device != "cpu":
        return True
    is_blas = element in ("f32", "f64", "complex64", "complex128")
    return is_blas and (points is None or points >= LOOPS)


def _by_operator() -> dict[str, Fact]:
    facts: dict[str, Fact] = {}
    for fact, operators in _TABLE.items():
        for operator in operators.split():
            facts[operator] = facts.get(operator, Fact.NONE) | fact
    for operator in facts:
        facts[operator] |= facts.get(operator.partition(".")[0], Fact.NONE)
    return facts


_FACTS = _by_operator()


def facts_of(name: str, overload: str) -> Fact:
    """The facts of ATen's operator of that name and overload."""
    return _FACTS.get(f"{name}.{overload}") or _FACTS.get(name, Fact.NONE)
