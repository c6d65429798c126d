"""`tracepoint check`: what is wrong with trace headers, and how to fix it."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from tracepoint import __version__
from tracepoint.check.reports.ci import write_github, write_gitlab, write_junit
from tracepoint.check.reports.json_lines import write_json, write_jsonl
from tracepoint.check.reports.text import write_concise, write_full
from tracepoint.check.suppress import apply_baseline, read_baseline, write_baseline
from tracepoint.cli import settings
from tracepoint.cli.authors import add_author_arguments
from tracepoint.cli.declare.check_cache import open_cache
from tracepoint.cli.declare.check_scope import CheckedFiles, find_mailbox_scope, find_scope, is_on_disk
from tracepoint.cli.files import read_text, unified_diff, write_text
from tracepoint.cli.status import EXIT_CANNOT_RUN, EXIT_DONE, EXIT_FINDINGS
from tracepoint.diagnostics import Safety
from tracepoint.errors import TracepointError
from tracepoint.source.text import SourceFile, encode
from tracepoint.tree.disk import digest_of
from tracepoint.wording import counted

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from tracepoint.check.python_source import PythonFile
    from tracepoint.check.reports.text import Style
    from tracepoint.cli.declare.check_cache import CheckCache, FoundHeader, Results
    from tracepoint.cli.output import Output
    from tracepoint.cli.settings import Settings
    from tracepoint.diagnostics import Diagnostic

_FORMATS = ("full", "concise", "json", "jsonl", "sarif", "github", "gitlab", "junit")
#: One fix may uncover the next; real headers settle in two rounds.
_MAX_ROUNDS = 8
_MAX_MISSING = 10
_HERE = ["."]


class CheckedHeader:
    """What reports and fixes need from a checked header; `text` is None when it is on disk."""

    def __init__(self, path: str, found: FoundHeader, text: str | None) -> None:
        self.path = path
        self.is_trace_header = found.is_trace_header
        self._digest = found.digest
        self._text = text

    @cached_property
    def source(self) -> SourceFile:
        """The text that was checked; raises TracepointError when it is no longer on disk."""
        text = read_text(Path(self.path)) if self._text is None else self._text
        if digest_of(encode(text)) != self._digest:
            raise TracepointError(
                f"{self.path} was changed by another program during the run; nothing was done"
            )
        return SourceFile(self.path, text)


Checked: TypeAlias = "CheckedHeader | PythonFile"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument(
        "paths",
        nargs="*",
        default=_HERE,
        metavar="PATH",
        help="headers, folders of them, Python files, patches, or - for stdin (default: .)",
    )
    parser.add_argument(
        "--diff-base", metavar="REV", help="only findings on lines changed since a git revision"
    )
    parser.add_argument(
        "--mbox", metavar="FILE", help="check the patches of a mailbox, a maildir or - for stdin"
    )
    parser.add_argument(
        "--skip-eventless",
        action="store_true",
        help="named files without trace events are no error, for programs that name all files of a commit",
    )
    _add_fix_arguments(parser)
    parser.add_argument("--output-format", choices=_FORMATS, help="default: full")
    parser.add_argument(
        "--docs-url", default="", metavar="URL", help="with sarif: the site of these docs, for links to rules"
    )
    parser.add_argument(
        "--write-baseline", metavar="FILE", help="write the current findings to FILE, for --baseline"
    )
    parser.add_argument(
        "--no-cache", action="store_true", help="neither use nor keep results of unchanged files"
    )
    settings.add_arguments(parser, "select", "ignore", "baseline", "include", "define", "exclude", "abi")


def _add_fix_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--fix", action="store_true", help="fix what can be fixed without changing a record")
    parser.add_argument(
        "--unsafe", action="store_true", help="with --fix: apply fixes that change records or text too"
    )
    parser.add_argument("--diff", action="store_true", help="print what --fix would change; write nothing")
    parser.add_argument(
        "--patch", action="store_true", help="with --fix: write patches for `git am`, one per rule and header"
    )
    parser.add_argument(
        "-o", "--output", metavar="DIR", help="with --patch: write them there (default: to stdout)"
    )
    parser.add_argument("--force", action="store_true", help="with -o: replace existing patches")
    add_author_arguments(parser.add_argument_group("with --patch"))


def run(args: argparse.Namespace, out: Output) -> int:
    """Print the findings; the exit status is 1 when any are left."""
    chosen = settings.read_settings(args)
    if settings.shows_settings(args, chosen, out):
        return EXIT_DONE
    scope, headers, findings = _check(args, chosen, out)
    if args.patch:
        return _patch(args, headers, findings, out)
    n_changed = 0
    if args.diff:
        n_changed = _diff(headers, findings, out, unsafe=args.unsafe)
    elif args.fix:
        _check_fixable(scope)
        headers, findings, n_changed = _fix(args, (headers, findings), chosen, out)
    if args.write_baseline:
        write_text(Path(args.write_baseline), write_baseline(findings))
        out.say(f"{counted(len(findings), 'finding')} written to {args.write_baseline}")
        return EXIT_DONE
    findings, n_known = _without_known(findings, chosen)
    findings = scope.with_patch_lines(findings)
    if not args.diff:
        form = args.output_format or chosen.output_format
        out.write(_report(form, findings, headers, out.style, args.docs_url))
    _summary(out, headers, findings, n_known=n_known, n_changed=n_changed, is_dry=args.diff)
    if not args.skip_eventless and _say_what_is_no_header(args.paths, headers, out):
        return EXIT_CANNOT_RUN
    return EXIT_FINDINGS if findings else EXIT_DONE


def _say_what_is_no_header(words: Sequence[str], headers: Sequence[Checked], out: Output) -> bool:
    """Report each named file that has nothing of a trace header in it."""
    named = {"<stdin>" if word == "-" else str(Path(word)) for word in words}
    empty = [h for h in headers if isinstance(h, CheckedHeader) and h.path in named and not h.is_trace_header]
    for header in empty:
        is_text = "\0" not in header.source.text
        why = "" if is_text else " (it is UTF-16 or binary: text is read as UTF-8)"
        out.error(f"{header.path}: it has no trace events{why}")
    return bool(empty)


def _check(
    args: argparse.Namespace, chosen: Settings, out: Output
) -> tuple[CheckedFiles, list[Checked], list[Diagnostic]]:
    """Find the files and check them, or take the results of an earlier run."""
    words, revision = _words(args), args.diff_base
    is_wanted = not args.no_cache and not args.mbox and is_on_disk(words)
    relevant = (chosen.select, chosen.ignore, chosen.include, chosen.define, chosen.exclude, chosen.abi)
    cache = open_cache([*words, revision or ""], relevant, is_wanted=is_wanted)
    known = cache.paths() if revision is None else None
    if args.mbox:
        scope = find_mailbox_scope(args.mbox)
    elif known is None:
        scope = find_scope(words, chosen.exclude, revision, cache.disk)
    else:
        scope = CheckedFiles(tuple(known))
    if scope.missing:
        out.warn(f"{args.mbox}: without {', '.join(scope.missing[:_MAX_MISSING])} of the series")
    if not scope.paths:
        what = "no trace headers" if revision is None else f"nothing changed since {revision}"
        out.warn(f"{what} in {', '.join(words)}: nothing was checked")
    scripts, findings = _check_scripts([path for path in scope.paths if path.suffix == ".py"], chosen)
    paths = [path for path in scope.paths if path.suffix != ".py"]
    results = cache.results(scope.paths, _identity) or _check_headers(scope, paths, chosen, out, cache)
    headers = [CheckedHeader(p, found, scope.text_of(p)) for p, found in results.headers.items()]
    return scope, [*headers, *scripts], scope.only_changed([*findings, *results.findings])


def _words(args: argparse.Namespace) -> list[str]:
    """Return what to check; raises TracepointError for a mailbox together with something else."""
    if not args.mbox:
        return list(args.paths)
    if args.paths != _HERE or args.diff_base is not None:
        raise TracepointError("patches are checked alone: --mbox without files and --diff-base")
    return [args.mbox]


def _identity(root: str) -> str:
    from tracepoint.tree.string_callers import StringCallers  # noqa: PLC0415 - few runs need it

    return StringCallers(Path(root)).identity


def _check_headers(
    scope: CheckedFiles, paths: Sequence[Path], chosen: Settings, out: Output, cache: CheckCache
) -> Results:
    from tracepoint.cli.declare.check_headers import HeaderChecker  # noqa: PLC0415 - slow, and not needed each time

    return HeaderChecker(chosen, scope, cache).check(paths, out)


def _check_scripts(paths: Sequence[Path], chosen: Settings) -> tuple[list[PythonFile], list[Diagnostic]]:
    if not paths:
        return [], []
    from tracepoint.check.engine_python import check_python_files, read_python  # noqa: PLC0415 - as above

    scripts = [read_python(read_text(path), str(path)) for path in paths]
    return scripts, check_python_files(scripts, select=chosen.select, ignore=chosen.ignore)


def _mended(
    headers: Sequence[Checked], findings: Sequence[Diagnostic], *, unsafe: bool
) -> dict[str, tuple[str, str]]:
    """Return the old and new text of every header that fixes change."""
    from tracepoint.check.engine import apply_fixes  # noqa: PLC0415 - slow, and only fixes need it

    changed = {}
    fixed: dict[str, list[Diagnostic]] = {}
    for finding in findings:
        edited = {edit.path for edit in finding.fix.edits} if finding.fix else set()
        if len(edited) == 1:
            fixed.setdefault(edited.pop(), []).append(finding)
    for header in headers:
        own = fixed.get(header.path)
        if not own:
            continue
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
    args: argparse.Namespace,
    checked: tuple[list[Checked], list[Diagnostic]],
    chosen: Settings,
    out: Output,
) -> tuple[list[Checked], list[Diagnostic], int]:
    """Apply fixes until nothing is left to fix; return the other findings, and how many files changed."""
    headers, findings = checked
    written: set[str] = set()
    for _ in range(_MAX_ROUNDS):
        changed = _mended(headers, findings, unsafe=args.unsafe)
        for path, (old, new) in changed.items():
            if read_text(Path(path)) != old:
                raise TracepointError(
                    f"{path} was changed by another program during the run; nothing written to it"
                )
            write_text(Path(path), new)
        if not changed:
            break
        written |= changed.keys()
        _, headers, findings = _check(args, chosen, out)
    return headers, findings, len(written)


def _patch(
    args: argparse.Namespace, headers: Sequence[Checked], findings: Sequence[Diagnostic], out: Output
) -> int:
    """Write patches instead of findings and fixed files."""
    if not args.fix:
        raise TracepointError("--patch needs --fix")
    from tracepoint.cli.declare.check_patches import write_patches  # noqa: PLC0415 - slow, and only --patch needs it

    fixed = {finding.span.path for finding in findings}
    texts = {header.path: header.source.text for header in headers if header.path in fixed}
    n_fixed = write_patches(args, findings, texts, out)
    out.say(f"{counted(n_fixed, 'finding')} of {len(findings)} fixed by patches")
    return EXIT_FINDINGS if findings else EXIT_DONE


def _check_fixable(scope: CheckedFiles) -> None:
    """Raise TracepointError for input that is not in a writable file."""
    if scope.is_patched:
        raise TracepointError("a patch cannot be fixed in place; use --diff")
    if Path("-") in scope.paths:
        raise TracepointError("stdin cannot be fixed in place; use --diff")


def _without_known(findings: list[Diagnostic], chosen: Settings) -> tuple[list[Diagnostic], int]:
    if not chosen.baseline:
        return findings, 0
    return apply_baseline(findings, read_baseline(read_text(Path(chosen.baseline))))


def _report(
    form: str, findings: Sequence[Diagnostic], headers: Sequence[Checked], style: Style, docs_url: str
) -> str:
    writers: dict[str, Callable[[], str]] = {
        "full": lambda: write_full(findings, _sources(findings, headers), style),
        "concise": lambda: write_concise(findings, style),
        "json": lambda: write_json(findings),
        "jsonl": lambda: write_jsonl(findings),
        "sarif": lambda: _write_sarif(findings, headers, docs_url),
        "github": lambda: write_github(findings),
        "gitlab": lambda: write_gitlab(findings),
        "junit": lambda: write_junit(findings, {header.path: header.source for header in headers}),
    }
    if form not in writers:
        raise TracepointError(f"no output format {form!r}; known are {', '.join(writers)}")
    return writers[form]()


def _sources(findings: Sequence[Diagnostic], headers: Sequence[Checked]) -> dict[str, SourceFile]:
    """Return the texts that findings are about."""
    paths = {finding.span.path for finding in findings}
    paths |= {related.span.path for finding in findings for related in finding.related}
    return {header.path: header.source for header in headers if header.path in paths}


def _write_sarif(findings: Sequence[Diagnostic], headers: Sequence[Checked], docs_url: str) -> str:
    from tracepoint.check.reports.sarif import write_sarif  # noqa: PLC0415 - it shows the pages of all rules

    return write_sarif(findings, _sources(findings, headers), version=__version__, docs_url=docs_url)


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
