"""The files of a catalog: pages, data, and the fixed parts."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

from tracepoint.errors import GenerateError
from tracepoint.generate.catalog.events import event_files
from tracepoint.generate.catalog.pages import start_page, system_page
from tracepoint.generate.catalog.rows import data_files
from tracepoint.generate.catalog.text import clean, slugs, to_json
from tracepoint.generate.fileset import FileSet

if TYPE_CHECKING:
    from tracepoint.generate.catalog.data import Catalog

#: The file that says that a folder is a catalog, and which files of it are ours.
MARK = "catalog.json"
SCHEMA = "tracepoint.catalog/1"
_MAX_VERSIONS = 30  # they are bits of a number in JavaScript
_STYLES = ("catalog.css", "views.css")
_SCRIPTS = ("core.js", "near.js", "search.js", "record.js", "print.js", "event.js", "views.js", "app.js")


def make_catalog(catalog: Catalog, *, title: str = "Tracepoints", source: str = "") -> FileSet:
    """Return the files of the site; `index.html` is the page to open.

    `source` is where the web shows the kernels' sources: an address of http or https with `{file}`, `{line}`
    and `{version}`, the version as its Makefile has it; empty: places are no links.

    Equal catalogs make equal files: there is no time and no path of this machine in them.  Raises
    GenerateError when there are no tracepoints, for more versions than a search can tell apart, and
    for another `source`.
    """
    if not catalog.events:
        raise GenerateError("", "no tracepoints to show")
    if len(catalog.versions) > _MAX_VERSIONS:
        raise GenerateError("", f"more than {_MAX_VERSIONS} versions")
    if source and not (source.startswith(("https://", "http://")) and "{file}" in source):
        raise GenerateError("", f"not an address of http or https with {{file}}: {source}")
    systems = catalog.systems()
    names = slugs(list(systems))
    made = {"index.html": start_page(catalog, _asset("index.html"), title, names)}
    for name in (*_STYLES, *_SCRIPTS):
        made[f"assets/{name}"] = _asset(name)
    made |= data_files(
        catalog, {"title": clean(title), "plain": list(names.values()), "source": clean(source)}
    )
    made |= event_files(catalog, names)
    for system, events in systems.items():
        made[f"plain/{names[system]}.html"] = system_page(
            events, catalog.versions, _asset("system.html"), title, source
        )
    made[MARK] = to_json({"schema": SCHEMA, "files": sorted([*made, MARK])}) + "\n"
    return FileSet(made)


def catalog_style() -> str:
    """Return the sheet of colours, type and frame, which other pages of ours begin with."""
    return _asset("catalog.css")


@lru_cache
def _asset(name: str) -> str:
    return files(__package__).joinpath("assets", name).read_text("utf-8")
