"""Generated files that are not written yet: a mapping of path to text.

`FileSet.write` is the only function of this room that writes to disk, and only for its caller.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from tracepoint.errors import GenerateError


class FileSet(Mapping[str, str]):
    """Paths (relative, with `/`) to texts, in the order in which they were made.

    `notes` say what could not be expressed, one sentence each.  Raises GenerateError for a path that
    is absolute or leads upwards.

    >>> files = FileSet({"Kbuild": "obj-m := a.o"}, notes=["one file"])
    >>> list(files), files["Kbuild"], files.notes
    (['Kbuild'], 'obj-m := a.o', ('one file',))
    """

    def __init__(self, files: Mapping[str, str], notes: tuple[str, ...] | list[str] = ()) -> None:
        for name in files:
            parts = PurePosixPath(name).parts
            if not parts or name.startswith("/") or ".." in parts:
                raise GenerateError("", f"{name!r} is not a path inside a folder")
        self._files = MappingProxyType(dict(files))
        self.notes = tuple(notes)

    def __getitem__(self, path: str) -> str:
        return self._files[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def __repr__(self) -> str:
        return f"FileSet({', '.join(self._files)})"

    def with_notes(self, *notes: str) -> FileSet:
        """Return the same files with more notes."""
        return FileSet(self, (*self.notes, *notes))

    def joined(self, other: FileSet) -> FileSet:
        """Return the files of both, their Kbuild lines together.

        Raises GenerateError when they differ about another path.
        """
        files = {**self, **other}
        for path in sorted(self.keys() & other.keys()):
            if self[path] == other[path]:
                continue
            if path != "Kbuild":
                raise GenerateError("", f"two different texts are meant for {path}")
            lines = self[path].splitlines()
            more = [line for line in other[path].splitlines() if line not in lines]
            files[path] = "\n".join([*lines, *more]) + "\n"
        return FileSet(files, (*self.notes, *other.notes))

    def write(self, folder: str | Path, *, overwrite: bool = False) -> list[Path]:
        """Write the files below `folder`, which is made, and return their paths.

        Either all are written or none: everything is first written next to its target.  Raises
        GenerateError, without changing anything, when a file already exists and `overwrite` is False; OSError
        when writing fails.
        """
        targets = {Path(folder) / path: text for path, text in self.items()}
        if not overwrite:
            taken = [str(path) for path in targets if path.exists() or path.is_symlink()]
            if taken:
                raise GenerateError(
                    "",
                    f"{', '.join(taken)}: exists already, and nothing was written; --force replaces",
                )
        made: list[Path] = []
        folders: list[Path] = []
        try:
            for path, text in targets.items():
                folders += _make_folder(path.parent)
                fresh = path.with_name(f".{path.name}.new")
                made.append(fresh)
                fresh.write_text(text, encoding="utf-8", errors="surrogateescape", newline="\n")
            for path in targets:
                path.with_name(f".{path.name}.new").replace(path)
        except BaseException:
            for path in made:
                path.unlink(missing_ok=True)
            for empty in reversed(folders):
                _remove_if_empty(empty)
            raise
        return list(targets)


def _make_folder(folder: Path) -> list[Path]:
    """Make a folder with its parents and return the new ones, outermost first."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "not a folder", str(folder))
    folder.mkdir(parents=True, exist_ok=True)
    return missing[::-1]


def _remove_if_empty(folder: Path) -> None:
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
