"""Putting settings back to the values that a journal kept, in an order that the kernel allows.

What counts is the kept value, not the way that led away from it: each setting is read, compared and
written when it differs.  So restoring may itself be interrupted and repeated.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.control.journal import read_journal, running_writer
from tracepoint.control.restored import Restored
from tracepoint.control.settings import (
    INSTANCE_MADE,
    INSTANCE_REMOVED,
    SNAPSHOT_FREED,
    capture,
    split_array,
)
from tracepoint.control.validate import read_triggers
from tracepoint.errors import TracefsError
from tracepoint.filter.error import FilterFault
from tracepoint.tree.cache import oldest_first
from tracepoint.trigger.command import Trigger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from tracepoint.control.operations import Files

_BUSY_TRIES = 20
_BUSY_SECONDS = 0.05
# These take one word a write, and forget the old ones when opened for truncation.
_WORD_LISTS = ("set_event_pid", "set_event_notrace_pid")
# A filter that could not be parsed is shown with a caret line and the reason.
_BAD_FILTER = re.compile(r"\n( *)\^\nparse_error: (.*)\n?\Z")
_EMPTY_FILTER = "\nError: (0)\n"


def restore_settings(files: Files, before: Mapping[str, str]) -> Restored:
    """Give every setting in `before` (path -> value) that value again.

    Instances that were made go first, because their triggers may use what has to go, and those that were
    removed come back; triggers and
    dynamic events come off before anything else and go on again after filters and clock; events
    are enabled last.  Settings of events that no longer exist are passed over.
    """
    run = _Run(files, before)
    run.remove_instances()
    run.make_instances()
    run.take_triggers_off()
    run.each(("enable",), lambda path: run.set_enable(path, only_off=True))
    run.dynamic_events()
    run.each(("filter",), run.filter)
    run.others()
    run.put_triggers_on()
    run.each(("trace_clock", "snapshot", "tracing_on"), run.plain)
    run.each(("enable",), run.set_enable)
    return run.done


class _Run:
    def __init__(self, files: Files, before: Mapping[str, str]) -> None:
        self.files = files
        self.before = before
        self.done = Restored()

    def each(self, names: Iterable[str], act: Callable[[str], None]) -> None:
        """Call `act` for the settings of these names."""
        for name in names:
            for path in self.before:
                if path.rpartition("/")[2] == name:
                    self._guarded(act, path)

    def _guarded(self, act: Callable[..., None], path: str, *more: str) -> None:
        try:
            act(path, *more)
        except FileNotFoundError:
            return  # the event, or the whole instance, has gone: there is nothing to put back
        except OSError as error:
            self.done.problems.append(f"{path}: {os.strerror(error.errno or errno.EIO)}")

    def _differs(self, path: str) -> bool:
        now = capture(self.files, path)
        return now is not None and now != self.before[path]

    def _write(self, path: str, text: str, *, truncate: bool = False) -> None:
        self.files.write(path, text, truncate=truncate)
        if path not in self.done.changed:
            self.done.changed.append(path)

    def remove_instances(self) -> None:
        """Remove the instances that were made, waiting a little for readers to finish."""
        for folder in self._instances(INSTANCE_MADE):
            self._guarded(self._remove_instance, folder)

    def make_instances(self) -> None:
        """Recreate the instances that were removed; their settings follow with all others."""
        for folder in self._instances(INSTANCE_REMOVED):
            self._guarded(self._make_instance, folder)

    def _instances(self, what: str) -> list[str]:
        arrays = [path for path, value in self.before.items() if value == what and path.endswith("/")]
        return [array.rstrip("/") for array in arrays if not split_array(array)[1]]

    def _make_instance(self, folder: str) -> None:
        if not self.files.exists(folder):
            self.files.make_folder(folder)
            self.done.changed.append(folder)

    def _remove_instance(self, folder: str) -> None:
        for attempt in range(_BUSY_TRIES):
            try:
                self.files.remove_folder(folder)
            except OSError as error:
                if error.errno != errno.EBUSY or attempt == _BUSY_TRIES - 1:
                    raise
                time.sleep(_BUSY_SECONDS)
            else:
                self.done.changed.append(folder)
                return

    def take_triggers_off(self) -> None:
        """Remove every trigger of the events whose list differs, in any order that works.

        A histogram whose variable another one uses is EBUSY until that other one has gone.
        """
        changed = [path for path in self.before if path.endswith("/trigger") and self._safely_differs(path)]
        waiting = [(path, trigger) for path in changed for trigger in self._surplus(path)]
        while waiting:
            refused: list[tuple[str, Trigger]] = []
            for path, trigger in reversed(waiting):
                try:
                    self._write(path, trigger.removal)
                except OSError:
                    refused.insert(0, (path, trigger))
            if len(refused) == len(waiting):
                self.done.problems += [f"{p}: cannot take {t.text!r} off" for p, t in refused]
                return
            waiting = refused

    def _safely_differs(self, path: str) -> bool:
        try:
            return self._differs(path)
        except OSError:
            return False

    def _surplus(self, path: str) -> list[Trigger]:
        """Return the triggers to remove, so that the order is right afterwards.

        Histograms that are first in both lists stay, and with them what they have counted.
        """
        now, listed = self._triggers(path)
        hists = [t for t in now if t.command == "hist"]
        wanted = [t for t in listed if t.command == "hist"]
        kept = 0
        while kept < min(len(hists), len(wanted)) and hists[kept] == wanted[kept]:
            kept += 1
        return [t for t in now if t.command != "hist"] + hists[kept:]

    def _triggers(self, path: str) -> tuple[list[Trigger], list[Trigger]]:
        """Return what a file shows and what it showed; nothing of a file that cannot be read."""
        try:
            return read_triggers(self.files.read(path)), read_triggers(self.before[path])
        except TracefsError as error:
            problem = f"{path}: {error}"
            self.done.problems += [problem] if problem not in self.done.problems else []
            return [], []

    def put_triggers_on(self) -> None:
        """Set what is missing; those on other histograms' variables wait until these are there."""
        waiting: list[tuple[str, Trigger]] = []
        for path in self.before:
            if path.endswith("/trigger") and self._safely_differs(path):
                now, listed = self._triggers(path)
                # The kernel puts a new trigger before the others, but a histogram after them.
                simple = [t for t in reversed(listed) if t.command != "hist"]
                hists = [t for t in listed if t.command == "hist"]
                waiting += [(path, t) for t in simple + hists if t not in now]
        while waiting:
            refused = [(path, t) for path, t in waiting if not self._put_on(path, t)]
            if len(refused) == len(waiting):
                self.done.problems += [f"{p}: cannot set {t.text!r} again" for p, t in refused]
                return
            waiting = refused

    def _put_on(self, path: str, trigger: Trigger) -> bool:
        paused = Trigger("hist", trigger.parameters + ":pause", filter=trigger.filter)
        try:
            self._write(path, (paused if trigger.is_paused else trigger).text)
        except OSError:
            return False
        return True

    def set_enable(self, path: str, *, only_off: bool = False) -> None:
        """Write 0 or 1; the star of soft mode follows from the triggers."""
        if not self._differs(path):
            return
        wanted = self.before[path][:1]
        if wanted in ("0", "1") and not (only_off and wanted == "1"):
            self._write(path, wanted)

    def dynamic_events(self) -> None:
        """Remove the definitions that were added and define again those that were removed."""
        path = "dynamic_events"
        if path not in self.before:
            return
        wanted = self.before[path].splitlines()
        now = self._lines(path)
        for line in reversed(now):
            if line not in wanted:
                self._guarded(self._write, path, "-:" + _name(line))
        now = self._lines(path)
        for line in wanted:
            if line not in now:
                self._guarded(self._write, path, line)

    def _lines(self, path: str) -> list[str]:
        try:
            return self.files.read(path).splitlines()
        except OSError:
            return []

    def filter(self, path: str) -> None:
        """Write a filter again, also one that the kernel refused then: it shows the same refusal."""
        if not self._differs(path):
            return
        value = self.before[path]
        bad = _BAD_FILTER.search(value)
        if bad is None and not value.endswith(_EMPTY_FILTER):
            self._write(path, "0" if value == "none" else value)
        elif bad is not None and bad[2] == FilterFault.BAD_SUBSYS_FILTER:
            # Only a write for the whole system makes this text, and it would change the other
            # events; like the text, no filter at all lets everything through.
            self._write(path, "0")
            self.done.notes.append(f"{path}: the refused filter of its system is not shown again")
        else:
            text = value[: bad.start()] if bad else value.removesuffix(_EMPTY_FILTER)
            with contextlib.suppress(OSError):
                self._write(path, text or "\n")

    def others(self) -> None:
        """Write everything that is a single file with a single value."""
        special = ("enable", "filter", "trigger", "trace_clock", "snapshot", "tracing_on")
        for path in self.before:
            _, rest = split_array(path)
            if rest and rest.rpartition("/")[2] not in special and path != "dynamic_events":
                self._guarded(self.plain, path)

    def plain(self, path: str) -> None:
        """Write one value; of `snapshot` only whether there is a buffer comes back, not what it held."""
        if not self._differs(path):
            return
        value = self.before[path]
        name = path.rpartition("/")[2]
        if name == "snapshot":
            # A buffer is only made by swapping with it: the second time brings the first one back.
            for text in ("0",) if value == SNAPSHOT_FREED else ("1", "1"):
                self._write(path, text)
            return
        self._write(path, value, truncate=name in _WORD_LISTS)


def _name(definition: str) -> str:
    """Return `GROUP/EVENT` of a line of `dynamic_events` such as `p:kprobes/foo do_sys_open`."""
    return definition.split(None, 1)[0].split(":", 1)[-1]


@dataclass(frozen=True, slots=True)
class JournalReport:
    """The result of one journal: `path`, a sentence, and what was restored (None: left alone)."""

    path: Path
    message: str
    restored: Restored | None = None


def restore_journals(folder: Path, open_files: Callable[[], Files]) -> list[JournalReport]:
    """Put back what dead sessions left, newest first; those of running ones are left alone.

    `open_files` is called only when there is something to put back.  A journal is removed when all of
    it could be restored, or when it is about an earlier boot.
    """
    reports = []
    if not folder.is_dir():
        return []
    for path in reversed(oldest_first(folder.glob("*.journal"))):
        try:
            head, entries = read_journal(path)
        except FileNotFoundError:
            # Its session has ended meanwhile.
            continue
        # A journal whose first line is not written yet has the process in its name only.
        pid = running_writer(path) if head is None else head.pid if head.is_running else 0
        if pid:
            reports.append(JournalReport(path, f"process {pid} still runs: left alone"))
        elif head is not None and not head.is_of_this_boot:
            path.unlink(missing_ok=True)
            reports.append(JournalReport(path, "from before the last boot: dropped"))
        else:
            restored = restore_settings(open_files(), entries) if entries else Restored()
            if not restored.problems:
                path.unlink(missing_ok=True)
            message = f"{len(entries)} settings kept, {len(restored.changed)} put back"
            reports.append(JournalReport(path, message, restored))
    return reports
