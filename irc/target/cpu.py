"""What the CPU code generator may assume about the machine it emits for.

`TargetFeatures` is a frozen value: it enters cache keys (`cache_key`), decides vector widths, and
makes the LLVM target machine.  llvmlite is loaded only when a host is detected.
"""

from __future__ import annotations

import functools
import platform
import threading
from typing import Any

import attrs

_initialize_lock = threading.Lock()
_initialized = False


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


@attrs.frozen
class TargetFeatures:
    """One CPU as the generator sees it.

    `cpu` and `features` are LLVM's CPU name and `+a,-b` feature string; `vector_bits` is the width
    of one vector register.  A flag says that the instructions exist, not that they are fast.
    """

    name: str
    architecture: str
    cpu: str
    features: str
    vector_bits: int
    has_fma: bool
    has_avx2: bool = False
    has_avx512: bool = False
    has_f16c: bool = False
    has_bf16: bool = False

    @staticmethod
    def host() -> TargetFeatures:
        """The features of this machine, detected once per process."""
        return _detect_host()

    @staticmethod
    def avx2() -> TargetFeatures:
        """x86-64 with AVX2, FMA and F16C and nothing newer, also on a machine that has more."""
        return TargetFeatures(
            name="avx2",
            architecture="x86_64",
            cpu="x86-64-v3",
            features="",
            vector_bits=256,
            has_fma=True,
            has_avx2=True,
            has_f16c=True,
        )

    @staticmethod
    def neon() -> TargetFeatures:
        """64-bit ARM with its baseline vector unit."""
        return TargetFeatures(
            name="neon",
            architecture="aarch64",
            cpu="generic",
            features="+neon",
            vector_bits=128,
            has_fma=True,
            has_f16c=True,
        )

    @staticmethod
    def generic() -> TargetFeatures:
        """This machine's architecture with only what every such CPU has."""
        if platform.machine() in ("aarch64", "arm64"):
            return TargetFeatures.neon()
        return TargetFeatures(
            name="generic",
            architecture="x86_64",
            cpu="x86-64",
            features="",
            vector_bits=128,
            has_fma=False,
        )

    @property
    def divides_fast(self) -> bool:
        """Whether a vector of quotients costs less than an estimate and a Newton step.

        Zen 4 divides sixteen f32 in ten cycles, Intel's server processors in sixteen, where they
        multiply 32 in one (uops.info).
        """
        return self.cpu.startswith("znver")

    def lanes(self, element_bits: int) -> int:
        """Elements of `element_bits` bits in one vector register."""
        return self.vector_bits // element_bits

    def cache_key(self) -> str:
        """A text equal only for targets for which the generated code is the same."""
        return f"{self.architecture};{self.cpu};{self.vector_bits};{self.features}"

    def triple(self) -> str:
        """The LLVM target triple: this process's, or Linux on another architecture."""
        llvm = initialize_llvm()
        own = llvm.get_process_triple()
        if own.split("-")[0] == self.architecture:
            return own
        return f"{self.architecture}-unknown-linux-gnu"


@functools.cache
def _detect_host() -> TargetFeatures:
    llvm = initialize_llvm()
    architecture = llvm.get_process_triple().split("-")[0].replace("arm64", "aarch64")
    host = dict(llvm.get_host_cpu_features())
    if architecture == "aarch64":
        return attrs.evolve(
            TargetFeatures.neon(),
            name="host-neon",
            cpu=llvm.get_host_cpu_name(),
            features=_feature_text(host),
            has_bf16=host.get("bf16", False),
        )
    has_avx512 = all(host.get(f"avx512{part}", False) for part in ("f", "bw", "dq", "vl"))
    has_avx2 = host.get("avx2", False) and host.get("fma", False)
    if has_avx512:
        # Intel's server CPUs are tuned to 256 bits by LLVM; the generator has chosen the width.
        host["prefer-256-bit"] = False
    width = 512 if has_avx512 else 256 if has_avx2 else 128
    return TargetFeatures(
        name="host-avx512" if has_avx512 else "host-avx2" if has_avx2 else "host-sse",
        architecture=architecture,
        cpu=llvm.get_host_cpu_name(),
        features=_feature_text(host),
        vector_bits=width,
        has_fma=host.get("fma", False),
        has_avx2=has_avx2,
        has_avx512=has_avx512,
        has_f16c=host.get("f16c", False),
        has_bf16=has_avx512 and host.get("avx512bf16", False),
    )


def _feature_text(features: dict[str, bool]) -> str:
    return ",".join(f"{'+' if on else '-'}{name}" for name, on in sorted(features.items()))
