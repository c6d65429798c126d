"""`tracepoint catalog`: a searchable site of all tracepoints of one or several kernels."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.cli import numbers
from tracepoint.cli.folders import check_folder, is_marked, replace_folder
from tracepoint.cli.status import EXIT_DONE
from tracepoint.cli.tree.trees import open_with_progress
from tracepoint.errors import TracepointError
from tracepoint.generate.catalog import MARK, CatalogVersion, make_catalog, read_catalog
from tracepoint.named import NamedTuple

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Sequence

    from tracepoint.cli.output import Output

_NAMED = re.compile(r"([\w.+-]{1,40})=(.+)", re.DOTALL)
_VERSION = re.compile(r"^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION)[ \t]*=[ \t]*(\S*)", re.MULTILINE)
_MAX_MAKEFILE = 1 << 20
_MB = 1_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument(
        "trees",
        nargs="+",
        metavar="[LABEL=]TREE",
        help="kernel source trees; or folders of modules or format files, or BTF",
    )
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="the folder to create or update")
    parser.add_argument("--title", default="Tracepoints", help="the title of the pages")
    parser.add_argument(
        "--source-url",
        default="",
        metavar="URL",
        help="where the web shows the sources, with {file}, {line} and {version}, to link places to",
    )
    parser.add_argument(
        "--force", action="store_true", help="write into a folder that contains other files too"
    )
    numbers.add_jobs_argument(parser)


def run(args: argparse.Namespace, out: Output) -> int:
    """Generate the catalog; no file is touched until all of it is ready."""
    folder = Path(args.output)
    check_folder(folder, MARK, may_hold_others=args.force)
    versions = _open(_kernels(args.trees), args.jobs, out)
    with out.progress("reading trees", len(versions)) as progress:
        catalog = read_catalog(versions, on_step=lambda _: progress.step())
    files = make_catalog(catalog, title=args.title, source=args.source_url)
    verb = "updated" if is_marked(folder, MARK) else "made"
    replace_folder(folder, files, MARK)
    size = sum(len(text.encode("utf-8", "replace")) for text in files.values())
    labels = ", ".join(version.label for version in catalog.versions)
    out.say(
        f"{verb} {folder}: {len(catalog.events)} tracepoints of {labels}, {len(files)} files, "
        f"{size / _MB:.1f} MB"
    )
    out.line(str(folder / "index.html"))
    return EXIT_DONE


class _Kernel(NamedTuple):
    """A tree on the command line: its label if there is one, and the version from its Makefile."""

    label: str
    path: str
    version: tuple[str, str, str, str] | None


def _kernels(words: Sequence[str]) -> list[_Kernel]:
    """Return the kernels, oldest first if all Makefiles have a version, else in the given order."""
    found = []
    for word in words:
        named = None if Path(word).exists() else _NAMED.fullmatch(word)
        label, path = (named[1], named[2]) if named else ("", word)
        found.append(_Kernel(label, path, _version(Path(path).expanduser())))
    if all(kernel.version is not None for kernel in found):
        found.sort(key=lambda kernel: _sort_key(kernel.version or ("", "", "", "")))
    return found


def _version(tree: Path) -> tuple[str, str, str, str] | None:
    """Read VERSION, PATCHLEVEL, SUBLEVEL and EXTRAVERSION of a tree's Makefile, None without one."""
    try:
        with (tree / "Makefile").open("rb") as file:
            text = file.read(_MAX_MAKEFILE).decode("utf-8", "replace")
    except OSError:
        return None
    values = dict(reversed(_VERSION.findall(text)))
    if not (values.get("VERSION", "").isdecimal() and values.get("PATCHLEVEL", "").isdecimal()):
        return None
    sub = values.get("SUBLEVEL", "")
    return (
        values["VERSION"],
        values["PATCHLEVEL"],
        sub if sub.isdecimal() else "",
        values.get("EXTRAVERSION", ""),
    )


def _sort_key(version: tuple[str, str, str, str]) -> tuple[object, ...]:
    parts = [int(part or 0) for part in version[:3]]
    # A release candidate comes before its release, anything else after it.
    return *parts, not version[3].startswith("-rc"), version[3]


def _open(kernels: Sequence[_Kernel], jobs: int, out: Output) -> list[CatalogVersion]:
    labels = _labels(kernels)
    versions = []
    for kernel, (label, full) in zip(kernels, labels, strict=True):
        tree = open_with_progress(kernel.path, out, jobs=jobs)
        versions.append(CatalogVersion(label, tree, full))
    return versions


def _labels(kernels: Sequence[_Kernel]) -> list[tuple[str, str]]:
    """Return the label and full version of each: `6.1`, or `6.1.192` when there are two of 6.1."""
    fulls = [_full(kernel) for kernel in kernels]
    shorts = [
        kernel.label or (".".join(kernel.version[:2]) if kernel.version else full)
        for kernel, full in zip(kernels, fulls, strict=True)
    ]
    labels = [
        full if shorts.count(short) > 1 and not kernel.label else short
        for kernel, short, full in zip(kernels, shorts, fulls, strict=True)
    ]
    twice = _first_twice(labels)
    if twice is not None:
        raise TracepointError(f"two trees are called {twice!r}; name them: LABEL=TREE")
    return list(zip(labels, fulls, strict=True))


def _full(kernel: _Kernel) -> str:
    if kernel.version is None:
        return Path(kernel.path).expanduser().resolve().name or "tree"
    major, minor, sub, extra = kernel.version
    return f"{major}.{minor}{f'.{sub}' if sub else ''}{extra}"


def _first_twice(labels: Iterable[str]) -> str | None:
    return next((label for label, number in Counter(labels).items() if number > 1), None)
