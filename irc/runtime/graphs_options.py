"""What a build is told about CUDA graphs; light, so that other builds import nothing of them."""

from __future__ import annotations

import attrs


@attrs.frozen
class GraphOptions:
    """`sizes`: of how many sizes a program has graphs. `remarks`: which are told, as the option."""

    sizes: int = 8
    remarks: str = ""
