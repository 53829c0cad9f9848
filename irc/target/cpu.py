"""CPUs, as passes and the code generator see them.

`TargetFeatures` is a frozen value: it decides vector widths and makes LLVM's machine. Only `host`
and `generic` ask the machine; llvmlite is loaded for that alone.
"""

from __future__ import annotations

import functools
import platform
import threading
from typing import Any

import attrs

from irc.target.cpu_figures import CpuFigures, unusual_figures
from irc.target.figures import evolve, settle_figures

_initialize_lock = threading.Lock()
_initialized = False

#: The instruction sets, by architecture, that LLVM may choose for what irc generates: sets for
#: operating systems, cryptography or random numbers make no difference to it.
INSTRUCTION_SETS: dict[str, tuple[str, ...]] = {
    "x86_64": tuple("""
        adx aes amx-bf16 amx-tile avx avx10.1 avx10.2 avx2 avx512bf16 avx512bitalg avx512bw
        avx512cd avx512dq avx512f avx512fp16 avx512ifma avx512vbmi avx512vbmi2 avx512vl avx512vnni
        avx512vp2intersect avx512vpopcntdq avxifma avxneconvert avxvnni avxvnniint16 avxvnniint8 bmi
        bmi2 ccmp cf
        cmpccxadd cx16 egpr f16c fma fma4 gfni lzcnt movbe movdiri ndd nf pclmul popcnt ppx prfchw
        push2pop2 raoint sahf sse3 sse4.1 sse4.2 sse4a ssse3 tbm vaes vpclmulqdq xop zu
    """.split()),
    "aarch64": tuple("""
        aes bf16 complxnum crc cssc dotprod flagm fp16fml fptoint fullfp16 i8mm jsconv lse lse2
        mops rcpc rcpc-immo rdm sha2 sha3 sve sve2
    """.split()),
}  # fmt: skip
#: What each CPU of an architecture has, for names of chips that LLVM doesn't know.
_ALWAYS = {
    "x86_64": ("64bit", "cmov", "cx8", "sse", "sse2"),
    "aarch64": ("fp-armv8", "neon"),
}
_V2 = ("cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3")
_V3 = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")
_V4 = (*_V3, "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl")
_AVX512 = frozenset(("avx512f", "avx512bw", "avx512dq", "avx512vl"))
#: Widths of vector registers, in bits, that there is code for.
WIDTHS = (128, 256, 512)
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")


def initialize_llvm() -> Any:
    """Set up llvmlite's native target and assembly printer once; return `llvmlite.binding`."""
    global _initialized
    import llvmlite.binding as llvm

    with _initialize_lock:
        if not _initialized:
            llvm.initialize_native_target()
            llvm.initialize_native_asmprinter()
            _initialized = True
    return llvm


@attrs.frozen(cache_hash=True)
class TargetFeatures(CpuFigures):
    """One CPU; its speeds are those of a core.

    triple: LLVM's, of its architecture and operating system. chip: LLVM's name of it. sets: its
    instruction sets, of `INSTRUCTION_SETS`; that one is there does not say that it is fast.
    vector_bits: the width of the vectors that code is made of. fast_division: a vector of quotients
    costs less than an estimate and a Newton step (Zen 4 divides sixteen f32 in ten cycles, Intel's
    server processors in sixteen, where they multiply 32 in one: uops.info). parallel: so many
    points of a parallel space keep it busy, however many threads there are. operations_per_byte:
    floating-point operations in the time of a byte of memory, for 16 and 32 bits (an estimate for
    one core with 256-bit vectors). unusual: figures. Raises ValueError for what no CPU is.
    """

    triple: str
    chip: str
    sets: tuple[str, ...]
    vector_bits: int
    fast_division: bool = False
    parallel: int = 32
    operations_per_byte: tuple[int, int] = (8, 8)
    unusual: tuple[tuple[str, Any], ...] = ()
    has_fma: bool = attrs.field(init=False, eq=False)
    has_avx2: bool = attrs.field(init=False, eq=False)
    has_avx512: bool = attrs.field(init=False, eq=False)
    has_f16c: bool = attrs.field(init=False, eq=False)
    has_bf16: bool = attrs.field(init=False, eq=False)

    def __attrs_post_init__(self) -> None:
        known = INSTRUCTION_SETS.get(self.architecture)
        if known is None or not _is_triple(self.triple):
            names = " or ".join(INSTRUCTION_SETS)
            raise ValueError(f"triple is {self.triple!r}, not ARCHITECTURE-VENDOR-SYSTEM for "
                             f"{names}")  # fmt: skip
        if not _is_chip(self.chip):
            raise ValueError(f"chip is {self.chip!r}, no name of a processor")
        strange = sorted(set(self.sets).difference(known))
        if strange:
            raise ValueError(f"sets has {strange[0]!r}, which is no instruction set of "
                             f"{self.architecture} that code is made for")  # fmt: skip
        if self.vector_bits not in WIDTHS:
            raise ValueError(f"vector_bits is {self.vector_bits}, not one of {WIDTHS}")
        check_speeds(self.parallel, self.operations_per_byte)
        settle_figures(self)
        sets = frozenset(self.sets)
        arm = self.architecture == "aarch64"
        avx512 = sets >= _AVX512
        for name, value in (
            ("sets", tuple(sorted(sets))),
            ("has_fma", arm or "fma" in sets),
            ("has_avx2", "avx2" in sets and "fma" in sets),
            ("has_avx512", avx512),
            ("has_f16c", arm or "f16c" in sets),
            ("has_bf16", "bf16" in sets if arm else avx512 and "avx512bf16" in sets),
        ):
            object.__setattr__(self, name, value)

    @staticmethod
    def host() -> TargetFeatures:
        """This machine, detected once per process."""
        return _detect_host()

    @staticmethod
    def avx2() -> TargetFeatures:
        """x86-64 with AVX2, FMA and F16C and nothing newer (x86-64-v3)."""
        return TargetFeatures("x86_64-unknown-linux-gnu", "x86-64-v3", _V3, 256)

    @staticmethod
    def avx512() -> TargetFeatures:
        """x86-64 with the AVX-512 of x86-64-v4."""
        return TargetFeatures("x86_64-unknown-linux-gnu", "x86-64-v4", _V4, 512)

    @staticmethod
    def sse2() -> TargetFeatures:
        """What every x86-64 has."""
        return TargetFeatures("x86_64-unknown-linux-gnu", "x86-64", (), 128)

    @staticmethod
    def neon() -> TargetFeatures:
        """64-bit ARM with its baseline vector unit."""
        return TargetFeatures("aarch64-unknown-linux-gnu", "generic", (), 128)

    @staticmethod
    def generic() -> TargetFeatures:
        """This machine's architecture with only what every such CPU has."""
        arm = platform.machine() in ("aarch64", "arm64")
        return TargetFeatures.neon() if arm else TargetFeatures.sse2()

    @property
    def architecture(self) -> str:
        """The architecture, by LLVM's name."""
        return self.triple.partition("-")[0]

    @property
    def is_x86(self) -> bool:
        """Whether it is an x86-64."""
        return self.architecture == "x86_64"

    def lanes(self, element_bits: int) -> int:
        """Elements of `element_bits` bits in one vector register."""
        return self.vector_bits // element_bits

    def keeps_rows(self, rows: int, points: int) -> bool:
        """Whether a kernel of so many points may be shared by whole rows: there are as many as
        keep threads busy, or one thread has the points anyway."""
        return rows >= self.parallel or points <= self.serial

    def llvm_features(self) -> str:
        """LLVM's text of the instruction sets: all that there are are on, all others off."""
        sets = set(self.sets)
        off = [f"-{name}" for name in INSTRUCTION_SETS[self.architecture] if name not in sets]
        if self.vector_bits == 512 and self.is_x86:
            # Intel's server CPUs are tuned to 256 bits by LLVM; the generator has the width.
            off.append("-prefer-256-bit")
        on = (*_ALWAYS[self.architecture], *self.sets)
        return ",".join([*off, *(f"+{name}" for name in on)])

    def missing_here(self, needed: tuple[str, ...]) -> tuple[str, ...]:
        """What this CPU lacks of `needs()` of another."""
        own = {self.architecture, *self.sets}
        return tuple(name for name in needed if name not in own)

    def needs(self) -> tuple[str, ...]:
        """What a machine must have to run code for this CPU: the architecture, and its sets."""
        return (self.architecture, *self.sets)

    def cache_key(self) -> str:
        """A text equal only for targets for which the generated code is the same."""
        return f"{self.triple};{self.chip};{self.vector_bits};{self.fast_division};{self.sets}"


def _is_triple(text: str) -> bool:
    """Whether a text is a triple of LLVM's: three or four words with hyphens between them."""
    words = text.split("-")
    return len(words) in (3, 4) and all(words) and _LETTERS.union("_.-").issuperset(text)


def _is_chip(text: str) -> bool:
    """Whether a text may be the name of a processor."""
    begins = text[:1] in _LETTERS and len(text) <= 32
    return begins and _LETTERS.union("_.+-").issuperset(text)


def check_speeds(parallel: int, operations_per_byte: tuple[int, int]) -> None:
    """Raise ValueError for speeds that no processor has."""
    if not 1 <= parallel <= 1 << 20:
        raise ValueError(f"parallel is {parallel}, not from 1 to {1 << 20}")
    speeds = operations_per_byte
    if len(speeds) != 2 or not all(1 <= speed <= 1 << 20 for speed in speeds):
        raise ValueError(f"operations_per_byte is {list(speeds)}, not two numbers from 1 to "
                         f"{1 << 20}")  # fmt: skip


@functools.cache
def _detect_host() -> TargetFeatures:
    llvm = initialize_llvm()
    triple = llvm.get_process_triple()
    architecture = triple.split("-")[0].replace("arm64", "aarch64")
    triple = "-".join([architecture, *triple.split("-")[1:]])
    host = dict(llvm.get_host_cpu_features())
    sets = tuple(name for name in INSTRUCTION_SETS[architecture] if host.get(name, False))
    if "amx-tile" in sets:
        from irc.target.matrices import allows_matrices  # not for processors without them

        if not allows_matrices():
            sets = tuple(name for name in sets if not name.startswith("amx"))
    if architecture == "aarch64":
        return TargetFeatures(triple, llvm.get_host_cpu_name(), sets, 128)
    has_avx512 = set(sets) >= _AVX512
    has_avx2 = "avx2" in sets and "fma" in sets
    chip = llvm.get_host_cpu_name()
    width = 512 if has_avx512 else 256 if has_avx2 else 128
    record = TargetFeatures(triple, chip, sets, width, fast_division=chip.startswith("znver"))
    return evolve(record, **unusual_figures(chip, sets))


__all__ = ["INSTRUCTION_SETS", "WIDTHS", "TargetFeatures", "check_speeds", "initialize_llvm"]
