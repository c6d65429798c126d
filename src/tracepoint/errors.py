"""The exception tree: everything that tracepoint raises on purpose.

A message says what happened, to which thing, where, and what to try.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tracepoint.diagnostics import Diagnostic, Span


class TracepointError(Exception):
    """The base of every exception raised on purpose."""


class LossWarning(UserWarning):
    """What was saved lacks events that were recorded: the rings were too small, or could not be made."""


class FaultWarning(RuntimeWarning):
    """An event was called wrongly, or its probe, condition or assignment failed: nothing was recorded."""


class SourceError(TracepointError):
    """Text that cannot be read as a declaration.

    `span` is the place; `diagnostics` are the findings made before reading had to stop.
    """

    def __init__(
        self, message: str, span: Span | None = None, diagnostics: tuple[Diagnostic, ...] = ()
    ) -> None:
        super().__init__(f"{span}: {message}" if span is not None else message)
        self.message = message
        self.span = span
        self.diagnostics = diagnostics


class LayoutError(TracepointError):
    """A record that cannot be laid out: unknown type, impossible length, damaged object or format.

    `field` names the field (empty when the whole event or file is meant), `reason` says why.
    """

    def __init__(self, reason: str, field: str = "", event: str = "") -> None:
        where = " ".join(part for part in (event and f"event {event},", field and f"field {field}:") if part)
        super().__init__(f"{where} {reason}" if where else reason)
        self.reason = reason
        self.field = field
        self.event = event


class RenderError(TracepointError):
    """A print format that cannot be understood; `reason` says which part."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class TreeError(TracepointError):
    """A folder that is not a kernel tree, or one that cannot be read; `path` says which."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class GenerateError(TracepointError):
    """Source code that cannot be made from a declaration; `event` names it, `reason` says why."""

    def __init__(self, event: str, reason: str) -> None:
        super().__init__(f"{event}: {reason}" if event else reason)
        self.event = event
        self.reason = reason


class PlaceError(TracepointError):
    """A call that cannot be put where it was asked for; `reason` says why.

    `span` is the place in the source that prevents it, None when there is none.
    """

    def __init__(self, reason: str, span: Span | None = None) -> None:
        super().__init__(f"{span}: {reason}" if span is not None else reason)
        self.reason = reason
        self.span = span


class LabError(TracepointError):
    """An outside tool failed: compiler, QEMU, a module that does not load.

    `command` is what ran, `status` its exit status, `log_tail` the lines that matter and
    `log_path` the whole log (empty when none was kept).
    """

    def __init__(
        self,
        message: str,
        command: str = "",
        status: int | None = None,
        log_tail: str = "",
        log_path: str = "",
    ) -> None:
        text = message
        if log_tail:
            text += "\n" + log_tail
        if log_path:
            text += f"\nwhole log: {log_path}"
        super().__init__(text)
        self.command = command
        self.status = status
        self.log_tail = log_tail
        self.log_path = log_path


class TracefsError(TracepointError):
    """The kernel's tracefs refused something, or would refuse it.

    `path` is the file below the mount, `wrote` the text that was written (empty for a read), `errno`
    the positive number that the system call failed with (0 when the fault was found before writing)
    and `error_log` what the kernel says about it, with its caret line.
    """

    def __init__(
        self, message: str, path: str = "", wrote: str = "", errno: int = 0, error_log: str = ""
    ) -> None:
        text = f"{path}: {message}" if path else message
        super().__init__(f"{text}\n{error_log.rstrip()}" if error_log else text)
        self.message = message
        self.path = path
        self.wrote = wrote
        self.errno = errno
        self.error_log = error_log


class TracefsNotFound(TracefsError):  # noqa: N818 (the name says what is the case)
    """No tracefs is mounted; the message says how to mount it."""


class TracefsPermission(TracefsError):  # noqa: N818 (the name says what is the case)
    """The file may not be read or written by this user; the message says what to do."""


class DecodeError(TracepointError):
    """A recording that cannot be read: not one, cut off, or contradicting itself.

    `path` is the file (empty when bytes were given), `offset` the place in it in bytes, `cpu` the
    CPU whose data is meant; None where there is none.
    """

    def __init__(
        self, reason: str, path: str = "", offset: int | None = None, cpu: int | None = None
    ) -> None:
        where = [path] if path else []
        if offset is not None:
            where.append(f"offset {offset:#x}")
        if cpu is not None:
            where.append(f"cpu {cpu}")
        super().__init__(f"{', '.join(where)}: {reason}" if where else reason)
        self.reason = reason
        self.path = path
        self.offset = offset
        self.cpu = cpu
