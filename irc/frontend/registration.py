"""Makes `torch.compile(model, backend="irc")` work once irc is imported, installed or not.

An installed irc is found by its entry point. For one that is only on the path, the backend is
registered when Dynamo's registry is imported; importing irc imports neither torch nor Dynamo.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

Hook = Callable[[ModuleType], None]
REGISTRY = "torch._dynamo.backends.registry"
BUNDLES = "torch.compiler._cache"


def irc(gm: Any, example_inputs: Any, **options: Any) -> Callable[..., Any]:
    """The backend, imported at its first use."""
    from irc.frontend.backend import irc as compile_with_irc

    return compile_with_irc(gm, example_inputs, **options)


def reset() -> None:
    """What `torch._dynamo.reset` calls."""
    backend = sys.modules.get("irc.frontend.backend")
    if backend is not None:
        backend.reset()


irc.reset = reset  # type: ignore[attr-defined]


def install() -> None:
    """Register the backend and the entries of torch's cache bundles with each part of torch that
    is loaded, and with others when they are."""
    hooks = {REGISTRY: _register, BUNDLES: _register_entries}
    for name in [name for name in hooks if name in sys.modules]:
        hooks.pop(name)(sys.modules[name])
    if hooks and not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder(hooks))


def _register_entries(bundles: ModuleType) -> None:
    # Where irc's own module is what imports torch's, it registers itself when it is used.
    if "irc.cache.torch_artifacts" not in sys.modules:
        from irc.cache import torch_artifacts

        torch_artifacts.register()


def _register(registry: ModuleType) -> None:
    known = getattr(registry, "_COMPILER_FNS", None)
    if getattr(registry, "_BACKENDS", {}).get("irc") is not None:
        return  # Dynamo is loading the entry point at this moment and registers it itself.
    if known is None or "irc" not in known:
        registry.register_backend(irc, name="irc")


# The two have the methods that the import system calls; their base classes in importlib.abc would
# load half of the standard library.
class _Finder:
    """Finds nothing of its own: wraps the loaders of the modules that `hooks` waits for."""

    def __init__(self, hooks: dict[str, Hook]) -> None:
        self.hooks = hooks

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        hook = self.hooks.pop(fullname, None)
        if hook is None:
            return None
        import importlib.util

        if not self.hooks:
            sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _RegisteringLoader(spec.loader, hook)  # type: ignore[assignment]
        return spec


class _RegisteringLoader:
    def __init__(self, inner: Any, hook: Hook) -> None:
        self.inner, self.hook = inner, hook

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.inner.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self.inner.exec_module(module)
        self.hook(module)
