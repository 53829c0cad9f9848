"""Faults that irc had once, by id: a test with the marker `fault("V1")` holds the row V1.

`pytest -m fault` runs them all. A fault is known here by one sentence; its tests stand in the
folder of the code that was at fault, so that they run with what they guard.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

ROWS: dict[str, str] = {
    # Wrong values, lost writes, memory.
    "V1": "views, copies and writes of the copy of a sliced argument",
    "V2": "a 0-dim result of an ATen call whose dtype its meta tensor gets wrong",
    "V3": "a custom operator that keeps its argument",
    "V4": "an argument that begins elsewhere in its storage than the traced one",
    "V5": "sym.refine without a fact that covers it",
    "V6": "unknown relations, dimensions beyond the rank and empty ranges in sym",
    "V7": "f32 scans accumulate as ATen's do",
    "V8": "promotion of complex numbers with 16-bit floats in decompositions",
    "V9": "max pooling of windows that hold nothing but padding and -inf",
    "V10": "as_strided of arguments of one element or rank 0",
    "V11": "frozen parameters that are written without a version counter",
    "V12": "a view of a written argument with an offset, with dynamic sizes",
    "V13": "variance of one NaN; integer and float constants that are told apart",
    "V14": "calls in the interpreter, clones with swapped values, blocks and their operations",
    "V15": "canonicalize on the layout level",
    "V16": "two programs that declare one operator differently",
    "V17": "strides are verified in nested loop groups",
    "V18": "indices out of bounds in texts of the loop and kernel levels",
    "V19": "legality predicates, each with a test that dies without it",
    "V20": "compile time of slices that are written one after another",
    "V21": "the sign of a zero that a number bounds, as in relu",
    "V22": "factors and addends that are multiplied by 0, with NaN and infinities in them",
    # Refused though eager runs it.
    "C1": "gradient checkpointing with dropout",
    "C2": "DTensor and tensor parallel models",
    "C3": "jagged nested tensors",
    "C4": "copy_ of a number",
    "C5": "expanded complex results, empty reductions, scatters and softmaxes",
    "C6": "Triton kernels of the user's in the graph",
    "C7": "sparse gradients of embeddings; arguments with the conjugate bit",
    "C8": "classes of errors are eager's",
    "C9": "aliasing and strides of results are eager's",
    "C10": "export, ahead-of-time entry points, pickling",
    "C11": "a symbolic size that turns out to be 1 while tracing",
    # On a GPU.
    "G1": "a choice of layout keeps the precision of convolutions",
    "G2": "compile time of RWKV",
    # Caches, texts, limits.
    "K1": "the mode of the cache folder",
    "K2": "keys follow the content of irc's sources",
    "K3": "keys hold what decides, as the number of threads",
    "K4": "folders and files of the cache are judged by descriptor",
    "K5": "the cache has a limit and evicts",
    "K6": "attributes that share much print in bounded space",
    "K7": "what a text may do when it is run",
    "K8": "bufferize in linear time, memory that is given back",
    "K9": "bad texts give one clear error",
    "K10": "a missing lowering and a crash name the line and leave a reproducer",
    # Use.
    "U1": "passes of one's own in torch.compile",
    "U2": "options are checked when they are given",
    "U3": "--explain of pipelines",
    "U4": "flags that would do nothing are refused",
    "U5": "reproducers name the passes that were loaded",
    "U6": "irc run: compiled mode, loading",
    "U7": "errors in a user's own pass are told as such",
    "U8": "from an operation's name to its class; resources; dialects",
    "U9": "--version, --list-pipelines, --show-dialects, --dump-pass-pipeline",
    "U11": "the table of decompositions agrees with the converters",
    "U12": "docs/design/contracts.md says what the code does",
}

# Rows without a test yet, one a line. Mending a row takes it out.
OPEN: frozenset[str] = frozenset(
    """
    """.split()
)


def rows_of(item: Any) -> Iterator[str]:
    """The rows that a collected test holds."""
    for marker in item.iter_markers("fault"):
        yield from marker.args
