"""What a recording says about itself: what was saved, and what its ring buffers lost.

A trace.dat has the counts as options CPUSTAT: the text of per_cpu/cpuN/stats of each CPU, as
trace-cmd writes it, those of an instance after a line with its name.
"""

from __future__ import annotations

import re

from tracepoint.named import NamedTuple
from tracepoint.tracefile.options import Option, OptionId, find_options, text_option
from tracepoint.wording import counted, tail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

_BUFFER = re.compile(r"\A\s*Buffer: (.*?)\s*\Z", re.DOTALL)
_VARIABLE = re.compile(r" ([a-z_]+)=0x([0-9a-f]{1,16})\b")
_SETTING = re.compile(r" (tracer|options)=(\S{0,4096})")
_CPU = re.compile(r"\A\s*CPU: (\d{1,9})$", re.MULTILINE)
_COUNT = re.compile(r"^([a-z ]+): (\d{1,19})$", re.MULTILINE)


class CpuStats(NamedTuple):
    """What one CPU recorded: pages and records saved, and events lost to a full ring buffer.

    `overrun` counts those overwritten before they were read (with those of `commit overrun`),
    `dropped` those that were not written: the option `overwrite` was off, or there was no ring.
    `instance` is empty for the top.
    """

    cpu: int
    n_pages: int
    n_records: int
    overrun: int
    dropped: int
    instance: str = ""


class Recording(NamedTuple):
    """A file that was written, by its `name`, with the sums over its CPUs.

    `is_cut` says that what was recorded ended early: what was not read until then is in no count.
    `problem` says why the recording ended before it should, such as a full disk; empty where it did not.
    """

    name: str
    cpus: tuple[CpuStats, ...]
    is_cut: bool = False
    problem: str = ""

    def __repr__(self) -> str:
        lost = f", {self.overrun + self.dropped:,} missing" if self.missing else ""
        return f"<Recording {tail(self.name, 60)}, {counted(self.n_records, 'record')}{lost}>"

    @property
    def path(self) -> Path:
        """The file."""
        from pathlib import Path  # noqa: PLC0415 - 3 ms, which a recording does without

        return Path(self.name)

    @property
    def n_records(self) -> int:
        """The records in the file."""
        return sum(cpu.n_records for cpu in self.cpus)

    @property
    def overrun(self) -> int:
        """The events overwritten before they could be read."""
        return sum(cpu.overrun for cpu in self.cpus)

    @property
    def dropped(self) -> int:
        """The events that found no room."""
        return sum(cpu.dropped for cpu in self.cpus)

    @property
    def missing(self) -> str:
        """What the file lacks, in words; empty when it has everything that was recorded."""
        if not self.overrun and not self.dropped:
            return ""
        total = self.n_records + self.overrun + self.dropped
        return f"{self.overrun} of {total} events were overwritten, {self.dropped} dropped"


class Losses(NamedTuple):
    """What a ring buffer lost, over all its CPUs: the counts of per_cpu/cpuN/stats."""

    overrun: int = 0
    commit_overrun: int = 0
    dropped: int = 0


def read_stats(text: str) -> dict[str, int]:
    r"""Return the whole numbers of the text of per_cpu/cpuN/stats, times left out.

    >>> read_stats("entries: 3\nnow ts:     5.012345\ndropped events: 0\n")
    {'entries': 3, 'dropped events': 0}
    """
    return {name: int(value) for name, value in _COUNT.findall(text)}


def stats_options(texts: Mapping[int, str], instance: str = "") -> tuple[Option, ...]:
    """Make the options CPUSTAT of one buffer from the texts of per_cpu/cpuN/stats, by CPU."""
    head = [text_option(OptionId.CPUSTAT, f"\nBuffer: {instance}\n\n")] if instance else []
    return (*head, *(text_option(OptionId.CPUSTAT, f"CPU: {n}\n{text}") for n, text in texts.items()))


def read_pairs(text: str) -> dict[int, str]:
    r"""Read `saved_cmdlines`: pid to command name; lines of another shape are passed over.

    >>> read_pairs("117 sh\n15 rcu preempt\n")
    {117: 'sh', 15: 'rcu preempt'}
    """
    found = {}
    for line in text.split("\n"):
        pid, _, name = line.strip(" \0").partition(" ")
        if pid.isascii() and pid.isdigit() and len(pid) <= 10:
            found[int(pid)] = name
    return found


def read_tgids(text: str) -> dict[int, int]:
    r"""Read `saved_tgids`: pid to the pid of its process.

    >>> read_tgids("120 118\n")
    {120: 118}
    """
    pairs = read_pairs(text).items()
    return {pid: int(tgid) for pid, tgid in pairs if tgid.isascii() and tgid.isdigit() and len(tgid) <= 10}


class TraceSettings(NamedTuple):
    """What was set while recording: the tracer, and the words of `trace_options`; empty where not known."""

    tracer: str = ""
    options: tuple[str, ...] = ()

    @classmethod
    def read(cls, tracer: str, options: str) -> TraceSettings:
        r"""Read the texts of `current_tracer` and `trace_options`.

        >>> TraceSettings.read("nop\n", "print-parent\nnoraw\n")
        TraceSettings(tracer='nop', options=('print-parent', 'noraw'))
        """
        return cls(tracer.strip(), tuple(options.split()))


def version_option(variables: Mapping[str, int], settings: TraceSettings | None = None) -> Option:
    """Make the option VERSION: who recorded, values of variables that print formats read, settings."""
    words = "".join(f" {name}={value:#x}" for name, value in variables.items())
    if settings is not None and settings.tracer:
        words += f" tracer={settings.tracer}"
    if settings is not None and settings.options:
        words += f" options={','.join(settings.options)}"
    return text_option(OptionId.VERSION, f"tracepoint{words}")


def settings_of(options: Iterable[Option]) -> TraceSettings:
    """Return the settings that our option VERSION holds.

    >>> settings_of([version_option({}, TraceSettings("function", ("raw", "nohex")))])
    TraceSettings(tracer='function', options=('raw', 'nohex'))
    """
    text = "".join(_own_versions(options))
    found = dict(_SETTING.findall(text))
    return TraceSettings(found.get("tracer", ""), tuple(filter(None, found.get("options", "").split(","))))


def variables_of(options: Iterable[Option]) -> dict[str, int]:
    """Return the variables of the kernel that our option VERSION holds."""
    found = (_VARIABLE.findall(text) for text in _own_versions(options))
    return {name: int(value, 16) for pairs in found for name, value in pairs}


def _own_versions(options: Iterable[Option]) -> list[str]:
    texts = [option.text for option in find_options(options, OptionId.VERSION)]
    return [text for text in texts if text.startswith("tracepoint")]


def stats_by_cpu(options: Iterable[Option], instance: str = "") -> dict[int, dict[str, int]]:
    """Return what the options CPUSTAT say of each CPU of one buffer, as `read_stats` gives it."""
    found: dict[int, dict[str, int]] = {}
    shown = ""
    for option in find_options(options, OptionId.CPUSTAT):
        buffer = _BUFFER.match(option.text)
        if buffer is not None:
            shown = buffer[1]
        elif shown == instance:
            cpu = _CPU.match(option.text)
            # One without a number would be lost beside another.
            own = found.setdefault(int(cpu[1]) if cpu else -1, {})
            for name, value in read_stats(option.text).items():
                own[name] = own.get(name, 0) + value
    return found


def losses_of(options: Iterable[Option], instance: str = "") -> Losses:
    """Return what the options CPUSTAT say that one buffer lost."""
    counts = stats_by_cpu(options, instance).values()
    names = ("overrun", "commit overrun", "dropped events")
    return Losses(*(sum(own.get(name, 0) for own in counts) for name in names))
