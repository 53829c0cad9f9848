"""irc's own operators for torch: what its programs need of torch that is no ATen operator.

    irc::rng_state(Device device) -> Tensor
    irc::set_rng_state(Tensor state, Device device) -> ()
    irc::philox_state(int increment, Device device) -> Tensor
    irc::philox_bits(Tensor state, int base, SymInt[] size, SymInt[] stride, SymInt threads,
                     int vector, int numbers) -> Tensor
    irc::max_pool_places(Tensor self, int[] kernel_size, int[] stride, int[] padding,
                         int[] dilation, bool ceil_mode, ScalarType dtype) -> (Tensor, Tensor)
    irc::max_pool_places_backward(Tensor grad_output, Tensor places, SymInt[] size,
                                  int[] kernel_size, int[] stride, int[] padding,
                                  int[] dilation, bool channels_innermost) -> Tensor

The first three stand for the generator from which eager mode draws on that device, and keep their
place among the operators that draw. `philox_state` is for GPUs: the seed, and how many numbers a
thread has drawn, as i64[2]; the generator goes on as if a kernel had drawn `increment` more. What
those numbers are is `graph.philox`, which `philox_bits` becomes. `max_pool_places` gives the maxima
of windows and where in its window each is, in order of elements, as numbers of `dtype`. Importing
this module makes the operators known to torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

NAMESPACE = "irc"

#: What each of irc's own operators does, by "namespace.name.default": programs call that itself.
FUNCTIONS: dict[str, Callable[..., Any]] = {}

_libraries: dict[str, Any] = {}


def define(
    namespace: str,
    schema: str,
    function: Callable[..., Any] | None,
    tags: Sequence[Any] = (),
) -> Any:
    """Make an operator known to torch; gives the library that it is of. Without a function it is
    one that programs have and nobody else calls."""
    library = _libraries.get(namespace)
    if library is None:
        library = _libraries[namespace] = torch.library.Library(namespace, "DEF")
    library.define(schema, tags=tuple(tags))
    name = schema.partition("(")[0]
    if function is not None:
        library.impl(name, function, "CompositeExplicitAutograd")
        FUNCTIONS[f"{namespace}.{name}.default"] = function
    return library


def rng_state(device: torch.device) -> torch.Tensor:
    """The state of a device's default generator, as bytes on the CPU."""
    if device.type == "cpu":
        return torch.get_rng_state()
    return torch.get_device_module(device).get_rng_state(device)


def set_rng_state(state: torch.Tensor, device: torch.device) -> None:
    """Put a device's default generator into a state that `rng_state` gave."""
    if device.type == "cpu":
        torch.set_rng_state(state)
    else:
        torch.get_device_module(device).set_rng_state(state.cpu(), device)


def _define() -> None:
    drawn = (torch.Tag.nondeterministic_seeded,)
    define(NAMESPACE, "rng_state(Device device) -> Tensor", rng_state, drawn)
    define(NAMESPACE, "set_rng_state(Tensor state, Device device) -> ()", set_rng_state, drawn)
    define(NAMESPACE, "philox_state(int increment, Device device) -> Tensor", None, drawn)
    define(
        NAMESPACE,
        "philox_bits(Tensor state, int base, SymInt[] size, SymInt[] stride, SymInt threads, "
        "int vector, int numbers) -> Tensor",
        None,
    )
    window = "int[] kernel_size, int[] stride, int[] padding, int[] dilation"
    define(
        NAMESPACE,
        f"max_pool_places(Tensor self, {window}, bool ceil_mode, ScalarType dtype) "
        "-> (Tensor, Tensor)",
        None,
    )
    define(
        NAMESPACE,
        f"max_pool_places_backward(Tensor grad_output, Tensor places, SymInt[] size, {window}, "
        "bool channels_innermost) -> Tensor",
        None,
    )


_define()
