"""A kernel module with declared events: it declares them, and fires them on request.

`kernel_module` makes five texts: the trace header in module form, the module, Kbuild, Makefile.  In
debugfs the module has a folder of its name with one write-only file for each event:

    echo '12 0x1000 "two words"' > /sys/kernel/debug/NAME/EVENT

The words are the arguments in the order of TP_PROTO: numbers, texts, numbers joined by commas, bytes in
hexadecimal for a `void *` that the event copies from; missing ones are zero.  Pointers to structs are
objects of zeros, or the C expression given in `arguments`.

With `inputs` (input mode) the module does not need the objects that an event reads: every input of
TP_fast_assign, found by `assign.inputs`, becomes a static variable.  A verification then does

    plan = plan_inputs(header.events, inputs)       # the variables, as kernel_module has them
    files = kernel_module(header, name=NAME, inputs=inputs)
    line = plan.line(event.name, values_of_shot)    # what to write ...
    path = f"/sys/kernel/debug/{NAME}/{event.name}" # ... and where: it sets the inputs and fires

`inputs` maps `system:event` to its inputs, and `values_of_shot` input texts to the values of one shot of a
simulation.  A line ends with a newline; one write() may hold several lines, and a line may come in
several writes.  An empty line fires with all inputs zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.errors import GenerateError
from tracepoint.generate.fileset import FileSet
from tracepoint.generate.firing import FiringTarget, target_of, write_fire, write_fire_inputs, write_helpers
from tracepoint.generate.inputs.rewrite import NO_ARGUMENTS
from tracepoint.generate.inputs.variables import BUFFER_BYTES, InputPlan, plan_inputs
from tracepoint.generate.kernel_facts import adapt_assignments, check_vocabulary
from tracepoint.generate.trace_header import (
    check_events,
    pick_arguments,
    rename_events,
    set_inputs,
    write_module_header,
)
from tracepoint.generate.writer import TAB, CodeWriter, break_call, check_include, check_name, fill_template
from tracepoint.model.event import TraceHeader
from tracepoint.model.write import declare_param, header_of
from tracepoint.tree.tracing_macros import NEWEST, TreeFacts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tracepoint.assign.values import Input
    from tracepoint.model.event import BareTracepoint, Event

_ZEROS = 16384
_COMMENT_WIDTH = 74


def kernel_module(
    events: TraceHeader | Iterable[Event],
    *,
    name: str,
    arguments: Mapping[str, str] | None = None,
    inputs: Mapping[str, Sequence[Input]] | None = None,
    facts: TreeFacts | None = None,
    system: str = "",
    prefix: str = "",
    includes: Sequence[str] = (),
    preamble: str = "",
    export: bool = False,
    typedefs: Mapping[str, str] | None = None,
) -> FileSet:
    """Return the files of a module called `name` that declares and fires the events.

    `arguments` maps names of parameters to C expressions; `inputs` switches to input mode (see the
    module's text); `facts` are those of the kernel for which it is written; `system` and `prefix`
    rename what a kernel has already; `includes` are more files to include before the header, with
    brackets or quotes; `preamble` is C text that goes before the declarations, for private types;
    `export` lets other modules register probes; `typedefs` resolves those (`struct`, `void *`) that
    the headers read here do not define.
    Raises GenerateError, with the event and the reason, when the events cannot be declared that way.
    """
    facts = facts or NEWEST
    header = events if isinstance(events, TraceHeader) else header_of(events)
    check_name(name)
    _check(header, system, prefix, includes)
    given = pick_arguments(header, arguments)
    plan = plan_inputs(header.events, inputs) if inputs is not None else None
    if plan is not None:
        header = set_inputs(header, plan)
        _check(header, system, prefix, includes)
    header = adapt_assignments(header, facts)
    check_vocabulary(header, facts)
    header = rename_events(header, system=system, prefix=prefix)
    own, notes = _own_includes(header)
    body = _Body(name, header, facts, given, plan, len(prefix), export, typedefs or {})
    texts = {
        f"{name}_trace.h": write_module_header(
            header, name, facts, own, preamble, has_functions=plan is None
        ),
        f"{name}.c": body.text(includes),
        "Kbuild": fill_template("Kbuild", name=name),
        "Makefile": fill_template("Makefile"),
    }
    return FileSet(texts, notes)


def module_header(
    header: TraceHeader,
    *,
    name: str,
    facts: TreeFacts | None = None,
    system: str = "",
    prefix: str = "",
    includes: Sequence[str] = (),
) -> FileSet:
    """Return the trace header `<name>_trace.h` alone, in module form; arguments as for `kernel_module`."""
    facts = facts or NEWEST
    check_name(name)
    _check(header, system, prefix, includes)
    header = adapt_assignments(rename_events(header, system=system, prefix=prefix), facts)
    check_vocabulary(header, facts)
    own, notes = _own_includes(header)
    text = write_module_header(header, name, facts, [*own, *includes])
    return FileSet({f"{name}_trace.h": text}, notes)


def _check(header: TraceHeader, system: str, prefix: str, includes: Sequence[str]) -> None:
    """Raise GenerateError for what no module can declare, by the names that it would have there."""
    check_events(rename_events(header, system=system, prefix=prefix))
    for one in includes:
        check_include(one)


def call_name(point: BareTracepoint, facts: TreeFacts) -> str:
    """Return what follows `trace_` and `register_trace_` in C for a tracepoint without an event."""
    has_suffix = facts.has_tp_suffix and point.call_name != point.name
    return f"{point.name}_tp" if has_suffix else point.name


def _own_includes(header: TraceHeader) -> tuple[list[str], list[str]]:
    """Return what the module's header can include, and notes about the rest."""
    names = [name for name in header.form.includes if name != "<trace/define_trace.h>"]
    kept = [name for name in names if name.startswith("<")]
    notes = [f"{name} is not included: it is not part of the module" for name in names if name not in kept]
    if "<linux/tracepoint.h>" not in kept:
        kept.append("<linux/tracepoint.h>")
    return kept, notes


@dataclass(frozen=True, slots=True)
class _Body:
    """Writes the `.c` file; `n_prefix` is the length of what was put before the names."""

    name: str
    header: TraceHeader
    facts: TreeFacts
    given: Mapping[str, str]
    plan: InputPlan | None
    n_prefix: int
    is_exported: bool
    typedefs: Mapping[str, str]

    def text(self, includes: Sequence[str]) -> str:
        events, words = self._events()
        values = {
            "name": self.name,
            "protocol": self._protocol(words),
            "includes": "".join(f"#include {item}\n" for item in includes),
            "variables": self._variables(events),
            "helpers": self._helpers(events) + self._hooks(),
            "events": events.rstrip("\n"),
            "exports": self._exports(),
        }
        if self.plan is not None:
            table = "\n".join(f'\t{{ "{t.name}", fire_trace_{t.name} }},' for t in self._targets())
            return fill_template("module_inputs.c", **values, table=table)
        has_statics = "\tstatic " in events
        return fill_template(
            "module.c",
            **values,
            files="\n".join(line for target in self._targets() for line in _debugfs_file(target.name)),
            lock="\tmutex_lock(&fire_lock);" if has_statics else "",
            unlock="\tmutex_unlock(&fire_lock);" if has_statics else "",
        )

    def _targets(self) -> list[FiringTarget]:
        known, typedefs = self.header.environment, self.typedefs
        targets = [target_of(e, e.name, known, typedefs) for e in self.header.events if not e.is_nop]
        points = self.header.tracepoints
        return targets + [target_of(p, call_name(p, self.facts), known, typedefs) for p in points]

    def _exports(self) -> str:
        """Return the lines that let other modules register probes."""
        if not self.is_exported:
            return ""
        return "".join(f"EXPORT_TRACEPOINT_SYMBOL_GPL({target.call});\n" for target in self._targets())

    def _events(self) -> tuple[str, dict[str, list[str]]]:
        code = CodeWriter()
        words: dict[str, list[str]] = {}
        for target in self._targets():
            for param in target.proto.params:
                if not param.name:
                    raise GenerateError(target.name, f"a parameter of type {param.ctype} has no name")
            if self.plan is not None:
                write_fire_inputs(code, target, self._table_of(target.name))
            else:
                words[target.name] = write_fire(code, target, self.given)
        return code.text, words

    def _table_of(self, event: str) -> str:
        """Return the name of the table of an event's inputs, empty when there are none."""
        plan = self.plan
        cls = plan.class_of[event[self.n_prefix :]] if plan is not None else ""
        return f"{cls}_inputs" if plan is not None and plan.classes[cls] else ""

    def _protocol(self, words: Mapping[str, Sequence[str]]) -> str:
        if self.plan is not None:
            return (
                " * Its words are the inputs of the assignment in the order of their tables\n"
                ' * below: "-" for zero or NULL, or "=" and the bytes in hexadecimal.'
            )
        lines = [" * The words of a line are the arguments; missing ones are zero:"]
        for name, shown in words.items():
            lines += _comment_lines(f"{name}:", shown or ["nothing"])
        return "\n".join(lines)

    def _helpers(self, events: str) -> str:
        if self.plan is None:
            return write_helpers(events)
        return fill_template("inputs.c") if any(self.plan.classes.values()) else ""

    def _hooks(self) -> str:
        """Return functions for TRACE_EVENT_FN that do nothing: theirs are elsewhere."""
        regs = dict.fromkeys(e.reg for e in self.header.events if e.reg not in ("", "NULL"))
        unregs = dict.fromkeys(e.unreg for e in self.header.events if e.unreg not in ("", "NULL"))
        pieces = [f"\nint {reg}(void)\n{{\n\treturn 0;\n}}\n" for reg in regs]
        return "".join([*pieces, *(f"\nvoid {unreg}(void)\n{{\n}}\n" for unreg in unregs)])

    def _variables(self, events: str) -> str:
        if self.plan is None:
            zeros = "fire_zeros" in events
            line = f"static u8 fire_zeros[{_ZEROS}] __aligned(64);"
            lock = "static DEFINE_MUTEX(fire_lock);\n" if "\tstatic " in events else ""
            return lock + (f"/* What every pointer to a struct points to. */\n{line}\n" if zeros else "")
        return write_variables(self.plan)


def _debugfs_file(event: str) -> list[str]:
    words = [f'"{event}"', "0200", "fire_dir", f"fire_trace_{event}", "&fire_fops"]
    return ["\t" + line for line in break_call("debugfs_create_file", words, ");", TAB)]


def write_variables(plan: InputPlan) -> str:
    """Return the C text that defines the variables of a plan, and one table of them for each class."""
    code = CodeWriter()
    if any(plan.classes.values()):
        code.line("/* An input: a number, or a pointer and the buffer that it leads to. */")
        with code.block("struct fire_input {", "};"):
            code.lines(("void *variable;", "size_t size;", "void *buffer;"))
        code.line()
    if any(v.is_format for variables in plan.classes.values() for v in variables):
        code.line("/* Formats have no directives here, so nothing is taken from it. */")
        code.line(f"static va_list {NO_ARGUMENTS[1:]};")
        code.line()
    for cls, variables in plan.classes.items():
        for variable in variables:
            code.line(f"/* {_plain(variable.text)} */")
            dimension = f"[{variable.count}]" if variable.count else ""
            code.line(f"static {declare_param(variable.ctype, variable.name)}{dimension};")
            if variable.is_buffer:
                code.line(f"static u8 {variable.name}_data[{BUFFER_BYTES}] __aligned(8);")
        if variables:
            code.line()
            with code.block(f"static const struct fire_input {cls}_inputs[] = {{", "};"):
                for variable in variables:
                    code.line(_row(variable.name, is_buffer=variable.is_buffer))
            code.line()
    return code.text


def _row(name: str, *, is_buffer: bool) -> str:
    if is_buffer:
        return f"{{ &{name}, sizeof({name}_data), {name}_data }},"
    return f"{{ &{name}, sizeof({name}), NULL }},"


def _plain(text: str) -> str:
    """Return an input's text as it may stand in a comment."""
    shown = text.encode("ascii", "replace").decode().replace("*/", "* /").replace("/*", "/ *")
    return shown if len(shown) <= _COMMENT_WIDTH else shown[: _COMMENT_WIDTH - 4] + " ..."


def _comment_lines(head: str, words: Sequence[str]) -> list[str]:
    lines, line = [], f" *   {head}"
    for number, word in enumerate(words):
        piece = word + ("," if number < len(words) - 1 else "")
        if len(line) + 1 + len(piece) > _COMMENT_WIDTH:
            lines.append(line)
            line = " *     " + piece
        else:
            line += " " + piece
    return [*lines, line]
