"""irc's own operators for torch: what its programs need of torch that is no ATen operator.

    irc::rng_state(Device device) -> Tensor
    irc::set_rng_state(Tensor state, Device device) -> ()

Both stand for the generator from which eager mode draws on that device, and keep their place among
the operators that draw. Importing this module makes the operators known to torch.
"""

from __future__ import annotations

import torch

NAMESPACE = "irc"

_library = torch.library.Library(NAMESPACE, "DEF")


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
    _library.define("rng_state(Device device) -> Tensor", tags=drawn)
    _library.define("set_rng_state(Tensor state, Device device) -> ()", tags=drawn)
    for function in (rng_state, set_rng_state):
        _library.impl(function.__name__, function, "CompositeExplicitAutograd")


_define()
