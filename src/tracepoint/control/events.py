"""The events of a trace array: state, filter, triggers and histograms of one event or one system."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from tracepoint.control.hist import HistTable, read_hist_tables
from tracepoint.control.names import no_such_event
from tracepoint.control.restore import restore_settings
from tracepoint.control.settings import capture
from tracepoint.control.validate import check_filter, check_trigger, read_trigger, read_triggers
from tracepoint.errors import TracefsError
from tracepoint.filter.parse import is_clear
from tracepoint.layout.format import read_format
from tracepoint.wording import one_line

if TYPE_CHECKING:
    from tracepoint.control.array import ArrayFiles
    from tracepoint.layout.format import EventFormat
    from tracepoint.trigger.command import Trigger


class State(enum.StrEnum):
    """What an `enable` file shows.

    `MIXED` and `NONE` (no event that can be enabled) are states of systems; in the soft states a
    trigger keeps the event's hook in place, and `SOFT_OFF` records nothing.
    """

    OFF = "0"
    ON = "1"
    MIXED = "X"
    NONE = "?"
    SOFT_OFF = "0*"
    SOFT_ON = "1*"


class TracefsEvent:
    """One event of one trace array; made by indexing the array with `system:event`."""

    def __init__(self, array: ArrayFiles, system: str, name: str) -> None:
        self._array = array
        self._tracefs = array.tracefs
        self.system = system
        self.name = name
        self.path = f"{array.prefix}events/{system}/{name}"

    def __repr__(self) -> str:
        return f"<event {one_line(f'{self.system}:{self.name}')}>"

    @property
    def state(self) -> State:
        """What the event's `enable` file shows."""
        return read_state(self._tracefs.read(f"{self.path}/enable"), self.path)

    def enable(self) -> None:
        """Let the event record."""
        self._tracefs.write(f"{self.path}/enable", "1")

    def disable(self) -> None:
        """Stop recording; triggers keep working."""
        self._tracefs.write(f"{self.path}/enable", "0")

    @property
    def format(self) -> EventFormat:
        """The event's record and print format."""
        return read_format(self._tracefs.read(f"{self.path}/format"), self.system)

    @property
    def filter(self) -> str:
        """The filter as it was written, empty when there is none.

        Setting it checks it first; `""`, `None` and `"0"` clear it.  The old one stays if the
        new one is refused (the kernel itself would then let everything pass).
        """
        text = self._tracefs.read(f"{self.path}/filter").removesuffix("\n")
        return "" if text == "none" else text

    @filter.setter  # noqa: A003 (the word that tracefs has for it)
    def filter(self, text: str | None) -> None:
        self.set_filter(text or "0")

    def set_filter(self, text: str, *, is_checked: bool = True) -> None:
        """Set the filter; without `is_checked` only the kernel checks it. Raises TracefsError."""
        path = f"{self.path}/filter"
        if is_checked and not is_clear(text):
            check_filter(text, self.format, path)
        before = capture(self._tracefs.files, path)
        try:
            self._tracefs.write(path, text)
        except TracefsError as error:
            shown = self._tracefs.read(path)
            if before is not None:
                restore_settings(self._tracefs.files, {path: before})
            if error.error_log or "parse_error" not in shown:
                raise
            raise TracefsError(error.message, path, text, error.errno, shown) from error

    @property
    def triggers(self) -> list[Trigger]:
        """The triggers that are set."""
        return read_triggers(self._tracefs.read(f"{self.path}/trigger"))

    @property
    def trigger(self) -> str:
        """The triggers that are set, one per line; setting it adds one (or, with `!`, removes it)."""
        return "".join(f"{trigger.text}\n" for trigger in self.triggers)

    @trigger.setter
    def trigger(self, text: str) -> None:
        self.add_trigger(text)

    def add_trigger(self, text: str, *, is_checked: bool = True) -> Trigger:
        """Add a trigger after checking it, or remove one with `!`; return it.  Raises TracefsError."""
        if is_checked:
            trigger = check_trigger(text, self.format, self._array.event_names)
        else:
            trigger = read_trigger(text)
        # Never truncate: that would remove existing histograms.
        self._tracefs.write(f"{self.path}/trigger", text.strip())
        return trigger

    def remove_triggers(self) -> None:
        """Remove every trigger, last the histograms whose variables others use.  Raises TracefsError."""
        triggers = self.triggers
        for trigger in reversed(triggers):
            self._tracefs.write(f"{self.path}/trigger", trigger.removal)

    def histograms(self) -> list[HistTable]:
        """Return the histograms that count now, in the order in which they were set."""
        return read_hist_tables(self._tracefs.read(f"{self.path}/hist"))


class SystemControl:
    """All events of one system of a trace array; made by indexing the array with a system's name."""

    def __init__(self, array: ArrayFiles, system: str) -> None:
        self._array = array
        self._tracefs = array.tracefs
        self.system = system
        self.path = f"{array.prefix}events/{system}"

    def __repr__(self) -> str:
        return f"<system {one_line(self.system)}>"

    @property
    def state(self) -> State:
        """`MIXED` when some events are enabled and others are not."""
        return read_state(self._tracefs.read(f"{self.path}/enable"), self.path)

    @property
    def events(self) -> list[str]:
        """The system's events that can be enabled, as `system:event`."""
        return [name for name in self._array.event_names if name.startswith(self.system + ":")]

    def enable(self) -> None:
        """Let every event of the system record."""
        self._tracefs.write(f"{self.path}/enable", "1")

    def disable(self) -> None:
        """Stop recording every event of the system."""
        self._tracefs.write(f"{self.path}/enable", "0")

    def set_filter(self, text: str) -> list[str]:
        """Set a filter for every event that has its fields; return the events that it does not fit.

        The kernel accepts anything here and shows the result at each event, so each is read back.
        The events that it does not fit get no filter; when it fits none, all filters are as before
        and TracefsError says why.
        """
        names = self.events
        paths = {name: f"{self._array.prefix}events/{name.replace(':', '/')}/filter" for name in names}
        before = {path: capture(self._tracefs.files, path) for path in paths.values()}
        self._tracefs.write(f"{self.path}/filter", text)
        if is_clear(text):
            return []
        unfit = [name for name, path in paths.items() if "\nparse_error: " in self._tracefs.read(path)]
        if len(unfit) == len(names):
            restore_settings(
                self._tracefs.files, {p: value for p, value in before.items() if value is not None}
            )
            first = TracefsEvent(self._array, *names[0].split(":"))
            check_filter(text, first.format, paths[names[0]])
            raise TracefsError(
                f"no event of {self.system} has the fields of this filter", f"{self.path}/filter", text
            )
        for name in unfit:
            self._tracefs.write(paths[name], "0")
        return unfit


def read_state(text: str, path: str) -> State:
    """Return the state that an `enable` file shows; raises TracefsError for any other text."""
    try:
        return State(text.strip())
    except ValueError:
        raise TracefsError(f"shows {text.strip()[:20]!r}, which is not a state", f"{path}/enable") from None


def find_event(array: ArrayFiles, word: str) -> TracefsEvent | SystemControl:
    """Return the event or system called `word`; raises TracefsError naming a similar one."""
    system, colon, name = word.partition(":")
    safe = "/" not in word and word not in (".", "..")
    if safe and colon and name and system and array.tracefs.exists(f"{array.prefix}events/{system}/{name}"):
        return TracefsEvent(array, system, name)
    if safe and not colon:
        if array.tracefs.exists(f"{array.prefix}events/{word}/enable"):
            return SystemControl(array, word)
        alone = [event for event in array.event_names if event.endswith(f":{word}")]
        if len(alone) == 1:
            return TracefsEvent(array, *alone[0].split(":"))
    raise TracefsError(no_such_event(word, array.event_names))
