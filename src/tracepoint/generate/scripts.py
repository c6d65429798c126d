"""Command lines for an event: a bpftrace script, and trace-cmd, perf and tracefs."""

from __future__ import annotations

import shlex
from difflib import get_close_matches
from typing import TYPE_CHECKING

from tracepoint.errors import GenerateError
from tracepoint.filter.parse import parse_filter
from tracepoint.generate.fileset import FileSet
from tracepoint.generate.writer import check_event, check_name, fill_template

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracepoint.layout.format import EventFormat, FieldFormat

BUILTINS = ("comm", "pid", "tid", "uid", "cpu", "kstack", "ustack", "probe")
_OF_NUMBERS = ("sum", "avg", "min", "max", "stats", "hist")
MEASURES = ("count", *(f"{word}:FIELD" for word in _OF_NUMBERS))


def bpftrace_script(
    layout: EventFormat, *, by: str = "comm", measure: str = "count", name: str = ""
) -> FileSet:
    """Return a bpftrace script that measures an event, grouped.

    `by` is one of `BUILTINS`, fields of the record, comma-separated, or empty; `measure` is
    `count`, or `sum`, `avg`, `min`, `max`, `stats` or `hist` and a field: `hist:bytes`.  Raises
    GenerateError, with the nearest name, for anything unknown.

    >>> from tracepoint.layout.format import EventFormat, FieldFormat
    >>> record = EventFormat("demo", "tick", (FieldFormat("n", "int", 8, 4, True),), "", n_common=0)
    >>> print(bpftrace_script(record, measure="hist:n")["tick.bt"].splitlines()[-2].strip())
    @[comm] = hist(args->n);
    """
    check_event(layout.system, layout.name)
    keys = [_key(layout, word.strip()) for word in by.split(",") if word.strip()]
    what = _measure(layout, measure)
    text = fill_template(
        "bpftrace.bt",
        event=f"{layout.system}:{layout.name}",
        what=measure,
        by=f" by {by}" if keys else "",
        key=f"[{', '.join(keys)}]" if keys else "",
        measure=what,
    )
    notes = [
        f"{field.name} has type {field.ctype}: bpftrace before 0.20 cannot read an event with an enum of a "
        "module without type information"
        for field in layout.event_fields
        if field.ctype.startswith("enum ")
    ]
    return FileSet({f"{check_name(name or layout.name, 'script')}.bt": text}, notes)


def _key(layout: EventFormat, word: str) -> str:
    return word if word in BUILTINS else _read(_field(layout, word, BUILTINS))


def _field(layout: EventFormat, word: str, others: Sequence[str] = ()) -> FieldFormat:
    if word in layout:
        return layout[word]
    names = [*(f.name for f in layout.event_fields), *others]
    near = get_close_matches(word, names, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
    raise GenerateError(f"{layout.system}:{layout.name}", f"no field {word!r}; {hint}")


def _read(field: FieldFormat) -> str:
    check_name(field.name, "field")
    # A fixed array of char is text to bpftrace already, of which str() is an error.
    is_text = field.is_data_loc and field.element_ctype == "char"
    return f"str(args->{field.name})" if is_text else f"args->{field.name}"


def _measure(layout: EventFormat, measure: str) -> str:
    word, _, name = measure.partition(":")
    if measure == "count":
        return "count()"
    if word not in _OF_NUMBERS or not name:
        raise GenerateError(
            f"{layout.system}:{layout.name}", f"no measure {measure!r}; there are {', '.join(MEASURES)}"
        )
    field = _field(layout, name)
    if field.is_array or field.size not in (1, 2, 4, 8):
        raise GenerateError(f"{layout.system}:{layout.name}", f"{name} is not a number, so it has no {word}")
    return f"{word}({_read(field)})"


def command_lines(
    layouts: Sequence[EventFormat], *, filter_text: str = "", name: str = "commands", seconds: int = 10
) -> FileSet:
    """Return a page of shell commands that record the events with trace-cmd, perf and tracefs.

    `filter_text` is a filter in the kernel's language, for every event; `seconds` (1 and more) is the time to
    record.  Raises GenerateError when there are no events, FilterError for a filter that the kernel
    would refuse.
    """
    if not layouts:
        raise GenerateError("", "no events to record")
    for layout in layouts:
        check_event(layout.system, layout.name)
        if filter_text:
            parse_filter(filter_text, layout)
    quoted = shlex.quote(filter_text) if filter_text else ""
    names = [f"{layout.system}:{layout.name}" for layout in layouts]
    per_event = "".join(f" -e {event}{' -f ' + quoted if quoted else ''}" for event in names)
    perf = "".join(f" -e {event}{' --filter ' + quoted if quoted else ''}" for event in names)
    folders = [f"events/{layout.system}/{layout.name}" for layout in layouts]
    set_filters = [f"echo {quoted} > {folder}/filter" for folder in folders if quoted]
    clear_filters = [f"echo 0 > {folder}/filter" for folder in folders if quoted]
    text = fill_template(
        "commands.sh",
        events=", ".join(names),
        trace_cmd=per_event,
        perf=perf,
        stat=" ".join(f"-e {event}" for event in names),
        set_filters=_indented(set_filters),
        enable=_indented([f"echo 1 > {folder}/enable" for folder in folders]),
        disable=_indented([f"echo 0 > {folder}/enable" for folder in folders]),
        clear_filters=_indented(clear_filters),
        seconds=str(max(seconds, 1)),
    )
    return FileSet({f"{check_name(name, 'file')}.sh": text})


def _indented(lines: Sequence[str]) -> str:
    return "\n".join(f"\t{line}" for line in lines)
