"""Arguments of a call, with the places of those that change from call to call."""

from __future__ import annotations

import attrs


@attrs.frozen
class Dynamic:
    """A place in an ATen call's arguments that takes the `index`-th value given at each call."""

    index: int


def fill(template: object, values: tuple[object, ...]) -> object:
    """A template with the dynamic values in their places."""
    if isinstance(template, Dynamic):
        return values[template.index]
    if isinstance(template, tuple):
        return [fill(item, values) for item in template]
    return template


__all__ = ["Dynamic", "fill"]
