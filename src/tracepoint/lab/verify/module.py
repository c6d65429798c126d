"""The module that a verification loads: the declared events in input mode, with probes that count.

Writing 1 to the module's parameter `probes` registers a probe with every event, 0 removes them;
reading it gives the counts in the order of the events.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from tracepoint.generate.fileset import FileSet
from tracepoint.generate.inputs.variables import plan_inputs
from tracepoint.generate.module import kernel_module
from tracepoint.generate.trace_header import set_inputs
from tracepoint.lab.build.module import BuildError, CompilerMessage
from tracepoint.model.write import declare_param
from tracepoint.source.brackets import find_parenthesis
from tracepoint.source.functions import TRANSPARENT
from tracepoint.source.lexer import Kind
from tracepoint.source.macros import spell

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tracepoint.assign.values import Input
    from tracepoint.generate.inputs.variables import InputPlan
    from tracepoint.model.event import Event, EventClass, TraceHeader
    from tracepoint.source.lexer import Token
    from tracepoint.tree.tracing_macros import TreeFacts

_PROBES = """
static atomic_t @NAME@_counts[@COUNT@];
@FUNCTIONS@
static int @NAME@_register(void)
{
	return 0@REGISTER@;
}

static void @NAME@_unregister(void)
{@UNREGISTER@
	tracepoint_synchronize_unregister();
}

static int @NAME@_set_probes(const char *text, const struct kernel_param *kp)
{
	if (*text == '1')
		return @NAME@_register();
	@NAME@_unregister();
	return 0;
}

static int @NAME@_get_probes(char *text, const struct kernel_param *kp)
{
	int i, n = 0;

	for (i = 0; i < @COUNT@; i++)
		n += scnprintf(text + n, PAGE_SIZE - n, "%d\\n", atomic_read(&@NAME@_counts[i]));
	return n;
}

static const struct kernel_param_ops @NAME@_probe_ops = {
	.set = @NAME@_set_probes,
	.get = @NAME@_get_probes,
};
module_param_cb(probes, &@NAME@_probe_ops, NULL, 0600);
"""
_WORD = re.compile(r"\w+")
_NO_CALLS = frozenset(("if", "for", "while", "switch", "return", "sizeof", "typeof"))
_N_LISTED = 12
_OPENING = re.compile(r"^[A-Z_]*(?:EVENT|CLASS|TRACE)[A-Z_]*\(\s*(\w+)(?:,\s*(\w+))?", re.MULTILINE)


def make_module(
    header: TraceHeader, name: str, inputs: Mapping[str, Sequence[Input]], facts: TreeFacts, system: str
) -> tuple[FileSet, InputPlan]:
    """Return the files of the module `name` for all events of `header`, and the plan of its inputs.

    `system` is another TRACE_SYSTEM (empty: the header's own).  Raises GenerateError when an event
    cannot be declared by a module for this kernel.
    """
    files = kernel_module(header, name=name, inputs=inputs, facts=facts, system=system)
    texts = dict(files)
    texts[f"{name}.c"] += write_probes(name, header.events)
    return FileSet(texts, files.notes), plan_inputs(header.events, inputs)


def replaced_parts(header: TraceHeader, plan: InputPlan) -> dict[str, tuple[str, ...]]:
    """Return, by full name of an event, how its module differs from its header.

    Inputs that are not parameters are variables, and calls that store nothing are not made.
    """
    notes: dict[str, tuple[str, ...]] = {}
    for before, after in zip(header.events, set_inputs(header, plan).events, strict=True):
        parameters = {param.name for param in before.proto.params}
        inputs = [v.text for v in plan.of_event(before.name) if v.text not in parameters]
        kept = set(_WORD.findall(" ".join([after.assign.text, *inputs]))) | TRANSPARENT
        lost = [text for name, text in _calls(before.assign.all_tokens()) if name not in kept]
        rows = (("variables stand for", inputs), ("left out to fire it", lost))
        notes[before.full_name] = tuple(f"{what}: {_listed(items)}" for what, items in rows if items)
    return notes


def _listed(items: Sequence[str]) -> str:
    shown = list(dict.fromkeys(items))
    more = f" and {len(shown) - _N_LISTED} more" if len(shown) > _N_LISTED else ""
    return ", ".join(shown[:_N_LISTED]) + more


def _calls(tokens: Sequence[Token]) -> Iterator[tuple[str, str]]:
    """Yield name and text of every call in statements."""
    for at, (token, after) in enumerate(itertools.pairwise(tokens)):
        if token.kind is not Kind.NAME or after.text != "(" or token.text in _NO_CALLS:
            continue
        close = find_parenthesis(tokens, at + 1)
        yield token.text, spell(tokens[at : close + 1] if close >= 0 else tokens[at:])


def write_probes(name: str, events: Sequence[Event]) -> str:
    """Return C text for the end of a module's file: one counting probe for each event.

    >>> write_probes("demo", [])
    ''
    """
    if not events:
        return ""
    functions, register, unregister = [], [], []
    for number, event in enumerate(events):
        parameters = "".join(f", {declare_param(p.ctype, p.name)}" for p in event.proto.params)
        functions.append(
            f"\nstatic void {name}_count_{number}(void *tracepoint_count{parameters})\n"
            "{\n\tatomic_inc(tracepoint_count);\n}\n"
        )
        words = f"_trace_{event.name}({name}_count_{number}, &{name}_counts[{number}])"
        register.append(f" ?:\n\t       register{words}")
        unregister.append(f"\n\tunregister{words};")
    pieces = {
        "@NAME@": name,
        "@COUNT@": str(len(events)),
        "@FUNCTIONS@": "".join(functions),
        "@REGISTER@": "".join(register),
        "@UNREGISTER@": "".join(unregister),
    }
    text = _PROBES
    for place, piece in pieces.items():
        text = text.replace(place, piece)
    return text


def at_the_header(error: BuildError, header: TraceHeader, files: Mapping[str, str]) -> BuildError:
    """Return the compiler's errors with lines of the original header, where they are known.

    The module's header is generated from the declarations, so a line is located by
    its event and its text, else the event's first line is used.
    """
    messages = tuple(_moved(message, header, files) for message in error.messages)
    lines = list(dict.fromkeys(str(message) for message in messages))
    shown = "\n".join(lines[:6]) or error.log_tail
    made = BuildError(
        f"{header.path or 'the header'}: its events do not compile for this kernel",
        error.command,
        error.status,
        shown,
        messages,
    )
    made.__cause__ = error
    return made


def _moved(message: CompilerMessage, header: TraceHeader, files: Mapping[str, str]) -> CompilerMessage:
    for path, line in ((message.path, message.line), *message.places):
        text = files.get(path)
        if text is None or not path.endswith("_trace.h"):
            continue
        found = _line_in_header(text, line, header)
        if found:
            return replace(message, path=header.path or path, line=found, column=0)
    return message


def _line_in_header(text: str, line: int, header: TraceHeader) -> int:
    """Return the header's own line for a line of the module's header, 0 if it is not known."""
    lines = text.splitlines()
    before = "\n".join(lines[:line])
    opening = None
    for match in _OPENING.finditer(before):
        opening = match
    if opening is None or not 0 < line <= len(lines):
        return 0
    names = [name for name in opening.groups() if name]
    declared: list[Event | EventClass] = [*header.events, *header.classes]
    origins = [item.origin.span.line for item in declared if item.name in names and item.origin is not None]
    if not origins:
        return 0
    origin = origins[-1]
    wanted = _squeezed(lines[line - 1])
    source = header.source.text.splitlines() if header.source is not None else []
    if len(wanted) > 2:
        for number in range(origin, len(source) + 1):
            if _squeezed(source[number - 1]) == wanted:
                return number
            if number > origin and _OPENING.match(source[number - 1]):
                break
    return origin


def _squeezed(line: str) -> str:
    return re.sub(r"[\s\\]+", "", line)
