"""`tracepoint check`: what is wrong with trace headers, and how to fix it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from tracepoint import __version__
from tracepoint.check.engine import Checker, apply_fixes
from tracepoint.check.engine_python import check_python_files, read_python
from tracepoint.check.report_ci import write_github, write_gitlab, write_junit
from tracepoint.check.report_json import write_json, write_jsonl
from tracepoint.check.report_sarif import write_sarif
from tracepoint.check.report_text import write_concise, write_full
from tracepoint.check.suppress import apply_baseline, read_baseline, write_baseline
from tracepoint.cli import settings
from tracepoint.cli.authors import add_author_arguments
from tracepoint.cli.check_patches import write_patches
from tracepoint.cli.check_scope import find_scope
from tracepoint.cli.files import read_text, unified_diff, write_text
from tracepoint.cli.inputs import each_header
from tracepoint.cli.status import EXIT_CANNOT_RUN, EXIT_DONE, EXIT_FINDINGS
from tracepoint.diagnostics import Safety
from tracepoint.errors import TracepointError
from tracepoint.tree.facts import read_facts
from tracepoint.tree.headers import batched_collector
from tracepoint.tree.loader import find_kernel_root
from tracepoint.tree.string_callers import StringCallers
from tracepoint.wording import counted

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from tracepoint.check.python_source import PythonFile
    from tracepoint.check.report_text import Style
    from tracepoint.cli.check_scope import Scope
    from tracepoint.cli.output import Output
    from tracepoint.cli.settings import Settings
    from tracepoint.diagnostics import Diagnostic
    from tracepoint.source.text import SourceFile

_FORMATS = ("full", "concise", "json", "jsonl", "sarif", "github", "gitlab", "junit")
#: One fix may uncover the next; real headers settle in two rounds.
_MAX_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class CheckedHeader:
    """What reports and fixes need of a header when it has been checked."""

    path: str
    source: SourceFile | None
    is_trace_header: bool


Checked: TypeAlias = "CheckedHeader | PythonFile"


@dataclass(frozen=True, slots=True)
class _Tree:
    """What checks the headers of one kernel tree, and what is known of their callers."""

    checker: Checker
    callers: StringCallers

    @classmethod
    def of(cls, root: Path | None, chosen: Settings) -> _Tree:
        """Make the checker of a tree, with what the tree says about itself."""
        facts = read_facts(root)
        checker = Checker(select=chosen.select, ignore=chosen.ignore, abi=chosen.abi, facts=facts)
        return cls(checker, StringCallers(root))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument(
        "paths",
        nargs="*",
        default=["."],
        metavar="PATH",
        help="headers, folders of them, Python files, patches, or - for stdin (default: .)",
    )
    parser.add_argument(
        "--diff-base", metavar="REV", help="only findings on lines changed since a revision of git"
    )
    parser.add_argument("--fix", action="store_true", help="fix what can be fixed without changing a record")
    parser.add_argument(
        "--unsafe", action="store_true", help="with --fix: also fixes that change records or text"
    )
    parser.add_argument("--diff", action="store_true", help="print what --fix would change; write nothing")
    parser.add_argument(
        "--patch", action="store_true", help="with --fix: write patches for `git am`, one a rule and header"
    )
    parser.add_argument(
        "-o", "--output", metavar="DIR", help="with --patch: write them there (default: to stdout)"
    )
    parser.add_argument("--force", action="store_true", help="with -o: replace patches that are there")
    add_author_arguments(parser.add_argument_group("with --patch"))
    parser.add_argument("--output-format", choices=_FORMATS, help="default: full")
    parser.add_argument(
        "--write-baseline", metavar="FILE", help="write today's findings there, for --baseline"
    )
    settings.add_arguments(parser, "select", "ignore", "baseline", "include", "define", "exclude", "abi")


def run(args: argparse.Namespace, out: Output) -> int:
    """Print the findings; the exit status is 1 when any are left."""
    chosen = settings.read_settings(args)
    if settings.shows_settings(args, chosen, out):
        return EXIT_DONE
    find = partial(find_scope, args.paths, chosen.exclude, args.diff_base)
    scope = find()
    if not scope.paths:
        out.warn(f"no trace headers in {', '.join(args.paths)}: nothing was checked")
    headers, findings = _check(scope, chosen, out)
    if args.patch:
        return _patch(args, headers, findings, out)
    n_changed = 0
    if args.diff:
        n_changed = _diff(headers, findings, out, unsafe=args.unsafe)
    elif args.fix:
        _check_fixable(scope)
        headers, findings, n_changed = _fix(find, (headers, findings), chosen, out, unsafe=args.unsafe)
    if args.write_baseline:
        write_text(Path(args.write_baseline), write_baseline(findings))
        out.say(f"{counted(len(findings), 'finding')} written to {args.write_baseline}")
        return EXIT_DONE
    findings, n_known = _without_known(findings, chosen)
    findings = scope.with_patch_lines(findings)
    if not args.diff:
        out.write(_report(args.output_format or chosen.output_format, findings, headers, out.style))
    _summary(out, headers, findings, n_known=n_known, n_changed=n_changed, is_dry=args.diff)
    if _say_what_is_no_header(args.paths, headers, out):
        return EXIT_CANNOT_RUN
    return EXIT_FINDINGS if findings else EXIT_DONE


def _say_what_is_no_header(words: Sequence[str], headers: Sequence[Checked], out: Output) -> bool:
    """Say of each file that was named, and has nothing of a trace header in it, that this is so."""
    named = {"<stdin>" if word == "-" else str(Path(word)) for word in words}
    empty = [h for h in headers if isinstance(h, CheckedHeader) and h.path in named and not h.is_trace_header]
    for header in empty:
        text = header.source.text if header.source is not None else ""
        why = " (it is UTF-16 or binary: text is read as UTF-8)" if "\0" in text else ""
        out.error(f"{header.path}: there is no trace event in it{why}")
    return bool(empty)


def _check(scope: Scope, chosen: Settings, out: Output) -> tuple[list[Checked], list[Diagnostic]]:
    """Read and check the files; headers of one kernel tree are checked together."""
    scripts = [read_python(read_text(path), str(path)) for path in scope.paths if path.suffix == ".py"]
    paths = [path for path in scope.paths if path.suffix != ".py"]
    roots = [find_kernel_root(Path(folder).resolve()) for folder in chosen.include]
    given = next((root for root in roots if root is not None), None)
    findings = check_python_files(scripts, select=chosen.select, ignore=chosen.ignore)
    headers: list[Checked] = []
    trees: dict[Path | None, _Tree] = {}
    with batched_collector() as let_go:
        for header in each_header(paths, chosen, out, scope.texts):
            root = find_kernel_root(Path(header.path).resolve().parent) or given
            if root not in trees:
                trees[root] = _Tree.of(root, chosen)
            trees[root].checker.add(header, trees[root].callers.of(header))
            headers.append(CheckedHeader(header.path, header.source, header.is_trace_header))
            del header  # a whole kernel's headers take hundreds of megabytes
            let_go()
    for tree in trees.values():
        findings += tree.checker.findings()
    return [*headers, *scripts], scope.only_changed(findings)


def _mended(
    headers: Sequence[Checked], findings: Sequence[Diagnostic], *, unsafe: bool
) -> dict[str, tuple[str, str]]:
    """Return old and new text of every header that fixes change."""
    changed = {}
    for header in headers:
        if header.source is None:
            continue
        own = [d for d in findings if d.fix and all(e.path == header.path for e in d.fix.edits)]
        new = apply_fixes(own, header.source.text, unsafe=unsafe)
        if new != header.source.text:
            changed[header.path] = (header.source.text, new)
    return changed


def _diff(headers: Sequence[Checked], findings: Sequence[Diagnostic], out: Output, *, unsafe: bool) -> int:
    changed = _mended(headers, findings, unsafe=unsafe)
    for path, (old, new) in changed.items():
        out.diff(unified_diff(old, new, path))
    return len(changed)


def _fix(
    find: Callable[[], Scope],
    checked: tuple[list[Checked], list[Diagnostic]],
    chosen: Settings,
    out: Output,
    *,
    unsafe: bool,
) -> tuple[list[Checked], list[Diagnostic], int]:
    """Write fixes until nothing more can be fixed; return what is left, and how many files changed."""
    headers, findings = checked
    written: set[str] = set()
    for _ in range(_MAX_ROUNDS):
        changed = _mended(headers, findings, unsafe=unsafe)
        for path, (old, new) in changed.items():
            if read_text(Path(path)) != old:
                raise TracepointError(f"{path} was changed by someone else meanwhile; nothing written to it")
            write_text(Path(path), new)
        if not changed:
            break
        written |= changed.keys()
        headers, findings = _check(find(), chosen, out)
    return headers, findings, len(written)


def _patch(
    args: argparse.Namespace, headers: Sequence[Checked], findings: Sequence[Diagnostic], out: Output
) -> int:
    """Write patches instead of findings and of fixed files."""
    if not args.fix:
        raise TracepointError("--patch goes with --fix")
    texts = {header.path: header.source.text for header in headers if header.source is not None}
    n_fixed = write_patches(args, findings, texts, out)
    out.say(f"{counted(n_fixed, 'finding')} of {len(findings)} fixed by patches")
    return EXIT_FINDINGS if findings else EXIT_DONE


def _check_fixable(scope: Scope) -> None:
    """Raise TracepointError for what is not in a file that could be written."""
    if scope.is_patched:
        raise TracepointError("a patch cannot be fixed in place; use --diff")
    if Path("-") in scope.paths:
        raise TracepointError("stdin cannot be fixed in place; use --diff")


def _without_known(findings: list[Diagnostic], chosen: Settings) -> tuple[list[Diagnostic], int]:
    if not chosen.baseline:
        return findings, 0
    return apply_baseline(findings, read_baseline(read_text(Path(chosen.baseline))))


def _report(form: str, findings: Sequence[Diagnostic], headers: Sequence[Checked], style: Style) -> str:
    sources = {header.path: header.source for header in headers if header.source is not None}
    writers: dict[str, Callable[[], str]] = {
        "full": lambda: write_full(findings, sources, style),
        "concise": lambda: write_concise(findings, style),
        "json": lambda: write_json(findings),
        "jsonl": lambda: write_jsonl(findings),
        "sarif": lambda: write_sarif(findings, sources, version=__version__),
        "github": lambda: write_github(findings),
        "gitlab": lambda: write_gitlab(findings),
        "junit": lambda: write_junit(findings, sources),
    }
    if form not in writers:
        raise TracepointError(f"no output format {form!r}; known are {', '.join(writers)}")
    return writers[form]()


def _summary(
    out: Output,
    headers: Sequence[Checked],
    findings: Sequence[Diagnostic],
    *,
    n_known: int,
    n_changed: int,
    is_dry: bool,
) -> None:
    n_safe = sum(d.fix is not None and d.fix.is_safe for d in findings)
    n_unsafe = sum(d.fix is not None and d.fix.safety is Safety.UNSAFE for d in findings)
    noun = "file" if any(header.path.endswith(".py") for header in headers) else "header"
    parts = [f"{counted(len(findings), 'finding')} in {counted(len(headers), noun)}"]
    if n_known:
        parts.append(f"{n_known} more in the baseline")
    if n_changed:
        parts.append(f"{counted(n_changed, 'file')} {'would change' if is_dry else 'changed'}")
    if n_safe and not is_dry:
        parts.append(f"--fix repairs {n_safe}")
    if n_unsafe and not is_dry:
        parts.append(f"--fix --unsafe {n_unsafe} more")
    out.say("; ".join(parts))
