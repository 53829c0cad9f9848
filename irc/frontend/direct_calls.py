"""Calls of an inference program that leave out AOTAutograd's wrapper.

AOTAutograd surrounds a compiled graph by Python that detaches, applies mutations, makes views of
outputs again, unwraps tensor subclasses and counts tokens: about 1.4 us a call, which is more than
a small program's whole own time. For many inference graphs none of it has anything to do; they
are found here from the metadata that AOTAutograd leaves, and Dynamo's code then calls the native
program itself. The program checks its arguments, runs below autograd and autocast, and gives
eager's results, whoever calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import torch


@attrs.frozen
class CompiledGraph:
    """What was compiled of one graph. `is_alone`: nothing stands around the executable but the
    order of its results; `outputs`: which of them the graph's outputs are."""

    executable: Any
    outputs: Sequence[Any]
    is_alone: bool

    @property
    def gives_results(self) -> bool:
        """Whether the executable's arguments and results are the graph's, in order."""
        return self.is_alone and list(self.outputs) == list(range(len(self.outputs)))


@attrs.define
class Executables:
    """What was compiled of one traced function, by stage."""

    programs: dict[str, list[CompiledGraph]] = attrs.field(factory=dict)

    def add(self, stage: str, program: CompiledGraph) -> None:
        """Note one more program."""
        self.programs.setdefault(stage, []).append(program)

    def only(self, stage: str) -> CompiledGraph | None:
        """The program of a stage, if there is one alone."""
        graphs = self.programs.get(stage, [])
        return graphs[0] if len(graphs) == 1 else None


def metadata() -> Any:
    """What AOTAutograd said of the graph compiled last in Dynamo's present context, or None."""
    from torch._guards import TracingContext

    context = TracingContext.try_get()
    return None if context is None else context.fw_metadata


def direct_call(
    compiled: Executables, metadata: Any, inputs: Sequence[Any]
) -> Callable[..., tuple[Any, ...]] | None:
    """The function of positional arguments that can stand for AOTAutograd's, or None: the native
    one, or on a GPU the Python host's.

    `metadata` is that of this very graph, `inputs` are the example inputs.
    """
    program = compiled.only("inference")
    if program is None or len(compiled.programs) != 1 or not program.gives_results:
        return None
    executable = program.executable
    fast = getattr(executable, "is_native", False) or getattr(executable, "is_on_gpu", False)
    if not fast or not is_traced_plainly(metadata, inputs):
        return None
    if len(executable.info.arguments) != len(inputs):
        return None
    call: Callable[..., tuple[Any, ...]] = executable.fast_call
    return call


def is_traced_plainly(metadata: Any, inputs: Sequence[Any], mutations: Sequence[Any] = ()) -> bool:
    """Whether AOTAutograd's wrapper of a graph without gradients would only pass arguments and
    results through, which may be mutated in one of these ways."""
    from torch._functorch._aot_autograd.schemas import MutationType, OutputType

    if metadata is None or len(metadata.input_info) != len(inputs):
        return False
    allowed = mutations or (MutationType.NOT_MUTATED,)
    plain_outputs = (OutputType.non_alias, OutputType.unsafe_view_alias)
    return (
        all(type(x) in (torch.Tensor, torch.nn.Parameter, int, float, bool)
            or _is_fake(x) for x in inputs)
        and all(i.mutation_type in allowed for i in metadata.input_info)
        and all(o.output_type in plain_outputs and not o.dynamic_dims for o in metadata.output_info)
        and not metadata.num_intermediate_bases
        and not metadata.tokens
        and not metadata.is_rng_op_functionalized
        and not metadata.num_graphsafe_rng_states
        and metadata.grad_enabled_mutation is None
        and not getattr(metadata, "act_input_indices", ())
        and not any(is_subclass(m) for m in (*metadata.subclass_inp_meta,
                                              *metadata.subclass_fw_graph_out_meta))
    )  # fmt: skip


def _is_fake(value: Any) -> bool:
    from torch._subclasses.fake_tensor import FakeTensor

    return isinstance(value, FakeTensor | torch.SymInt)


def is_subclass(meta: Any) -> bool:
    """Whether an argument or a result is a tensor subclass, by AOTAutograd's account of it."""
    from torch._functorch._aot_autograd.schemas import SubclassCreationMeta

    return isinstance(meta, SubclassCreationMeta)
