"""`tracepoint check --fix --patch`: one patch per rule and header, in the form that `git am` takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint import __version__
from tracepoint.check.patch_words import patch_body, patch_subject
from tracepoint.cli.authors import find_author, patch_file_name
from tracepoint.cli.git import git_top, introduced_by
from tracepoint.diagnostics import Safety, Severity
from tracepoint.errors import TracepointError
from tracepoint.generate.fileset import FileSet
from tracepoint.place.message import write_mail, write_message
from tracepoint.place.patch import change_file
from tracepoint.place.subsystem import header_prefix
from tracepoint.source.text import apply_edits
from tracepoint.tree.loader import find_kernel_root

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping, Sequence

    from tracepoint.cli.output import Output
    from tracepoint.diagnostics import Diagnostic, Edit
    from tracepoint.place.message import Author

_NO_HISTORY = "Fixes: to be filled in: the tree that this was made in has no history of these lines."
_GENERATOR = f"tracepoint {__version__}"


@dataclass(slots=True)
class _Header:
    """A header while patches are made: its name in the tree, its current text, all edits made to it."""

    root: Path
    name: str
    text: str
    done: list[Edit]

    def moved(self, edits: Iterable[Edit]) -> list[Edit] | None:
        """Return edits of the first text as edits of the current text, None when some place has changed."""
        out = []
        for edit in edits:
            shift = 0
            for other in self.done:
                if edit.end <= other.start and (edit.start, edit.end) != (other.start, other.end):
                    continue
                if other.end > edit.start:
                    return None
                shift += len(other.replacement) - (other.end - other.start)
            out.append(replace(edit, path=self.name, start=edit.start + shift, end=edit.end + shift))
        return out


def write_patches(
    args: argparse.Namespace, findings: Sequence[Diagnostic], texts: Mapping[str, str], out: Output
) -> int:
    """Write the patches to stdout or into a folder, and return how many findings they fix.

    `texts` are those of the headers, by path. Errors and warnings are fixed whatever the fix
    changes, notes only with `--unsafe`.  Raises PlaceError when the sender is not known.
    """
    author = find_author(args, args.author)
    groups: dict[tuple[str, str], list[Diagnostic]] = {}
    for finding in findings:
        if _is_wanted(finding, unsafe=args.unsafe):
            groups.setdefault((finding.span.path, finding.code), []).append(finding)
    headers: dict[str, _Header] = {}
    mails: dict[str, str] = {}
    n_fixed = 0
    for (path, _), group in groups.items():
        header = headers.setdefault(path, _open(path, texts[path]))
        edits, fixed = _edits(header, group)
        if not edits:
            continue
        number = f"{len(mails) + 1:04}"
        subject, mail = _mail(header, fixed, edits, author)
        mails[f"{number}-{patch_file_name(subject)}.patch"] = mail
        n_fixed += len(fixed)
    if args.output:
        for written in FileSet(mails).write(args.output, overwrite=args.force):
            out.line(str(written))
    else:
        for text in mails.values():
            out.write(text)
    return n_fixed


def _is_wanted(finding: Diagnostic, *, unsafe: bool) -> bool:
    fix = finding.fix
    if fix is None or fix.safety is Safety.SHOWN or any(e.path != finding.span.path for e in fix.edits):
        return False
    return fix.is_safe or unsafe or finding.severity is not Severity.NOTE


def _open(path: str, text: str) -> _Header:
    """Raises TracepointError for a header whose name in a tree is not known."""
    place = Path(path).resolve()
    root = find_kernel_root(place.parent) or git_top(place.parent) or Path.cwd()
    if path == "<stdin>" or root not in place.parents:
        raise TracepointError(
            f"{path}: a patch needs a file in a kernel tree, a git tree or below this folder"
        )
    return _Header(root, place.relative_to(root).as_posix(), text, [])


def _edits(header: _Header, group: Sequence[Diagnostic]) -> tuple[list[Edit], list[Diagnostic]]:
    """Return the edits of the fixes that go together, with their findings, and record them as made."""
    taken: dict[Edit, None] = {}
    made: dict[Edit, None] = {}
    fixed = []
    for finding in group:
        edits = finding.fix.edits if finding.fix is not None else ()
        fresh = [edit for edit in edits if edit not in made]
        moved = header.moved(fresh)
        if moved is None or any(_overlap(one, other) for one in fresh for other in made):
            continue
        made |= dict.fromkeys(fresh)
        taken |= dict.fromkeys(moved)
        fixed.append(finding)
    header.done += made
    return sorted(taken, key=lambda edit: edit.start), fixed


def _overlap(one: Edit, other: Edit) -> bool:
    return (one.start < other.end and other.start < one.end) or one.start == other.start


def _mail(
    header: _Header, fixed: Sequence[Diagnostic], edits: Sequence[Edit], author: Author
) -> tuple[str, str]:
    """Return the subject and the text of one patch, and apply it to the header's text."""
    change = change_file(header.name, header.text, edits)
    header.text = apply_edits(header.text, edits)
    subject = f"{header_prefix(header.name)}: {patch_subject(fixed)}"
    message = write_message(subject, patch_body(fixed), (), ())
    origins = [introduced_by(header.root, header.name, finding.span.line) for finding in fixed]
    trailers = "".join(f"Fixes: {origin}\n" for origin in dict.fromkeys(filter(None, origins)))
    notes = "" if all(origins) else _NO_HISTORY
    mail = write_mail(message, author, [change], generator=_GENERATOR, notes=notes, trailers=trailers)
    return subject, mail
