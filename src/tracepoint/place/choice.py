"""Choosing the file that creates the events of a new header, and the events to export for modules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.errors import PlaceError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracepoint.tree.kbuild import Built, Kbuild


def choose_creator(kbuild: Kbuild, header: str, callers: Sequence[str]) -> tuple[str, str]:
    """Return which of the calling files creates a header's events, and a sentence about it.

    This is the first that every kernel has, else one that is built whenever any of the others is.
    Raises PlaceError when there is none.
    """
    built = {path: kbuild.built(path) for path in callers}
    for path in callers:
        if built[path].is_always:
            return path, f"{path}, which every kernel has, creates the events of {header}"
    for path in callers:
        if all(_covers(built[path], other) for other in built.values()):
            why = f", which is built {how_built(built[path])}," if built[path].is_known else ""
            return path, f"{path}{why} creates the events of {header}"
    shown = "; ".join(f"{path} {how_built(one)}" for path, one in built.items())
    raise PlaceError(
        f"no file that calls the events of {header} is built whenever the others are ({shown}): "
        "name the one that shall create them"
    )


def _covers(creator: Built, caller: Built) -> bool:
    """Return whether the creator is built whenever a caller is."""
    if creator == caller:
        return True
    if not creator.is_known or not caller.is_known:
        return False
    return creator.options <= caller.options and creator.module in ("", caller.module)


def how_built(built: Built) -> str:
    """Return when a file is built, in words.

    >>> from tracepoint.tree.kbuild import Built
    >>> how_built(Built(frozenset(["MMU", "SWAP"])))
    'with CONFIG_MMU and CONFIG_SWAP'
    >>> how_built(Built(frozenset(["TRACE_CLOCK|TRACING"])))
    'with CONFIG_TRACE_CLOCK or CONFIG_TRACING'
    >>> how_built(Built(frozenset(["!SLUB"])))
    'with CONFIG_SLUB=n'
    """
    if not built.is_known:
        return "under a condition that its Makefile does not show"
    if not built.options and not built.module:
        return "always"
    options = [_shown(name) for name in sorted(built.options)]
    text = f"with {' and '.join(options)}" if options else "always"
    return f"{text}, into the module {built.module.rpartition('/')[2][:-2]}" if built.module else text


def _shown(option: str) -> str:
    if "?" in option:
        return "some condition"
    return " or ".join(
        f"CONFIG_{name[1:]}=n" if name.startswith("!") else f"CONFIG_{name}" for name in option.split("|")
    )


def needs_export(kbuild: Kbuild, creator: str, caller: str) -> bool:
    """Return whether a caller may be in a module without the creator.

    Raises PlaceError when the events live in a module and the caller is built in.
    """
    made, used = kbuild.built(creator), kbuild.built(caller)
    if made.module and used.is_known and not used.module:
        raise PlaceError(
            f"{caller} is built {how_built(used)}, but {creator} creates the events {how_built(made)}: "
            "built-in code cannot call a module"
        )
    return bool(used.module) and used.module != made.module


def warn_missing(kbuild: Kbuild, creator: str, caller: str) -> str:
    """Return a warning when a caller can be built without the creator, empty when it cannot."""
    made, used = kbuild.built(creator), kbuild.built(caller)
    missing = kbuild.missing(caller, used.options, made.options)
    if not made.is_known or not used.is_known or not missing:
        return ""
    return (
        f"{caller} is built {how_built(used)}, but {creator}, which creates the events, only "
        f"{how_built(made)}: a kernel without that does not link"
    )
