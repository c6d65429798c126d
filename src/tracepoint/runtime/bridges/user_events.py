"""Events of this process in the kernel's own trace, beside the scheduler's: the bridge to user_events.

Kernel: kernel/trace/trace_events_user.c, include/uapi/linux/user_events.h (since 6.4, CONFIG_USER_EVENTS).
A process describes its events in `user_events_data`; the kernel sets a bit in the process's memory while
a tracer has enabled it, and records what is written.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import re
import struct
from typing import TYPE_CHECKING, Any, Self

from tracepoint.errors import TracefsError, TracefsNotFound, TracefsPermission
from tracepoint.runtime.declare.plan import FieldKind
from tracepoint.runtime.fire.convert import make_record
from tracepoint.runtime.hierarchy import tracing
from tracepoint.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tracepoint.layout.format import FieldFormat
    from tracepoint.runtime.declare.plan import RecordPlan
    from tracepoint.runtime.event_control import EventControl
    from tracepoint.runtime.fire.probes import Registration
    from tracepoint.runtime.hierarchy import Tracing

DATA_FILE = "/sys/kernel/tracing/user_events_data"
MAX_DESCRIPTION = 512
MAX_CHARS = 1024
# _IOWR('*', 0, struct user_reg *) and _IOW('*', 2, struct user_unreg *): the size is that of a pointer.
_REGISTER = 0xC0082A00
_UNREGISTER = 0x40082A02
_REG = struct.Struct("<IBBHQQI")
_UNREG = struct.Struct("<IBBHQ")
_HEAD = 8
_WORD = 4
_WHY = {
    errno.EADDRINUSE: "another process has an event of that name with other fields",
    errno.EMFILE: "the kernel holds no more user events (/proc/sys/kernel/user_events_max)",
    errno.EINVAL: "the kernel does not take this description",
}


def describe_event(name: str, plan: RecordPlan) -> str:
    """Return the text that declares an event to the kernel so that its record is laid out as ours.

    The kernel packs fields without gaps (user_event_parse_fields()), so gaps become fields
    `__pad...`.  Types that it does not know become structs of their size.  Raises TracefsError when
    the text is longer than the kernel takes (512 bytes).
    """
    kinds = {field.name: field.kind for field in plan.fields}
    words = []
    at = _HEAD
    for place in plan.format.fields[plan.format.n_common :]:
        if place.offset > at:
            words.append(f"char[{place.offset - at}] __pad{at}")
        words.append(_field(place, kinds[place.name]))
        at = place.offset + place.size
    text = f"{name} {'; '.join(words)}" if words else name
    if len(text.encode()) >= MAX_DESCRIPTION:
        raise TracefsError(
            f"{name}: its description has {len(text.encode())} bytes, and the kernel takes "
            f"{MAX_DESCRIPTION - 1}: fewer fields or shorter names",
            wrote=text,
        )
    return text


def _field(place: FieldFormat, kind: FieldKind) -> str:
    """Return one field in the words of user_event_parse_field()."""
    letter = "s" if place.is_signed else "u"
    match kind:
        case FieldKind.INT:
            return f"{letter}{8 * place.size} {place.name}"
        case FieldKind.BOOL:
            return f"u8 {place.name}"
        case FieldKind.CHARS if place.size <= MAX_CHARS:
            return f"char[{place.size}] {place.name}"
        case _ if place.is_data_loc:
            word = "__rel_loc" if place.is_rel_loc else "__data_loc"
            # The kernel wants a NUL after everything that is called char.
            return f"{word} {'char[]' if kind is FieldKind.STRING else 'u8[]'} {place.name}"
        case _:
            return f"struct {re.sub(r'[^A-Za-z0-9]+', '_', place.ctype).strip('_')} {place.name} {place.size}"


class UserEvents:
    """Some of this process's events, or all, as events of the kernel; a context manager.

    `events` are events or names, of the hierarchy `tracing`; those declared later are not in.  `names` is
    what the kernel calls them (`user_events:SYSTEM_NAME`), `n_refused` counts records that it did not take.
    They are switched, filtered and read there with what reads every other event (tracefs, perf, eBPF);
    there is nothing to switch here.  Needs write access to `path`.  Raises TracefsNotFound where there are no
    user events, TracefsPermission without access, TracefsError when an event is refused; then none stays
    registered.

    >>> try:
    ...     with UserEvents(path="/nosuch/user_events_data"):
    ...         pass
    ... except TracefsNotFound as error:
    ...     print(error.message)
    there are no user events here: a kernel since 6.4 with CONFIG_USER_EVENTS and a mounted tracefs has them
    """

    def __repr__(self) -> str:
        return f"<UserEvents, {counted(len(self.names), 'event')}, {self.n_refused:,} refused>"

    def __init__(
        self, events: Iterable[Any] | None = None, *, path: str = DATA_FILE, tracing: Tracing = tracing
    ) -> None:
        controls = list(tracing.events)
        if events is not None:
            controls = [tracing.event(e) if isinstance(e, str) else e.control for e in events]
        self._file = _open(path)
        self._path = path
        self._tracing = tracing
        self._memory = mmap.mmap(-1, max(len(controls) * _WORD, mmap.PAGESIZE))
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._words = memoryview(self._memory).cast("I")
        self._registrations: list[Registration] = []
        self._numbers: dict[str, int] = {}
        self.names: dict[str, str] = {}
        self.n_refused = 0
        try:
            for control in controls:
                self._add(control)
        except BaseException:
            self.close()
            raise

    def is_enabled(self, name: str) -> bool:
        """Return whether event `system:name` is enabled in the kernel; KeyError for one not bridged."""
        return bool(self._words[self._numbers[name]])

    def close(self) -> None:
        """Take the events out of the kernel; harmless when that is done already.

        Raises RuntimeError in a probe: it waits for what other threads write.
        """
        while self._registrations:
            self._registrations.pop().unregister()
        if self._numbers:
            # What a thread writes now would go to the next file that gets this number.
            self._tracing.synchronize()
        for number in self._numbers.values():
            data = _UNREG.pack(_UNREG.size, 0, 0, 0, self._address + number * _WORD)
            fcntl.ioctl(self._file, _UNREGISTER, bytearray(data))
        self._numbers.clear()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _add(self, control: EventControl) -> None:
        """Declare one event to the kernel and write to it whenever it fires."""
        name = f"{control.system}_{control.event.name}"
        number = len(self._numbers)
        text = describe_event(name, control.plan)
        kept = ctypes.create_string_buffer(text.encode())
        address = self._address + number * _WORD
        request = bytearray(_REG.pack(_REG.size, 0, _WORD, 0, address, ctypes.addressof(kept), 0))
        try:
            fcntl.ioctl(self._file, _REGISTER, request)
        except OSError as error:
            why = _WHY.get(error.errno or 0, error.strerror)
            raise TracefsError(f"{control.full_name}: {why}", self._path, text, error.errno or 0) from None
        self._numbers[control.full_name] = number
        self.names[control.full_name] = name
        index = request[-_WORD:]
        self._registrations.append(control.register(self._writer(control, number, bytes(index)), prio=-1000))

    def _writer(self, control: EventControl, number: int, index: bytes) -> Any:
        plan, assign, words, file = control.plan, control.assign, self._words, self._file
        fields, sizes = plan.fields, (plan.size, plan.dynamic)

        def write(*args: Any) -> None:
            if not words[number]:
                return
            values = args if assign is None else assign(*args)
            record = (
                values if isinstance(values, bytes) else make_record(fields, tuple(values), *sizes, (0, 0))
            )
            try:
                os.writev(file, (index, memoryview(record)[_HEAD:]))
            except OSError as error:
                # EBADF: the last tracer has just disabled it.
                if error.errno != errno.EBADF:
                    self.n_refused += 1

        return write


def _open(path: str) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        raise TracefsNotFound(
            "there are no user events here: a kernel since 6.4 with CONFIG_USER_EVENTS and a mounted tracefs "
            "has them",
            path,
            errno=errno.ENOENT,
        ) from None
    except OSError as error:
        raise TracefsPermission(
            f"cannot be opened: {error.strerror}; it takes root, or the file's group",
            path,
            errno=error.errno or 0,
        ) from None
