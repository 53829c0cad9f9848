"""The files that passes stand in, found without reading any of them."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Sequence

#: Where irc's own passes stand: a module each, named as the pass, or folders of such modules. They
#: load when a pass is first asked for.
PASS_MODULES = ("irc.passes", "irc.frontend.decompositions.decompose_aten")


@functools.cache
def pass_modules() -> tuple[str, ...]:
    """The modules that passes may stand in, those of folders at any depth; none of them is read."""
    import pkgutil
    from importlib.util import find_spec

    def inside(place: str, folders: Sequence[str]) -> Iterator[str]:
        for module in pkgutil.iter_modules(folders, place + "."):
            if module.ispkg:
                last = module.name.rpartition(".")[2]
                yield from inside(module.name, [os.path.join(f, last) for f in folders])
            else:
                yield module.name

    modules: list[str] = []
    for place in PASS_MODULES:
        spec = find_spec(place)
        folders = None if spec is None else spec.submodule_search_locations
        modules += [place] if folders is None else inside(place, folders)
    return tuple(modules)
