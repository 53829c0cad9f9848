"""`Target`: all that decides what becomes of a program besides its text and the options.

    #irc.target<avx2, threads = 8>      # on the module: `irc.target.attribute.carried(module)`
    target = target_of(context)         # in a pass, which says `asks_target = True`
    target.is_gpu, target.fills(points), target.vector_bits

A program whose module carries a target means the same on every machine. `Target.host()` is asked at
the edges alone, for programs that carry none.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from irc.ir.diagnostics import InternalError, UserError
from irc.ir.registry import lookup_attribute
from irc.target import host
from irc.target.cpu import TargetFeatures
from irc.target.figures import settle_figures
from irc.target.host import LIBRARY_ELEMENTS
from irc.target.library_figures import LibraryFigures
from irc.target.names import GPUS, PROCESSORS

if TYPE_CHECKING:
    from irc.target.costs import Cost
    from irc.target.gpu import GpuFeatures

FLOATS = ("bfloat16", "float16", "float32", "float64")
PRECISIONS = ("highest", "high", "medium")


@attrs.frozen(cache_hash=True)
class Target(LibraryFigures):
    """What programs are made for.

    processor: the CPU or GPU that kernels run on. threads: how many compute a kernel or an operator
    of ATen's on the CPU. library: elements that oneDNN computes packed operations of; empty: there
    is no oneDNN, or it is switched off. default_float: the dtype of floats that nothing else gives
    one. product_precision: torch's, of f32 products. tf32_convolutions: cuDNN may compute f32
    convolutions with factors of 10 bits. deterministic: equal calls give equal bits. unusual:
    figures. Raises ValueError for what makes no sense.
    """

    processor: TargetFeatures | GpuFeatures
    threads: int = 1
    library: tuple[str, ...] = ("f32",)
    default_float: str = "float32"
    product_precision: str = "highest"
    tf32_convolutions: bool = True
    deterministic: bool = False
    unusual: tuple[tuple[str, Any], ...] = ()

    def __attrs_post_init__(self) -> None:
        settle_figures(self)
        if not 1 <= self.threads <= 1 << 16:
            raise ValueError(f"threads is {self.threads}, not from 1 to {1 << 16}")
        strange = [name for name in self.library if name not in LIBRARY_ELEMENTS]
        if strange:
            raise ValueError(f"library has {strange[0]!r}, not one of {LIBRARY_ELEMENTS}")
        object.__setattr__(self, "library", tuple(sorted(set(self.library))))
        if self.default_float not in FLOATS:
            raise ValueError(f"default_float is {self.default_float!r}, not one of {FLOATS}")
        if self.product_precision not in PRECISIONS:
            raise ValueError(
                f"product_precision is {self.product_precision!r}, not one of {PRECISIONS}"
            )

    # -- questions

    @property
    def is_gpu(self) -> bool:
        """Whether kernels run on a GPU."""
        return not isinstance(self.processor, TargetFeatures)

    @property
    def features(self) -> TargetFeatures:
        """The CPU. Raises UserError where kernels run on a GPU."""
        if isinstance(self.processor, TargetFeatures):
            return self.processor
        raise UserError(f"the target is a GPU ({self.processor.chip}), and this is for CPUs",
                        notes=("a CPU's target is needed, as avx2",))  # fmt: skip

    @property
    def gpu(self) -> GpuFeatures:
        """The GPU. Raises UserError where kernels run on a CPU."""
        if not isinstance(self.processor, TargetFeatures):
            return self.processor
        raise UserError(f"the target is a CPU ({self.processor.chip}), and this is for GPUs",
                        notes=("a GPU's target is needed, as sm_90",))  # fmt: skip

    @property
    def vector_bits(self) -> int:
        """The width of the vectors that code is made of."""
        return self.features.vector_bits

    def lanes(self, element: Any) -> int:
        """Elements of a type (f32, i64) in one vector."""
        return self.features.lanes(element.width)

    def fills(self, points: int) -> bool:
        """Whether so many points of a parallel space keep it busy."""
        return points >= self.processor.parallel

    def idles(self, points: int) -> bool:
        """Whether so few points of a parallel space leave half of it idle."""
        return 2 * points <= self.processor.parallel

    def keeps_rows(self, rows: int, points: int) -> bool:
        """Whether a kernel of so many points may be shared by whole rows."""
        return self.processor.keeps_rows(rows, points)

    def operations_per_byte(self, bits: int) -> int:
        """Floating-point operations on elements of so many bits in the time of a byte of memory."""
        return self.processor.operations_per_byte[0 if bits <= 16 else 1]

    def operations(self, cost: Cost) -> int:
        """What a cost comes to, in operations of a point."""
        return self.processor.operations(cost, self.processor.parallel)

    def time(self, cost: Cost) -> int:
        """What a cost comes to, in femtoseconds: more of anything, or fewer parallel points, never
        takes less."""
        return self.operations(cost) * self.processor.femtoseconds

    def seconds(self, cost: Cost) -> float:
        """As `time`, for people."""
        return self.time(cost) * 1e-15

    # -- where targets come from

    @staticmethod
    def host(gpu: bool = False) -> Target:
        """This machine (or its GPU; without one an sm_90) and torch's settings as they are now:
        they may change between calls. For edges only: what has a program asks that program."""
        return _record(*host.settings(gpu))

    @staticmethod
    def named(name: str) -> Target:
        """A known target by its name, the one of a text `#irc.target<...>`, or this machine
        ("host", "llvm"; its GPU: "triton"). Raises UserError."""
        return named(name)

    def __str__(self) -> str:
        attribute: Any = lookup_attribute("irc.target")
        return str(attribute(self))


_record = functools.lru_cache(maxsize=64)(Target)  # equal settings give one record


class _Processors(Mapping[str, "TargetFeatures | GpuFeatures"]):
    """The known processors by name, each made when it is first asked for: a process that compiles
    for a CPU reads nothing of GPUs."""

    def __init__(self) -> None:
        self._processors: dict[str, TargetFeatures | GpuFeatures] = {}

    def __getitem__(self, name: str) -> TargetFeatures | GpuFeatures:
        processor = self._processors.get(name)
        if processor is None:
            if name not in PROCESSORS:
                raise KeyError(name)
            processor = self._processors[name] = getattr(features_of(name in GPUS), name)()
        return processor

    def __contains__(self, name: object) -> bool:
        return name in PROCESSORS

    def __iter__(self) -> Iterator[str]:
        return iter(PROCESSORS)

    def __len__(self) -> int:
        return len(PROCESSORS)


def features_of(gpu: bool) -> type[TargetFeatures] | type[GpuFeatures]:
    """The class of the records of CPUs, or of GPUs."""
    if not gpu:
        return TargetFeatures
    from irc.target.gpu import GpuFeatures

    return GpuFeatures


KNOWN = _Processors()
_HOST = {"host": False, "llvm": False, "triton": True}


@functools.cache
def known(name: str) -> Target:
    """The target of a known processor, with torch's settings as they are at first."""
    return Target(KNOWN[name])


def named(name: str) -> Target:
    """As `Target.named`."""
    if name in KNOWN:
        return known(name)
    if name in _HOST:
        return Target.host(gpu=_HOST[name])
    if name.lstrip().startswith("#"):
        attribute: Any = lookup_attribute("irc.target")
        read: Target = attribute.read(name)
        return read
    from irc.ir.passes import did_you_mean

    raise UserError(
        f"there is no target '{name}'{did_you_mean(name, [*KNOWN, *_HOST])}",
        notes=(f"known are {', '.join(KNOWN)}, host (this machine), and #irc.target<...>",),
    )


def as_target(value: Target | str) -> Target:
    """The target that a caller names, or gives."""
    return value if isinstance(value, Target) else named(value)


def target_of(context: Any) -> Target:
    """The target of the program that a pass runs on. For passes that say `asks_target = True`."""
    target: Target | None = context.settled
    if target is None:
        asking = f"the pass '{context.current_pass}'" if context.current_pass else "a pass"
        raise InternalError(
            f"{asking} asks for the target of a program that has none",
            notes=("its class says `asks_target = True`, and a PassManager runs it",),
        )
    return target


def default_float(context: Any) -> str:
    """The dtype of floats that nothing else gives one; torch's for a program without a target."""
    target: Target | None = context.settled
    return "float32" if target is None else target.default_float


def library_figures(context: Any) -> LibraryFigures:
    """What libraries take; the usual figures for a program without a target."""
    target: Target | None = context.settled
    return known("avx2") if target is None else target


def own_parts(context: Any) -> int:
    """How many parts memory of a CPU kernel's own has at most; 0 for one for each of its points, as
    in a program without a target."""
    target: Target | None = context.settled
    if target is None or target.is_gpu:
        return 0
    return max(target.features.own_parts, target.threads)


def keeps_order(context: Any) -> bool:
    """Whether a GPU's threads may not add to one place in the order in which they get there."""
    target: Target | None = context.settled
    return target is not None and target.is_gpu and target.deterministic


def lone_bytes(context: Any) -> int:
    """From how many bytes on an array may have memory of its own; 0 where none has, as on a CPU."""
    target: Target | None = context.settled
    return target.gpu.lone_bytes if target is not None and target.is_gpu else 0


def of_kind(kind: str, context: Any) -> Target:
    """The target of the program, for a pass with an option that says of which kind ("cpu", "gpu",
    "": any). Raises UserError for another kind."""
    target = target_of(context)
    if kind not in ("", "cpu", "gpu"):
        raise UserError(f"the target is '{kind}', not cpu or gpu")
    if kind and (kind == "gpu") != target.is_gpu:
        raise UserError(
            f"the pass is told a {kind}, and the program is made for {target}",
            notes=("its module carries that target; --target=NAME gives it another",),
        )
    return target


__all__ = ["KNOWN", "Target", "as_target", "default_float", "features_of", "keeps_order",
           "known", "library_figures", "lone_bytes", "named", "of_kind", "own_parts",
           "target_of"]  # fmt: skip
