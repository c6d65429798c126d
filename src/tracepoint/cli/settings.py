"""Settings: the command line over the configuration file over the defaults.

The file is `.tracepoint.toml`, or `[tool.tracepoint]` in a `pyproject.toml`; the nearest one from
the current folder upwards is used, and its paths are relative to it.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracepoint.errors import TracepointError
from tracepoint.tree.opening import read_input

if TYPE_CHECKING:
    import argparse

    from tracepoint.cli.output import Output

FILE_NAME = ".tracepoint.toml"
_PATHS = {"include", "baseline", "exclude"}
_OPTIONS = {
    "include": (("-I", "--include"), "DIR", "a folder for #include files; repeatable"),
    "define": (("-D", "--define"), "NAME[=VALUE]", "a macro; repeatable"),
    "exclude": (("--exclude",), "GLOB", "paths to skip; repeatable"),
    "select": (("--select",), "CODES", "only these rules: TP301, TP3, ALL"),
    "ignore": (("--ignore",), "CODES", "skip these rules"),
    "abi": (("--abi",), "ABI", "x86_64 (default), i386, arm64, arm, riscv64, s390x, ppc64le"),
    "baseline": (("--baseline",), "FILE", "ignore the findings listed in FILE"),
}


class SettingsError(TracepointError):
    """A configuration file that cannot be used; the message names the file and the key."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What every command that reads headers needs to know.

    `select` and `ignore` are rule codes, or their beginnings; `include` and `define` are like
    a compiler's -I and -D; `exclude` are glob patterns of paths to skip in folders; `source` says where the
    values came from.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    define: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    abi: str = "x86_64"
    output_format: str = "full"
    baseline: str = ""
    source: dict[str, str] = field(default_factory=dict, compare=False)

    def text(self) -> str:
        """Return the settings as TOML, each with its source."""
        lines = []
        for name in _names():
            value = getattr(self, name)
            words = [_quoted(word) for word in value] if isinstance(value, tuple) else []
            text = f"[{', '.join(words)}]" if isinstance(value, tuple) else _quoted(value)
            lines.append(f"{_spelt(name)} = {text}  # {self.source.get(name, 'default')}")
        return "\n".join(lines) + "\n"


def add_arguments(parser: argparse.ArgumentParser, *names: str) -> None:
    """Add the options that change settings: those named, and `--config`, `--show-settings`."""
    group = parser.add_argument_group("settings")
    for name in names:
        flags, metavar, help_text = _OPTIONS[name]
        action = "append" if isinstance(getattr(Settings(), name), tuple) else "store"
        group.add_argument(*flags, dest=f"setting_{name}", action=action, metavar=metavar, help=help_text)
    group.add_argument(
        "--config", metavar="FILE", help=f"use FILE, not the nearest {FILE_NAME} or pyproject.toml"
    )
    group.add_argument("--show-settings", action="store_true", help="print the effective settings and exit")


def read_settings(args: argparse.Namespace) -> Settings:
    """Merge defaults, the configuration file and the command line.

    Raises `SettingsError` for a file that is not TOML, an unknown key, or a value of the wrong kind.
    """
    path = Path(args.config) if getattr(args, "config", None) else _nearest(Path.cwd())
    settings = read_file(path) if path is not None else Settings()
    source = dict(settings.source)
    given: dict[str, Any] = {}
    for name in _names():
        value = getattr(args, f"setting_{name}", None)
        if value is None:
            continue
        given[name] = _split(name, value) if isinstance(value, list) else value
        source[name] = "command line"
    return replace(settings, **given, source=source)


def shows_settings(args: argparse.Namespace, settings: Settings, out: Output) -> bool:
    """Print the settings if `--show-settings` is set; return whether it is."""
    if getattr(args, "show_settings", False):
        out.write(settings.text())
        return True
    return False


def read_file(path: Path) -> Settings:
    """Read one configuration file; a `pyproject.toml` without our table gives the defaults."""
    try:
        data = tomllib.loads(read_input(path).decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SettingsError(f"{path}: not TOML: {error}") from error
    table = data if path.name != "pyproject.toml" else _table(data.get("tool"), "tracepoint")
    known = {_spelt(name): name for name in _names()}
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in known:
            raise SettingsError(f"{path}: unknown key {key!r}; known are {', '.join(known)}")
        name = known[key]
        values[name] = _checked(path, key, value, is_list=isinstance(getattr(Settings(), name), tuple))
        if name in _PATHS:
            values[name] = _beside(path, values[name])
    return Settings(**values, source=dict.fromkeys(values, str(path)))


def _table(value: object, name: str) -> dict[str, Any]:
    """Return the table with this name in another, empty when either is not a table."""
    inner = value.get(name) if isinstance(value, dict) else None
    return inner if isinstance(inner, dict) else {}


def _nearest(folder: Path) -> Path | None:
    for place in (folder, *folder.parents):
        own, project = place / FILE_NAME, place / "pyproject.toml"
        if own.is_file():
            return own
        if project.is_file() and b"[tool.tracepoint]" in read_input(project):
            return project
    return None


def _checked(path: Path, key: str, value: object, *, is_list: bool) -> str | tuple[str, ...]:
    if is_list and isinstance(value, list) and all(isinstance(word, str) for word in value):
        return tuple(value)
    if not is_list and isinstance(value, str):
        return value
    wanted = "a list of strings" if is_list else "a string"
    raise SettingsError(f"{path}: {key} must be {wanted}, not {value!r}")


def _beside(path: Path, value: str | tuple[str, ...]) -> str | tuple[str, ...]:
    if isinstance(value, str):
        return str(path.parent / value)
    return tuple(str(path.parent / word) for word in value)


def _split(name: str, words: list[str]) -> tuple[str, ...]:
    if name in {"select", "ignore"}:
        words = [part for word in words for part in word.replace(",", " ").split()]
    return tuple(words)


def _names() -> tuple[str, ...]:
    return tuple(f.name for f in fields(Settings) if f.name != "source")


def _spelt(name: str) -> str:
    return name.replace("_", "-")


def _quoted(word: str) -> str:
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'
