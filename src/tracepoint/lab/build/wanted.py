"""The request for a kernel build, read and checked before a tree is touched."""

from __future__ import annotations

import hashlib
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.errors import LabError, SourceError
from tracepoint.lab.build import config as kernel_config
from tracepoint.lab.build import make as kernel_make
from tracepoint.lab.build import sync as kernel_sync
from tracepoint.lab.build.patch import apply_patches
from tracepoint.lab.build.source import find_source
from tracepoint.tree.cache import cache_folder
from tracepoint.tree.opening import read_input

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# Debian's tree is unpacked without its Documentation, but the configuration includes a file of it.
STANDINS = {"Documentation/Kconfig": b""}


@dataclass(frozen=True, slots=True)
class Wanted:
    """The request: `options` must be in the configuration, `optional` may be; `files` are patched.

    `may_change` says that the tree belongs to the user; `title` names the finished kernel.
    """

    name: str
    folder: Path
    source: Path
    may_change: bool
    options: Mapping[str, str]
    optional: Mapping[str, str]
    files: Mapping[str, bytes | None]
    origins: Mapping[str, Mapping[int, tuple[str, int]]]
    title: str

    @classmethod
    def read(
        cls,
        kernel: str | Path,
        patches: Sequence[Path | str],
        fragments: Sequence[Path | str],
        options: Mapping[str, str],
        say: Callable[[str], None],
        *,
        suffix: str = "",
    ) -> Wanted:
        """Read patches and fragments (files, or texts of several lines); raises as `build_kernel` does."""
        kernel_make.check_tools()
        name, source, may_change = find_source(kernel, say)
        own: dict[str, str] = {}
        for fragment in fragments:
            own |= kernel_config.read_fragment(*text_and_name(fragment, "fragment"))
        own |= {key: kernel_config.check_value(key, value, "option") for key, value in options.items()}
        if own or may_change:
            name += "-" + _digest(own, str(source) if may_change else "")[:6]
        texts = [text_and_name(patch, f"patch {number}") for number, patch in enumerate(patches, 1)]
        changed = apply_patches([(label, text) for text, label in texts], lambda path: _read(source, path))
        files = {
            path: None if file is None else file.text.encode("utf-8", "surrogateescape")
            for path, file in changed.items()
        }
        lab, optional = (
            kernel_config.read_fragment(kernel_config.lab_fragment(part), part)
            for part in ("lab", "optional")
        )
        title = "+".join([name, *(_plain(label) for _, label in texts)])[:80]
        return cls(
            name + suffix,
            cache_folder() / "built" / "trees" / (name + suffix),
            source,
            may_change,
            lab | own,
            {key: value for key, value in optional.items() if key not in own},
            {path: text for path, text in STANDINS.items() if not (source / path).exists()} | files,
            {path: file.origins for path, file in changed.items() if file is not None},
            title,
        )

    @property
    def config_digest(self) -> str:
        """What determines the configuration."""
        described = {path: text for path, text in self.files.items() if "Kconfig" in path}
        return _digest(self.options, self.optional, sorted(described.items()), _compiler_version())

    @property
    def digest(self) -> str:
        """What determines the kernel, as long as the tree stays the same."""
        return _digest(str(self.source), self.config_digest, sorted(self.files.items()))


def text_and_name(given: Path | str, label: str) -> tuple[str, str]:
    """Return the text of a file, or a text of several lines itself, and its name."""
    if isinstance(given, str) and "\n" in given:
        return given, label
    path = Path(given)
    try:
        return read_input(path).decode("utf-8", "surrogateescape"), path.name
    except OSError as error:
        raise LabError(f"{path} cannot be read: {error.strerror}") from None
    except SourceError as error:
        raise LabError(f"cannot be read: {error}") from None


def _read(source: Path, path: str) -> str | None:
    data = kernel_sync.read_file(source / path)
    return None if data is None else data.decode("utf-8", "surrogateescape")


def _plain(label: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", re.sub(r"\.(patch|diff)$", "", label)).strip("-")


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogateescape")).hexdigest()


def _compiler_version() -> str:
    done = subprocess.run(["gcc", "-dumpfullversion"], capture_output=True, text=True, check=False)  # noqa: S607
    return done.stdout.strip()
