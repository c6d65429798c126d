"""Values that say what is wrong, where, and how to mend it.

Nothing here raises, prints or reads a file.  A `Diagnostic` is made by the rooms that read
text (`source`, `model`) and by `check`; the command line turns it into lines, JSON or SARIF.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from tracepoint.wording import counted, one_line, tail


class Severity(enum.StrEnum):
    """How bad a finding is; `ERROR` means that the kernel build, boot or a reader breaks."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Safety(enum.StrEnum):
    """What applying a fix may change.

    `SAFE` keeps record, text and comments; `UNSAFE` changes the record or what readers see;
    `SHOWN` is advice only and is never applied.
    """

    SAFE = "safe"
    UNSAFE = "unsafe"
    SHOWN = "shown"


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A stretch of one file: lines and columns count from 1, `end_column` is exclusive.

    `start` and `end` are character offsets in the file's text (-1 when the span was not made
    from text, for instance by `tracepoint.declare`).
    """

    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    start: int = -1
    end: int = -1

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"

    def __repr__(self) -> str:
        return f"<Span {tail(str(self))}>"


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the characters `start` to `end` of `path` by `replacement`."""

    path: str
    start: int
    end: int
    replacement: str

    def __repr__(self) -> str:
        return f"<Edit {tail(self.path, 40)} {self.start}-{self.end}: {one_line(repr(self.replacement), 40)}>"


@dataclass(frozen=True, slots=True)
class Fix:
    """One way to mend a finding: a sentence, the edits, and how safe they are."""

    message: str
    edits: tuple[Edit, ...]
    safety: Safety = Safety.SAFE

    @property
    def is_safe(self) -> bool:
        """Whether `--fix` applies it without `--unsafe`."""
        return self.safety is Safety.SAFE

    def __repr__(self) -> str:
        return f"<Fix {one_line(self.message, 70)}, {counted(len(self.edits), 'edit')}, {self.safety}>"


@dataclass(frozen=True, slots=True)
class Related:
    """A second place that explains a finding, such as a macro expansion or a field."""

    span: Span
    message: str

    def __repr__(self) -> str:
        return f"<Related {tail(str(self.span), 40)}: {one_line(self.message, 60)}>"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding: code (`TP301`), rule name, message, place, and what to do about it.

    `label` is shown next to the caret; `related` are further places (expansion chains, the
    declaration of the field); `help` are sentences of advice; `event` is `system:event`, or the name
    of a class that has no event, when the finding belongs to one.
    """

    code: str
    name: str
    message: str
    span: Span
    severity: Severity = Severity.WARNING
    label: str = ""
    related: tuple[Related, ...] = ()
    help: tuple[str, ...] = ()
    fix: Fix | None = None
    event: str = field(default="")

    @property
    def text(self) -> str:
        """The message after the name of the event or class: `foo: string name is never assigned`."""
        name = self.event.rpartition(":")[2]
        return f"{name}: {self.message}" if name else self.message

    def __str__(self) -> str:
        return f"{self.span}: {self.code} {self.text}"

    def __repr__(self) -> str:
        return f"<Diagnostic {self.code} {tail(str(self.span), 40)}: {one_line(self.text, 55)}>"
