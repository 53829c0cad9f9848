"""Functions that torch saves: `torch.compile(f, backend="irc", fullgraph=True).aot_compile(...)`.

torch wants of a backend a callable that becomes bytes and back. The bytes are the graph that
Dynamo captured, its example inputs and the options; what is loaded is compiled again, by the cache
in a moment where it knows the program. No machine code is in a saved function. torch reads its
files by unpickling: load what you trust.
"""

from __future__ import annotations

import base64
import json
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import torch
from torch import fx
from torch._dynamo.aot_compile_types import SerializableCallable

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


class SavedFunction(SerializableCallable):
    """A compiled graph with what it is compiled of. `compiler`: what compiles it again."""

    @staticmethod
    @abstractmethod
    def compiler(
        graph: fx.GraphModule, inputs: Sequence[Any], options: Options
    ) -> Callable[..., Any]:
        """What runs the graph."""

    def __init__(
        self, graph: fx.GraphModule, inputs: Sequence[Any], options: Options
    ) -> None:
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
        self.graph = GraphPickler.dumps((graph, list(inputs)), PicklerOptions(ops_filter=None))
        self.options = options
        with torch._functorch.config.patch(_PLAIN):
            self.run = self.compiler(graph, inputs, options)

    def __call__(self, *arguments: Any) -> Any:
        return self.run(*arguments)

    @classmethod
    def serialize_compile_artifacts(cls, fn: SavedFunction) -> bytes:
        """The graph and the options."""
        graph = base64.b64encode(fn.graph).decode()
        return json.dumps({"options": attrs.asdict(fn.options), "graph": graph}).encode()

    @classmethod
    def deserialize_compile_artifacts(cls, data: bytes) -> SavedFunction:
        """The function, compiled again."""
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
            return cls(graph, inputs, options)


__all__ = ["SavedFunction", "is_saving"]
