"""Debian suites besides the machine's own: scratch apt lists in the cache, the system's lists untouched."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.errors import LabError
from tracepoint.lab.kernels.packages import run_tool
from tracepoint.tree.cache import cache_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_ETC = Path("/etc/apt")
_OS_RELEASE = Path("/etc/os-release")
_REFRESH_SECONDS = 300
_STALE_SECONDS = 86_400
_ROLLING = {"stable", "testing", "unstable", "sid"}
_ONE_LINE = re.compile(r"deb\s+(?:\[([^]]*)\]\s+)?(\S+)\s+(\S+)\s+(.+)")


@dataclass(frozen=True, slots=True)
class PackageSource:
    """One package source of the machine: `signed_by` is key files or a key's text, empty if unspecified."""

    uri: str
    suites: tuple[str, ...]
    components: tuple[str, ...]
    signed_by: str = ""


def parse_one_line(text: str) -> list[PackageSource]:
    """Return the binary package sources of a `.list` file.

    >>> parse_one_line("deb [signed-by=/k.gpg] http://mirror/debian sid main")[0].signed_by
    '/k.gpg'
    """
    sources = []
    for line in text.splitlines():
        found = _ONE_LINE.fullmatch(line.partition("#")[0].strip())
        if found:
            options = dict(word.partition("=")[::2] for word in (found[1] or "").split())
            key = options.get("signed-by", "")
            sources.append(PackageSource(found[2], (found[3],), tuple(found[4].split()), key))
    return sources


def parse_deb822(text: str) -> list[PackageSource]:
    r"""Return the enabled binary package sources of a `.sources` file.

    >>> parse_deb822("Types: deb\nURIs: http://mirror/debian\nSuites: sid\nComponents: main")[0].suites
    ('sid',)
    """
    sources = []
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    for stanza in re.split(r"\n(?:[ \t]*\n)+", "\n".join(lines)):
        fields = {
            name.lower(): value.strip()
            for name, value in re.findall(r"^([A-Za-z0-9-]+):(.*(?:\n[ \t].*)*)", stanza, re.MULTILINE)
        }
        if "deb" not in fields.get("types", "").split() or fields.get("enabled", "yes").lower() == "no":
            continue
        suites, components = fields.get("suites", "").split(), fields.get("components", "").split()
        key = "\n".join("" if line.strip() == "." else line.strip() for line in _lines(fields))
        sources += [
            PackageSource(uri, tuple(suites), tuple(components), key)
            for uri in fields.get("uris", "").split()
        ]
    return sources


def _lines(fields: dict[str, str]) -> list[str]:
    return fields.get("signed-by", "").splitlines()


def find_mirror(etc: Path = _ETC, os_release: Path = _OS_RELEASE) -> PackageSource:
    """Return the source that this machine's own Debian packages come from; LabError when there is none."""
    told = os_release.read_text(errors="replace") if os_release.is_file() else ""
    codename = re.search(r'^VERSION_CODENAME="?([a-z]+)', told, re.MULTILINE)
    own = _ROLLING | ({codename[1]} if codename else set())
    fitting = [
        source
        for source in _read_sources(etc)
        if "main" in source.components
        and own.intersection(source.suites)
        and not source.uri.startswith("cdrom:")
    ]
    if not fitting:
        raise LabError(f"no Debian mirror among the package sources in {etc}: --suite takes its address")
    # Others also name their suites like Debian's: their addresses seldom end like a mirror's.
    return max(fitting, key=lambda s: ("debian" in re.split(r"[/:]", s.uri), len(s.suites)))


def _read_sources(etc: Path) -> Iterator[PackageSource]:
    parts = sorted((etc / "sources.list.d").glob("*"))
    for path in (etc / "sources.list", *parts):
        if path.suffix in {".list", ".sources"} and path.is_file():
            text = path.read_text(errors="replace")
            yield from parse_one_line(text) if path.suffix == ".list" else parse_deb822(text)


def list_text(mirror: PackageSource, suites: Sequence[str], key_file: str = "") -> str:
    r"""Return the text of a scratch source list; `key_file` replaces a key that is written out.

    >>> list_text(PackageSource("http://mirror/debian", ("sid",), ("main",), "/k.gpg"), ["trixie"])
    'deb [signed-by=/k.gpg] http://mirror/debian trixie main\n'
    """
    keys = key_file or ",".join(re.split(r"[,\s]+", mirror.signed_by))
    option = f"[signed-by={keys}] " if keys else ""
    return "".join(f"deb {option}{mirror.uri} {suite} main\n" for suite in suites)


def apt_options(suites: Sequence[str], say: Callable[[str], None] = lambda _words: None) -> tuple[str, ...]:
    """Return the options that let apt see `suites` alone, fetching lists older than a day.

    No suites: no options, which are the system's own lists.  Old lists that cannot be fetched again
    are used as they are.  Raises LabError for a suite that the mirror does not have, and when
    the network, apt or a mirror is missing.
    """
    if not suites:
        return ()
    for suite in suites:
        if not re.fullmatch(r"[a-z][a-z0-9.+-]*", suite):
            raise LabError(f"--suite {suite}: that is not the name of a Debian suite")
    folder = cache_folder() / "apt"
    (folder / "lists/partial").mkdir(parents=True, exist_ok=True)
    mirror = find_mirror()
    key_file = ""
    if mirror.signed_by.startswith("-----BEGIN"):
        key_file = str(folder / "mirror.asc")
        Path(key_file).write_text(mirror.signed_by + "\n")
    for suite in suites:
        _refresh(folder, suite, list_text(mirror, [suite], key_file), say)
    several = folder / ("+".join(suites) + ".list")
    several.write_text(list_text(mirror, suites, key_file))
    return _options(folder, several)


def _options(folder: Path, source_list: Path) -> tuple[str, ...]:
    settings = (
        f"Dir::Etc::sourcelist={source_list}",
        "Dir::Etc::sourceparts=/dev/null",
        f"Dir::State::Lists={folder / 'lists'}",
        # The system's binary caches describe other lists: neither read nor written.
        "Dir::Cache::pkgcache=",
        "Dir::Cache::srcpkgcache=",
    )
    return tuple(word for setting in settings for word in ("-o", setting))


def _refresh(folder: Path, suite: str, text: str, say: Callable[[str], None]) -> None:
    """Fetch the list of one suite unless there is a current one from this mirror."""
    source_list, fetched = folder / f"{suite}.list", folder / f"{suite}.fetched"
    is_here = fetched.is_file() and fetched.read_text() == text
    if is_here and time.time() - fetched.stat().st_mtime < _STALE_SECONDS:
        return
    source_list.write_text(text)
    say(f"fetching the package list of {suite}")
    # The lists of other suites are in the same folder; an unreachable mirror is only a warning otherwise.
    settings = ("APT::Get::List-Cleanup=0", "APT::Update::Error-Mode=any", "Acquire::Languages=none")
    options = [word for setting in settings for word in ("-o", setting)]
    try:
        run_tool(["apt-get", "-q", *_options(folder, source_list), *options, "update"], _REFRESH_SECONDS)
    except LabError as error:
        if is_here and "404" not in str(error):
            say(f"the package list of {suite} is old and could not be fetched again: it is used as it is")
            return
        raise _explain(error, suite) from None
    fetched.write_text(text)


def _explain(error: LabError, suite: str) -> LabError:
    """Return an error that says what a failed refresh means, with the lines of apt that say why."""
    lines = [
        line
        for line in error.log_tail.splitlines()
        if (re.match(r"(E|W|Err:\d+):? ", line) or "404" in line) and "unsandboxed" not in line
    ]
    if re.search(r"\b404\b", error.log_tail):
        message = f"the mirror has no suite {suite}"
    elif error.status is None:
        return error
    else:
        message = f"the package list of {suite} could not be fetched"
    return LabError(message, error.command, error.status, "\n".join(lines) or error.log_tail)
