"""Program and record to the line that the kernel's `trace` file shows."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from tracepoint.printk.facts import NO_FACTS, Rendered, RenderFacts, UnknownPartError
from tracepoint.printk.fields import fields_text
from tracepoint.printk.memory import RecordMemory

if TYPE_CHECKING:
    from tracepoint.printk.program import PrintProgram

_MAX_TEXT = 1 << 16


def _decoded(text: str) -> str:
    return text if text.isascii() else text.encode("latin-1", "replace").decode("utf-8", "surrogateescape")


def fields_note(reason: str) -> str:
    """Return the note on a line that lists the fields."""
    return f"fields are shown instead of the print format: not known: {reason}"


def render_held(program: PrintProgram, held: RecordMemory) -> Rendered:
    """Return what `render_record` returns, of a record with its facts; it keeps what was found on the way."""
    try:
        text = program.run(held) or ""
    except UnknownPartError as error:
        reason = error.reason
    except struct.error:
        reason = "the record is shorter than its fields"
    else:
        if len(text) <= _MAX_TEXT:
            return Rendered(_decoded(text), tuple(held.notes))
        reason = "a line longer than the kernel prints"
    notes = (fields_note(reason), *held.notes)
    return Rendered(_decoded(fields_text(program.format, held.data)), notes, is_exact=False)


def render_record(program: PrintProgram, record: bytes, facts: RenderFacts = NO_FACTS) -> Rendered:
    """Return what the kernel prints after `event_name: ` for one record.

    `record` begins at `common_type`; bytes after its end (padding of the ring buffer) do no
    harm.  When a part cannot be known, or the record is too short, the text is the list of
    fields as `name=value` and a note says what is missing: the text is never a wrong value.
    """
    return render_held(program, RecordMemory(record, facts))
