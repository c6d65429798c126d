"""Trace arrays: the top level and its instances, with events, clock, buffers, options and markers."""

from __future__ import annotations

from tracepoint.control.limits import RecordLimits
from tracepoint.control.names import expand
from tracepoint.control.record import record
from tracepoint.control.settings import SNAPSHOT_ALLOCATED, capture, chosen
from tracepoint.errors import TracefsError
from tracepoint.wording import tail

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    import threading
    from collections.abc import Callable, Iterable
    from typing import Self

    from tracepoint.control.events import SystemControl, TracefsEvent
    from tracepoint.control.follow import FollowedArray
    from tracepoint.control.status import RecordStatus
    from tracepoint.control.tracefs import Tracefs
    from tracepoint.tracefile.recording import Recording

_MAX_WORD = 127


class TraceArray:
    """A ring buffer with the settings that fill it: the top level, or an instance.

    Indexing with `system:event` gives an EventControl, with a system's name a SystemControl.
    """

    def __init__(self, tracefs: Tracefs, name: str = "") -> None:
        self.tracefs = tracefs
        self.name = name
        self.prefix = f"instances/{name}/" if name else ""
        self._names: list[str] | None = None

    def __repr__(self) -> str:
        return f"<trace instance {tail(self.path)}>"

    @property
    def path(self) -> str:
        """The folder of this array, as other programs find it."""
        return f"{self.tracefs.files.root}/{self.prefix}".rstrip("/")

    @property
    def event_names(self) -> list[str]:
        """All events that can be enabled, as `system:event`, sorted; read once."""
        if self._names is None:
            self._names = sorted(self.tracefs.read("available_events").split())
        return self._names

    def forget_names(self) -> None:
        """Read the names of events again when next needed: some were defined or removed."""
        self._names = None

    def available_events(self, *patterns: str) -> list[str]:
        """Return the events that match any of the globs (all without one).  Raises TracefsError for none."""
        return expand(patterns, self.event_names) if patterns else list(self.event_names)

    def __getitem__(self, word: str) -> TracefsEvent | SystemControl:
        """Return an event or a system by its name."""
        # With the languages of filters and triggers, which most recordings do without.
        from tracepoint.control.events import find_event  # noqa: PLC0415

        return find_event(self, word)

    def event(self, word: str) -> TracefsEvent:
        """Return an event by its name; raises TracefsError for the name of a system."""
        from tracepoint.control.events import SystemControl  # noqa: PLC0415 - as above

        found = self[word]
        if isinstance(found, SystemControl):
            raise TracefsError(f"{word} is a system: name one of its events, such as {found.events[0]}")
        return found

    def enable(self, *patterns: str) -> list[str]:
        """Enable all events that match the globs; return their names.  Raises TracefsError."""
        return self._switch(patterns, "1")

    def disable(self, *patterns: str) -> list[str]:
        """Disable all events that match the globs; return their names.  Raises TracefsError."""
        return self._switch(patterns, "0")

    def _switch(self, patterns: Iterable[str], value: str) -> list[str]:
        """Write each event's file, or the system's if the patterns match all of it."""
        names = expand(patterns, self.event_names)
        wanted: dict[str, list[str]] = {}
        every: dict[str, int] = {}
        for name in self.event_names:
            every[name.partition(":")[0]] = every.get(name.partition(":")[0], 0) + 1
        for name in names:
            wanted.setdefault(name.partition(":")[0], []).append(name)
        for system, members in wanted.items():
            if len(members) == every[system]:
                self.tracefs.write(f"{self.prefix}events/{system}/enable", value)
            else:
                for member in members:
                    self.tracefs.write(f"{self.prefix}events/{member.replace(':', '/')}/enable", value)
        return names

    @property
    def enabled(self) -> list[str]:
        """The events that `set_event` lists: those enabled, also in soft mode."""
        return sorted(self.tracefs.read(f"{self.prefix}set_event").split())

    def set_event(self, words: str) -> None:
        """Write words as `set_event` understands them (no globs, `!` disables), adding to what is enabled."""
        for word in words.split():
            if len(word) > _MAX_WORD:
                raise TracefsError(f"a word of more than {_MAX_WORD} characters", "set_event", words)
        self.tracefs.write(f"{self.prefix}set_event", words + " ")

    @property
    def pids(self) -> list[int]:
        """The only processes whose events are recorded; empty for all.  Setting replaces them."""
        return self._pids("set_event_pid")

    @pids.setter
    def pids(self, pids: Iterable[int]) -> None:
        self._set_pids("set_event_pid", pids)

    @property
    def excluded_pids(self) -> list[int]:
        """The processes whose events are not recorded.  Setting replaces them."""
        return self._pids("set_event_notrace_pid")

    @excluded_pids.setter
    def excluded_pids(self, pids: Iterable[int]) -> None:
        self._set_pids("set_event_notrace_pid", pids)

    def _pids(self, name: str) -> list[int]:
        return [int(word) for word in self.tracefs.read(self.prefix + name).split()]

    def _set_pids(self, name: str, pids: Iterable[int]) -> None:
        self.tracefs.write(self.prefix + name, "".join(f"{pid}\n" for pid in pids), truncate=True)

    @property
    def clocks(self) -> list[str]:
        """The available clocks."""
        return self.tracefs.read(f"{self.prefix}trace_clock").replace("[", "").replace("]", "").split()

    @property
    def clock(self) -> str:
        """The clock that stamps records; setting another one empties the buffer."""
        return chosen(self.tracefs.read(f"{self.prefix}trace_clock"))

    @clock.setter
    def clock(self, name: str) -> None:
        if name not in self.clocks:
            raise TracefsError(f"no clock {name!r}; there are: {', '.join(self.clocks)}", "trace_clock", name)
        if name != self.clock:
            self.tracefs.write(f"{self.prefix}trace_clock", name)

    @property
    def options(self) -> dict[str, bool]:
        """The options and whether they are on."""
        folder = f"{self.prefix}options"
        return {
            name: self.tracefs.read(f"{folder}/{name}").strip() == "1" for name in self.tracefs.names(folder)
        }

    def set_option(self, name: str, is_on: bool) -> None:
        """Set one option; raises TracefsError, naming all, for an unknown one."""
        folder = f"{self.prefix}options"
        if name not in self.tracefs.names(folder):
            raise TracefsError(
                f"no option {name!r}; there are: {', '.join(self.tracefs.names(folder))}", folder
            )
        self.tracefs.write(f"{folder}/{name}", "1" if is_on else "0")

    @property
    def buffer_bytes(self) -> dict[str, int]:
        """The size of the ring buffer of each CPU, in bytes (multiples of 1024, rounded down)."""
        folder = f"{self.prefix}per_cpu"
        return {
            cpu: int(self.tracefs.read(f"{folder}/{cpu}/buffer_size_kb").split(" ", 1)[0]) * 1024
            for cpu in self.tracefs.names(folder)
        }

    def set_buffer(self, size: int, cpu: str = "") -> None:
        """Set the size in bytes (1024 and more) of each CPU's buffer, or of one such as `cpu0`.

        The kernel rounds up to whole pages and takes at least two; it fails with ENOMEM.
        """
        if size < 1024:
            raise TracefsError(f"a buffer of {size} bytes: at least 1024 are needed", "buffer_size_kb")
        folder = f"{self.prefix}per_cpu/{cpu}/" if cpu else self.prefix
        self.tracefs.write(f"{folder}buffer_size_kb", str(-(-size // 1024)))

    @property
    def is_on(self) -> bool:
        """Whether the ring buffer takes records; settable."""
        return self.tracefs.read(f"{self.prefix}tracing_on").strip() != "0"

    @is_on.setter
    def is_on(self, value: bool) -> None:
        self.tracefs.write(f"{self.prefix}tracing_on", "1" if value else "0")

    @property
    def has_snapshot(self) -> bool:
        """Whether the second buffer, for snapshots, exists."""
        return capture(self.tracefs.files, f"{self.prefix}snapshot") == SNAPSHOT_ALLOCATED

    def take_snapshot(self) -> str:
        """Swap the buffer with the snapshot's, allocating that if needed, and return the snapshot's text."""
        self.tracefs.write(f"{self.prefix}snapshot", "1")
        return self.tracefs.read(f"{self.prefix}snapshot")

    def free_snapshot(self) -> None:
        """Free the second buffer."""
        self.tracefs.write(f"{self.prefix}snapshot", "0")

    def mark(self, text: str) -> None:
        """Write `text` into the trace; a long one becomes several records.

        Raises TracefsError when tracing is off (EBADF) or markers are (EINVAL).
        """
        self.tracefs.write(f"{self.prefix}trace_marker", text)

    @property
    def text(self) -> str:
        """What the ring buffer holds, as text; nothing is consumed."""
        return self.tracefs.read(f"{self.prefix}trace")

    def clear(self) -> None:
        """Empty the ring buffer; this cannot be undone."""
        self.tracefs.write(f"{self.prefix}trace", "", truncate=True)

    def record(
        self,
        path: str | os.PathLike[str],
        seconds: float | None = None,
        *,
        until: threading.Event | None = None,
        during: Callable[[], object] | None = None,
        starts: bool = False,
        replace: bool = False,
        max_bytes: int | None = None,
        newest_ns: int | None = None,
        while_on: bool = False,
        compression: str = "none",
        watch: Callable[[RecordStatus], None] | None = None,
    ) -> Recording:
        """Save what is recorded as trace.dat; see `record.record`."""
        limits = RecordLimits(seconds, until, during, max_bytes, newest_ns, while_on)
        return record(
            self, path, limits, starts=starts, replace=replace, compression=compression, watch=watch
        )

    def record_files(
        self,
        path: str | os.PathLike[str],
        seconds: float | None = None,
        *,
        n_kept: int = 0,
        file_seconds: float | None = None,
        max_bytes: int | None = None,
        until: threading.Event | None = None,
        during: Callable[[], object] | None = None,
        starts: bool = False,
        replace: bool = False,
        while_on: bool = False,
        compression: str = "none",
        watch: Callable[[RecordStatus], None] | None = None,
        tell: Callable[[Recording], None] = lambda _: None,
    ) -> tuple[Recording, ...]:
        """Save what is recorded as files of `max_bytes` or `file_seconds`; see `rotate.record_files`."""
        # Few recordings are more than one file.
        from tracepoint.control.limits import Rotation  # noqa: PLC0415
        from tracepoint.control.rotate import record_files  # noqa: PLC0415

        limits = RecordLimits(seconds, until, during, max_bytes, while_on=while_on)
        return record_files(
            self,
            path,
            limits,
            Rotation(n_kept, file_seconds),
            starts=starts,
            replace=replace,
            compression=compression,
            watch=watch,
            tell=tell,
        )

    def follow(self) -> FollowedArray:
        """Return the records as they come, consumed; see `follow.FollowedArray`."""
        # With the readers of recordings, which most uses of an array do without.
        from tracepoint.control.follow import FollowedArray  # noqa: PLC0415

        return FollowedArray(self)

    @property
    def error_log(self) -> str:
        """The last eight refusals with their carets."""
        return self.tracefs.read(f"{self.prefix}error_log")


class TracefsInstance(TraceArray):
    """An instance; as a context manager it removes itself at the end if it was made here."""

    def __init__(self, tracefs: Tracefs, name: str, *, is_new: bool, remove: Callable[[str], None]) -> None:
        super().__init__(tracefs, name)
        self.is_new = is_new
        self._remove = remove

    def remove(self) -> None:
        """Remove the instance with everything that was set in it.

        Raises TracefsError (EBUSY) while another program reads one of its files.
        """
        self._remove(self.name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_new:
            self.remove()
