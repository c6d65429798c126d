"""What `tracepoint check` looks at: files as they are, lines changed since a revision, lines of patches."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.cli.declare.mailbox import IS_PATCH, read_mailbox
from tracepoint.cli.files import read_bytes, read_text
from tracepoint.cli.git import changed_files
from tracepoint.errors import TracepointError
from tracepoint.lab.build.patch import PatchError, apply_patches, read_patch, texts_before
from tracepoint.source.text import encode
from tracepoint.tree.disk import DISK
from tracepoint.tree.scan import find_headers, is_machinery, is_trace_header

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tracepoint.diagnostics import Diagnostic
    from tracepoint.lab.build.patch import PatchedFile
    from tracepoint.tree.disk import Disk

_PATCH_ENDS = (".patch", ".diff", ".mbox")
_STDIN, _STDIN_NAME = Path("-"), "<stdin>"


@dataclass(frozen=True, slots=True)
class CheckedFiles:
    """The files to check; `texts` are those that differ from the disk, by absolute path, and stdin's as `-`.

    `lines` are the lines whose findings count, by absolute path (None: all), each with the line of
    a patch that adds it (empty: it is in the file).  `missing` are the patches that a series lacks.
    """

    paths: tuple[Path, ...]
    texts: Mapping[str, str] = field(default_factory=dict)
    lines: Mapping[str, Mapping[int, str]] | None = None
    missing: tuple[str, ...] = ()

    @property
    def is_patched(self) -> bool:
        """Whether texts differ from those on disk."""
        return self.lines is not None and bool(self.texts)

    def text_of(self, path: str) -> str | None:
        """Return the text of a file if it differs from the disk, else None."""
        if not self.texts:
            return None
        return self.texts["-"] if path == _STDIN_NAME else self.texts.get(_key(path))

    def only_changed(self, findings: Sequence[Diagnostic]) -> list[Diagnostic]:
        """Return the findings on the lines that count, or about what is declared on one."""
        return [finding for finding in findings if self._added(finding) is not None]

    def with_patch_lines(self, findings: Sequence[Diagnostic]) -> list[Diagnostic]:
        """Return findings whose messages name the lines of the patch that cause them."""
        added = [(finding, self._added(finding)) for finding in findings]
        return [replace(f, message=f"{f.message} ({line})") if line else f for f, line in added]

    def _added(self, finding: Diagnostic) -> str | None:
        """Return the line of a patch that causes a finding (empty: none), or None when it does not count."""
        if self.lines is None:
            return ""
        for span in (finding.span, *(related.span for related in finding.related)):
            added = self.lines.get(_key(span.path), {})
            for number in range(span.line, span.end_line + 1):
                if number in added:
                    return added[number]
        return None


def is_on_disk(words: Sequence[str]) -> bool:
    """Return whether words of the command line name only files and folders, not patches or stdin."""
    return not any(word == "-" or _is_patch_file(Path(word)) for word in words)


def find_scope(
    words: Sequence[str], exclude: Sequence[str], revision: str | None, disk: Disk = DISK
) -> CheckedFiles:
    """Return what the words of the command line name; `revision` leaves only what has changed since.

    Raises FileNotFoundError for a path that does not exist, TracepointError for a patch that does not
    apply and for a revision that git does not know.
    """
    stdin = read_text(_STDIN) if "-" in words else ""
    patches = [(word, read_text(Path(word))) for word in words if word != "-" and _is_patch_file(Path(word))]
    if IS_PATCH.search(stdin):
        patches.append((_STDIN_NAME, stdin))
    if patches and (revision is not None or len(patches) < len(words)):
        raise TracepointError("patches are checked alone: without other files and --diff-base")
    if patches:
        return _patched(patches, [Path(name).resolve().parent for name, _ in patches if name != _STDIN_NAME])
    if revision is not None:
        return _changed(words, exclude, revision)
    return CheckedFiles(tuple(find_headers(words, exclude, disk)), {"-": stdin} if "-" in words else {})


def find_mailbox_scope(mailbox: str) -> CheckedFiles:
    """Return what the patches of a mailbox (`-` is stdin) or maildir change.

    Raises OSError for one that cannot be read, TracepointError when it has no patch or one does not apply.
    """
    series = read_mailbox(Path(mailbox))
    scope = _patched(series.patches, [] if mailbox == "-" else [Path(mailbox).resolve().parent])
    return replace(scope, missing=series.missing)


def _is_patch_file(path: Path) -> bool:
    return path.name.endswith(_PATCH_ENDS) and not path.is_dir()


def _is_header(path: Path, data: bytes) -> bool:
    return path.suffix == ".h" and not is_machinery(path.as_posix()) and is_trace_header(data)


def _key(path: Path | str) -> str:
    return str(Path(path).resolve())


def _changed(words: Sequence[str], exclude: Sequence[str], revision: str) -> CheckedFiles:
    """Find what changed since a revision; a file named explicitly counts whatever its name is."""
    if "-" in words:
        raise TracepointError("stdin has no revisions: --diff-base takes files and folders")
    find_headers([word for word in words if not Path(word).is_dir()])  # do they exist?
    named = {_key(word) for word in words}
    lines: dict[str, dict[int, str]] = {}
    paths: list[Path] = []
    for file in sorted(changed_files(map(Path, words), revision), key=lambda file: file.path):
        if not file.path.is_file():
            continue
        shown = Path(os.path.relpath(file.path))
        is_left_out = any(fnmatch(str(shown), pattern) for pattern in exclude)
        if _key(shown) in named or (
            shown.suffix == ".h" and not is_left_out and _is_header(shown, read_bytes(shown))
        ):
            paths.append(shown)
            lines[_key(shown)] = dict.fromkeys(file.added_lines(), "")
    return CheckedFiles(tuple(paths), lines=lines)


# --- patches ------------------------------------------------------------------------------------


def _patched(patches: Sequence[tuple[str, str]], folders: Sequence[Path]) -> CheckedFiles:
    """Apply the patches of some folders in memory to the tree that they are for."""
    root = _find_tree(patches, folders)

    def read(path: str) -> str | None:
        place = root / path
        if not place.is_file():
            return None
        return read_text(place)

    texts: dict[str, str] = {}
    lines: dict[str, dict[int, str]] = {}
    paths: list[Path] = []
    try:
        after = _applied(patches, read)
    except PatchError as error:
        raise TracepointError(str(error)) from error
    for name, file in sorted(after.items()):
        place = root / name
        if file is None:
            continue
        texts[_key(place)] = file.text
        if _is_header(place, encode(file.text)):
            paths.append(Path(os.path.relpath(place)))
            lines[_key(place)] = {n: f"{patch}:{line}" for n, (patch, line) in file.origins.items()}
    return CheckedFiles(tuple(paths), texts, lines)


def _applied(
    patches: Sequence[tuple[str, str]], read: Callable[[str], str | None]
) -> dict[str, PatchedFile | None]:
    """Return the files after the patches, which the tree may have already, as on their branch."""
    try:
        return apply_patches(patches, read)
    except PatchError as error:
        try:
            before = texts_before(patches, read)
            after = apply_patches(patches, lambda path: before[path] if path in before else read(path))
        except PatchError:
            raise error from None
        if any((file and file.text) != read(path) for path, file in after.items()):
            raise
        return after


def _find_tree(patches: Sequence[tuple[str, str]], folders: Sequence[Path]) -> Path:
    """Return the nearest folder, from here or `folders` upwards, with the files that the patches change.

    These are the files before the patches, or those after them.
    """
    made: set[str] = set()
    removed: set[str] = set()
    needed: list[str] = []
    for name, text in patches:
        try:
            changes = read_patch(text, name)
        except PatchError as error:
            raise TracepointError(str(error)) from error
        for change in changes:
            if change.path and change.path not in made:
                needed.append(change.path)
            if change.path != change.target:
                removed.add(change.path)
            removed.discard(change.target)
            made.add(change.target)
    left = made - removed - {""}
    wanted = [needed, left] if left else [needed]
    starts = [Path.cwd(), *folders]
    for start in dict.fromkeys(starts):
        for folder in (start, *start.parents):
            if any(all((folder / path).is_file() for path in paths) for paths in wanted):
                return folder
    raise TracepointError(
        f"{patches[0][0]} does not apply: no folder from {starts[0]} upwards has {needed[0]}; "
        "run it in the tree that the patch is for"
    )
