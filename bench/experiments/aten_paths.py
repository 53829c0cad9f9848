"""Experiment (b): every ATen schema by call path, and one call of each operator by each path.

    OMP_NUM_THREADS=1 python bench/experiments/aten_paths.py [--limit N]

Records the ATen calls that the first samples of torch's OpInfo database make (float32, bfloat16,
int64), one per overload, and repeats each through every path that it has, in child processes so
that a crash is counted and not suffered. A call must give the bits of the recorded operator, with
the same strides and dtypes, mutate the same arguments, and leave grad mode and results detached.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import torch
from torch.utils._python_dispatch import TorchDispatchMode

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
warnings.simplefilter("ignore")

PATHS = ("shim", "dispatcher", "boxed")


class Recorder(TorchDispatchMode):
    """Keeps the first call of each overload: operator, arguments, keywords (tensors cloned)."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: dict[str, tuple] = {}

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        name = f"{op.namespace}.{op._opname}.{op._overloadname}"
        if name not in self.calls:
            copied = torch.utils._pytree.tree_map(clone, (args, kwargs or {}))
            self.calls[name] = (op, *copied)
        return op(*args, **(kwargs or {}))


def clone(value):
    """A copy with the same sizes and strides; other things as they are."""
    if not isinstance(value, torch.Tensor):
        return value
    if value.layout != torch.strided or value.is_quantized or value.is_conj() or value.is_neg():
        return value
    made = torch.empty_strided(value.size(), value.stride(), dtype=value.dtype)
    dense = not any(s == 0 and n > 1 for s, n in zip(value.stride(), value.size(), strict=True))
    return (
        made.copy_(value)
        if dense
        else value.detach().clone().as_strided(value.size(), value.stride())
        if value.numel() == 0
        else value.detach()
    )


def record(limit: int | None) -> dict[str, tuple]:
    """The calls of the OpInfo database's first samples."""
    from torch.testing._internal.common_methods_invocations import op_db

    recorder = Recorder()
    for entry in op_db[:limit]:
        for dtype in (torch.float32, torch.bfloat16, torch.int64):
            if not entry.supports_dtype(dtype, "cpu"):
                continue
            torch.manual_seed(0)
            try:
                samples = entry.sample_inputs("cpu", dtype)
                sample = next(iter(samples))
                with recorder, torch.no_grad():
                    entry.op(sample.input, *sample.args, **sample.kwargs)
            except Exception:  # the database has entries that fail here in eager, too
                continue
            break
    return recorder.calls


def to_program_arguments(op, args, kwargs):
    """(argument by name, tensors in order); a tensor becomes its position as a marker."""
    from irc.boundary.aten_paths import Named

    tensors: list[torch.Tensor] = []

    def convert(value):
        if isinstance(value, torch.Tensor):
            tensors.append(value)
            return ("tensor", len(tensors) - 1)
        if isinstance(value, torch.dtype):
            return Named("dtype", str(value).removeprefix("torch."))
        if isinstance(value, torch.layout):
            return Named("layout", str(value).removeprefix("torch."))
        if isinstance(value, torch.memory_format):
            return Named("memory_format", str(value).removeprefix("torch."))
        if isinstance(value, torch.device):
            return Named("device", str(value))
        if isinstance(value, (list, tuple)):
            return [convert(v) for v in value]
        return value

    by_name = {}
    for argument, value in zip(op._schema.arguments, args, strict=False):
        by_name[argument.name] = convert(value)
    by_name.update({name: convert(value) for name, value in kwargs.items()})
    return by_name, tensors


def run_native(op, name, args, kwargs, path, count):
    """The results of one native call, and the tensors that it was given."""
    from irc.boundary import torch_abi
    from irc.codegen.host.arguments import HostArguments
    from irc.codegen.host.aten import AtenCall, call_aten
    from irc.codegen.host.emitter import HostTensor, TensorSpec
    from irc.codegen.host.results import HostResults
    from tests.runtime.host_programs import build

    by_name, tensors = to_program_arguments(op, args, kwargs)

    def body(e):
        arguments, making = HostArguments(e), HostResults(e)
        specs = [TensorSpec(torch_abi.dtype_code(t.dtype), tuple(t.shape)) for t in tensors]
        inputs = [arguments.argument_tensor(i, spec) for i, spec in enumerate(specs)]
        e.begin(below_autograd=True)

        def place(value):
            if isinstance(value, tuple) and len(value) == 2 and value[0] == "tensor":
                return inputs[value[1]]
            return [place(v) for v in value] if isinstance(value, list) else value

        filled = {key: place(value) for key, value in by_name.items()}
        floating = all(t.is_floating_point() for t in tensors)
        results = call_aten(e, AtenCall(name, filled, (), count), floating=floating, path=path)
        kinds = {"i64": making.result_int, "double": making.result_float, "i1": making.result_bool}
        return [
            making.result_tensor(r) if isinstance(r, HostTensor) else kinds[str(r.type)](r)
            for r in results
        ]

    return build(len(tensors), body).call(*tensors), tensors


def same(ours, theirs) -> bool:
    """Equal bits, dtype, shape and strides."""
    if not isinstance(theirs, torch.Tensor):
        return type(ours) is type(theirs) and ours == theirs or (ours != ours and theirs != theirs)
    if theirs.layout != torch.strided:
        return ours.layout == theirs.layout and torch.equal(ours.to_dense(), theirs.to_dense())
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape or ours.stride() != theirs.stride():
        return False
    if ours.requires_grad or ours.is_conj() != theirs.is_conj():
        return False
    return (
        torch.equal(torch.nan_to_num(ours), torch.nan_to_num(theirs))
        if ours.dtype.is_floating_point
        else torch.equal(ours, theirs)
    )


def check(name, call, path) -> str:
    """One word on how `call` went by `path`."""
    op, args, kwargs = call
    uninitialized = "empty" in op._opname or op._opname in ("new_empty_strided", "resize_")
    torch.manual_seed(1)
    theirs_args, theirs_kwargs = torch.utils._pytree.tree_map(clone, (args, kwargs))
    with torch.no_grad():
        theirs = op(*theirs_args, **theirs_kwargs)
    theirs = tuple(theirs) if isinstance(theirs, (tuple, list)) else (theirs,)
    fresh = [r.alias_info is None or not r.alias_info.is_write for r in op._schema.returns]
    if len(fresh) == len(theirs):
        theirs = tuple(t for t, keep in zip(theirs, fresh, strict=True) if keep)
    elif theirs == (None,):
        theirs = ()
    torch.manual_seed(1)
    ours_args, ours_kwargs = torch.utils._pytree.tree_map(clone, (args, kwargs))
    try:
        ours, tensors = run_native(op, name, ours_args, ours_kwargs, path, len(theirs))
    except ValueError as error:
        return (
            "none"
            if "has no C shim" in str(error) or "can't carry" in str(error)
            else f"error: {error}"
        )
    except Exception as error:  # what it raises is the result of the experiment
        return f"error: {type(error).__name__}: {str(error).splitlines()[0][:90]}"
    if not torch.is_grad_enabled():
        return "grad mode changed"
    _, expected_tensors = to_program_arguments(op, theirs_args, theirs_kwargs)
    if len(ours) != len(theirs):
        return f"{len(ours)} results for {len(theirs)}"
    if uninitialized:
        return "equal"
    pairs = [*zip(ours, theirs, strict=True), *zip(tensors, expected_tensors, strict=True)]
    return "equal" if all(same(a, b) for a, b in pairs) else "DIFFERENT"


def child(limit: int | None, skip: int) -> None:
    """Check calls from the `skip`-th on, a JSON line before and after each."""
    calls = sorted(record(limit).items())
    print(json.dumps({"total": len(calls) * len(PATHS)}), flush=True)
    work = [(name, call, path) for name, call in calls for path in PATHS]
    for i, (name, call, path) in enumerate(work[skip:], start=skip):
        print(json.dumps({"at": i, "name": name, "path": path}), flush=True)
        print(json.dumps({"answer": check(name, call, path)}), flush=True)


def run_children(limit: int | None) -> dict[tuple[str, str], str]:
    """All answers; a child that dies is replaced by one that starts after its last call."""
    answers: dict[tuple[str, str], str] = {}
    skip, total = 0, 1
    while skip < total:
        command = [sys.executable, __file__, "--child", str(skip), "--limit", str(limit or 0)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        at = None
        for line in done.stdout.splitlines():
            if not line.startswith("{"):
                continue
            said = json.loads(line)
            total = said.get("total", total)
            if "at" in said:
                at = said
                answers[at["name"], at["path"]] = f"CRASH (exit {done.returncode})"
                skip = at["at"] + 1
            elif at is not None and "answer" in said:
                answers[at["name"], at["path"]] = said["answer"]
        if at is None:
            raise SystemExit("a child did nothing")
    return answers


def census() -> None:
    """Every schema that torch has, by path."""
    from irc.boundary import aten_paths

    counts: collections.Counter[tuple[str, str]] = collections.Counter()
    for full in torch._C._dispatch_get_all_op_names():
        base, _, overload = full.partition(".")
        namespace, _, name = base.partition("::")
        try:
            op = aten_paths.find_operator(f"{namespace}.{name}.{overload}")
        except (KeyError, AttributeError, RuntimeError):
            counts["all", "not reachable from Python"] += 1
            continue
        for kind in (True, False):
            path = aten_paths.classify(op, floating=kind).name
            counts["floating point" if kind else "integer", path] += 1
    for (kind, path), count in sorted(counts.items()):
        print(f"census: {kind}: {path}: {count}")


def main() -> None:
    """Census, then the calls."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--child", type=int, default=None)
    options = parser.parse_args()
    if options.child is not None:
        child(options.limit or None, options.child)
        return
    print(f"torch {torch.__version__}, load {os.getloadavg()[0]:.1f}")
    census()
    answers = run_children(options.limit or None)
    for path in PATHS:
        tally = collections.Counter(
            a.split(":")[0] for (_, p), a in answers.items() if p == path and a != "none"
        )
        print(f"calls: {path}: {dict(tally)}")
    for (name, path), answer in sorted(answers.items()):
        if answer not in ("equal", "none"):
            print(f"{name} by {path}: {answer}")


if __name__ == "__main__":
    main()
