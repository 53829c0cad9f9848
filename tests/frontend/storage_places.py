"""Programs over arguments that begin somewhere in their storage: what is taken of one (views,
copies, views of copies), what is done to it (read, written, returned), and how it is compiled.

`cases()` is their product. `differences` runs a case with several arguments, one program for all
of them where that is allowed, and compares with eager mode what a caller sees: values, strides,
offsets, what shares the argument's storage, and every element of that storage afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import attrs
import torch
from torch import Tensor

import irc
from irc.runtime.arguments import ArgumentError

PLACES = 60  # elements of a storage

#: How an argument lies in its storage, if it begins at its start: sizes and strides.
LAYOUTS: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "rows": ((3, 5), (5, 1)),
    "columns": ((5, 3), (1, 5)),
    "row of step": ((1, 5), (10, 1)),
    "gaps": ((3, 2), (7, 2)),
    "one": ((1,), (1,)),
    "number": ((), ()),
}
OFFSETS = (7, 0, 12, 7)  # of one program's arguments, call after call


def _filled(y: Tensor) -> Tensor:
    return y.fill_diagonal_(99.0) if y.dim() > 1 else y.fill_(99.0)


#: What is taken of an argument. "any": at whatever place; other positions count in the storage.
TAKES: dict[str, Callable[[Tensor], Tensor]] = {
    "argument": lambda x: x,
    "slice": lambda x: x[1:] if x.dim() else x.view(1)[:1],
    "select": lambda x: x[-1] if x.dim() else x.view(()),
    "view": lambda x: x.view(x.shape).unsqueeze(0),
    "permute": lambda x: x.permute(tuple(reversed(range(x.dim())))),
    "expand": lambda x: x.expand(2, *x.shape),
    "flip": lambda x: x.flip(0) if x.dim() else x.flip(()),
    "diagonal": lambda x: x.diagonal() if x.dim() > 1 else x.view(-1),
    "as_strided": lambda x: x.as_strided((2,), (1,), 8),
    "as_strided in itself": lambda x: x.as_strided(x.shape, x.stride()),
    "as_strided of slice": lambda x: x.view(-1 if x.dim() == 0 else x.shape)[:1].as_strided(
        (2,), (2,), 7
    ),
    "filled": _filled,
    "clone": lambda x: x.clone(),
    "clone filled": lambda x: _filled(x.clone()),
    "clone as_strided": lambda x: x.clone().as_strided((1,), (1,), 0),
    "clone as_strided at once": lambda x: x.clone().as_strided((1,), (1,)),
    "contiguous as_strided": lambda x: x.contiguous().as_strided((1,), (1,), x.numel() - 1),
    "sum as_strided": lambda x: (x + 0).as_strided((1,), (1,), x.numel() - 1),
    "like as_strided": lambda x: torch.empty_like(x).copy_(x).as_strided((1,), (1,), 0),
    "cast as_strided": lambda x: x.to(torch.float64).as_strided((1,), (1,), 0),
    "negated as_strided": lambda x: x.clone().neg_().as_strided((1,), (1,), 0),
    "written, as_strided": lambda x: x.add_(1).as_strided((2,), (1,), 8),
    "slice of clone as_strided": lambda x: x.clone().view(-1)[-1:].as_strided((1,), (1,), 0),
}  # fmt: skip

#: What is done to it.
USES: dict[str, Callable[[Callable[[Tensor], Tensor], Tensor], Any]] = {
    "read": lambda take, x: take(x) * 2,
    "written": lambda take, x: (take(x).fill_(-3.0), x * 2)[1],
    "written and returned": lambda take, x: take(x).mul_(3.0),
    "argument written and returned": lambda take, x: (y := take(x), x.add_(1.0), y)[0],
    "returned": lambda take, x: take(x),
}

COMPILERS = ("compile", "static", "dynamic")

#: What AOTAutograd itself refuses (a write through as_strided of a view of a new tensor) or gets
#: wrong (a write to elements that overlap), whatever the backend.
TORCH_S_OWN = {
    (take, use)
    for take in ("slice of clone as_strided", "expand")
    for use in ("written", "written and returned")
}


@attrs.frozen
class Case:
    """One program and how its arguments lie."""

    layout: str
    take: str
    use: str

    def __str__(self) -> str:
        return f"{self.layout}/{self.take}/{self.use}"

    def function(self) -> Callable[[Tensor], Any]:
        """The program, new each time: torch.compile keeps what it made for a code object."""
        take, use = TAKES[self.take], USES[self.use]

        def program(x: Tensor) -> Any:
            return use(take, x)

        return program

    def argument(self, offset: int) -> Tensor:
        """A tensor `offset` elements into a storage of its own."""
        sizes, strides = LAYOUTS[self.layout]
        return torch.arange(float(PLACES)).as_strided(sizes, strides, offset)


def cases() -> Iterator[Case]:
    """All of them that eager mode runs."""
    for layout in LAYOUTS:
        for take in TAKES:
            for use in USES:
                case = Case(layout, take, use)
                if (take, use) not in TORCH_S_OWN and runs(case):
                    yield case


def runs(case: Case) -> bool:
    """Whether eager mode runs it."""
    try:
        case.function()(case.argument(OFFSETS[0]))
    except RuntimeError:
        return False
    return True


def seen(x: Tensor, result: Tensor) -> dict[str, Any]:
    """What a caller sees of a call's argument and result."""
    shares = result.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    return {
        "values": result.tolist(),
        "strides": [s for n, s in zip(result.shape, result.stride(), strict=True) if n > 1],
        "shares": shares,
        "same": result is x,
        "offset": result.storage_offset() if shares else None,
        "storage": x.as_strided((PLACES,), (1,), 0).tolist(),
    }


def difference(expected: dict[str, Any], got: dict[str, Any]) -> str:
    """The names of what differs."""
    parts = [f"{k}: {expected[k]} -> {got[k]}" for k in expected if expected[k] != got[k]]
    return "; ".join(parts)


def differences(case: Case, compiler: str) -> Iterator[str]:
    """Where a case compiled by `compiler` differs from eager mode, over the offsets. An executable
    of `irc.compile` may refuse another offset, before it has read or written anything."""
    torch._dynamo.reset()
    program = case.function()
    if compiler == "compile":
        call: Any = irc.compile(program, (case.argument(OFFSETS[0]),))
    else:
        call = torch.compile(program, backend="irc", dynamic=compiler == "dynamic")
    for offset in OFFSETS:
        x, y = case.argument(offset), case.argument(offset)
        try:
            expected = seen(x, program(x))
        except RuntimeError:
            continue  # not a place of this storage
        try:
            found = difference(expected, seen(y, call(y)))
        except ArgumentError:
            untouched = torch.equal(
                y.as_strided((PLACES,), (1,), 0), torch.arange(float(PLACES))
            )
            allowed = compiler == "compile" and offset != OFFSETS[0] and untouched
            found = "" if allowed else "refused"
        if found:
            yield f"{case} by {compiler} at {offset}: {found}"
