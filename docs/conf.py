"""How Sphinx builds the site: `make docs`, which adds the generated pages (tools/docs/build.py)."""

from __future__ import annotations

import html
import re

from docutils import nodes

import tracepoint

project = "tracepoint"
author = "The tracepoint authors"
release = version = tracepoint.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = f"tracepoint {version}"
html_favicon = "icon.svg"  # without one, each browser asks for a file that is not there
html_copy_source = False
html_show_copyright = False
html_last_updated_fmt = None  # a page says the same, whenever it is built
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_class_signature = "separated"
python_use_unqualified_type_names = True
smartquotes = False  # `--fix` must not become a dash
# Examples in C hold lines left out, which Pygments does not know.
suppress_warnings = ["misc.highlighting_failure"]

# An example's line, code between backticks, or what reStructuredText would read as markup outside of both.
_MARKS = re.compile(r"(?P<example>^[ ]*(?:>>>|[.]{3}).*$)|`(?P<code>[^`]+)`|(?P<mark>[*|]|_\b)", re.MULTILINE)


def _marked(found: re.Match[str]) -> str:
    if found["example"]:
        return found[0]
    return f"``{' '.join(found['code'].split())}``" if found["code"] else f"\\{found['mark']}"


def _docstring(
    _app: object, _what: str, _name: str, _thing: object, _options: object, lines: list[str]
) -> None:
    """Read docstrings as the text they are: one backtick marks code, and nothing else is markup."""
    lines[:] = _MARKS.sub(_marked, "\n".join(lines)).split("\n")


def _place(_app: object, _what: str, name: str, thing: object, *_: object) -> None:
    """Let the function that makes a named tuple be in the module of its class, where its source is."""
    if (getattr(thing, "__module__", None) or "").startswith("namedtuple_"):
        thing.__module__ = name.rsplit(".", 2)[0]


def _description(
    _app: object, _page: str, _template: str, context: dict[str, str], tree: nodes.document | None
) -> None:
    """Give a page its first sentences as the description that search engines show."""
    found = tree.findall(nodes.paragraph) if tree is not None else ()
    texts = [" ".join(paragraph.astext().split()) for paragraph in found]
    first = next((text for text in texts if text.endswith(".")), "".join(texts[:1]))
    if first:
        context["metatags"] += f'<meta name="description" content="{html.escape(first)}">\n'


def setup(app) -> None:  # noqa: ANN001 - Sphinx is installed only where the site is built
    """Connect to Sphinx."""
    app.connect("autodoc-process-docstring", _docstring)
    app.connect("autodoc-process-signature", _place)
    app.connect("html-page-context", _description)
