"""Modules that get static keys as they are imported, by any finder and loader."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType


class Finder(importlib.abc.MetaPathFinder):
    """Asks the other finders; `patch` is called with every module whose name is `wanted`, once it was run."""

    def __init__(self, wanted: tuple[str, ...], patch: Callable[[ModuleType], object]) -> None:
        self.wanted = wanted
        self.patch = patch

    def find_spec(
        self, fullname: str, path: Any, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the specification that the others give, with a loader that calls `patch` in the end."""
        if not is_wanted(fullname, self.wanted):
            return None
        for finder in list(sys.meta_path):
            find: Callable[..., Any] | None = getattr(finder, "find_spec", None)
            if isinstance(finder, Finder) or find is None:
                continue
            spec = find(fullname, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec, self.patch)
                return spec  # type: ignore[no-any-return]
        return None


class _Loader:
    """Stands before a loader until the module is run: a loader may be shared, so it is not changed itself."""

    def __init__(self, spec: Any, patch: Callable[[ModuleType], object]) -> None:
        self._spec = spec
        self._loader = spec.loader
        self._patch = patch

    def create_module(self, spec: Any) -> ModuleType | None:
        create: Callable[[Any], ModuleType | None] | None = getattr(self._loader, "create_module", None)
        return create(spec) if create is not None else None

    def exec_module(self, module: ModuleType) -> None:
        self._spec.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        # A module must not fail to be imported because its calls could not be changed.
        with suppress(Exception):
            self._patch(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


def is_wanted(name: str, wanted: tuple[str, ...]) -> bool:
    """Return whether a module is one of those named, or below one; all are where none is named."""
    return not wanted or any(name == w or name.startswith(w + ".") for w in wanted)
