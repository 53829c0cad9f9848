"""Print the versions that a test run depends on: `python -m tests.versions`."""

from __future__ import annotations

import importlib.metadata
import os
import platform

PACKAGES = (
    "torch", "triton", "llvmlite", "sympy", "networkx", "attrs", "transformers", "xdsl",
    "iree-base-compiler", "pytest", "hypothesis", "ruff", "mypy",
)  # fmt: skip


def versions() -> dict[str, str]:
    """Version by package name; "absent" for one that is not installed."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "absent"
    return found


def cpu_model() -> str:
    """The processor's name as the kernel gives it, else the architecture."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.machine()


def main() -> None:
    """Print one line per package, then the machine."""
    for package, version in versions().items():
        print(f"{package:20} {version}")
    print(f"{'cpu':20} {cpu_model()}, {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
