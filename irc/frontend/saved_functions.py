"""Functions that torch saves: `torch.compile(f, backend="irc", fullgraph=True).aot_compile(...)`.

torch wants of a backend a callable that becomes bytes and back (`irc.frontend.backend.Saved`). The
bytes are the graph that Dynamo captured, its example inputs and the options; what is loaded is
compiled again, by the cache in a moment where it knows the program. No machine code is in a saved
function. torch reads its files by unpickling: load what you trust.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import attrs
import torch
from torch import fx

from irc.frontend.fx.user_kernels import is_kernel
from irc.frontend.importing.locations import location_of
from irc.ir.diagnostics import UserError
from irc.options.options import Options

#: What torch's own cache of compiled graphs asks of a backend, which saved functions go without.
_PLAIN = {"force_autograd_cache": False, "bundled_autograd_cache": False,
          "strict_autograd_cache": False}  # fmt: skip


def is_saving() -> bool:
    """Whether torch compiles a function to save it."""
    return bool(getattr(torch._functorch.config, "force_autograd_cache", False))


def without_caches() -> AbstractContextManager[None]:
    """Compile inside as if nothing were saved."""
    return torch._functorch.config.patch(_PLAIN)


def pickled(graph: fx.GraphModule, inputs: Sequence[Any]) -> bytes:
    """A graph with its example inputs, as torch pickles it. Raises UserError for one that no other
    process can run."""
    from torch.fx._graph_pickler import GraphPickler
    from torch.fx._graph_pickler import Options as PicklerOptions

    for node in graph.graph.nodes:
        if is_kernel(node):
            raise UserError(
                "a function that calls a Triton kernel can't be saved: its graph has the "
                "kernel's number in this process, and no other process knows it",
                location_of(node),
                notes=("torch.library.triton_op makes an operator of it, with a name",),
            )
        for name in ("nn_module_stack", "source_fn_stack", "example_value"):
            node.meta.pop(name, None)
    return GraphPickler.dumps((graph, list(inputs)), PicklerOptions(ops_filter=None))


def to_bytes(graph: bytes, options: Options) -> bytes:
    """A pickled graph and the options that it is compiled with."""
    text = base64.b64encode(graph).decode()
    return json.dumps({"options": attrs.asdict(options), "graph": text}).encode()


@contextmanager
def opened(data: bytes) -> Iterator[tuple[fx.GraphModule, list[Any], Options]]:
    """The graph, its example inputs and the options that `to_bytes` wrote; inside, torch traces
    as where the graph was captured."""
    from torch._guards import TracingContext, tracing
    from torch._subclasses import FakeTensorMode
    from torch.fx._graph_pickler import GraphPickler
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    record = json.loads(data)
    mode = FakeTensorMode(shape_env=ShapeEnv())
    unpickled: Any = GraphPickler.loads(base64.b64decode(record["graph"]), mode)
    graph, inputs = unpickled
    graph.recompile()
    graph.meta.pop("dynamo_compile_id", None)  # where its arguments came from is not known here
    values = record["options"]
    options = Options(**{**values, "passes": tuple(map(tuple, values["passes"]))})
    with tracing(TracingContext(mode)):
        yield graph, inputs, options


__all__ = ["is_saving", "opened", "pickled", "to_bytes", "without_caches"]
