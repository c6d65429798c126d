"""Fire a declared event in this process: inputs to record to trace line, without a kernel.

The layout is computed, the assignment is run over given or sample inputs, the record is built as
the kernel builds it, and the print format is rendered only from the record's bytes.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tracepoint.assign.inputs import find_inputs, merge_inputs, param_types
from tracepoint.assign.program import Inputs, read_program, run_program
from tracepoint.errors import LayoutError
from tracepoint.lab.kernels.constants import WELL_KNOWN
from tracepoint.lab.simulate.dump import dump_record
from tracepoint.lab.simulate.hints import read_hints
from tracepoint.lab.simulate.inputs import check_given, match_given
from tracepoint.lab.simulate.print_names import inputs_of, names_of, sample_names, shown_layout
from tracepoint.lab.simulate.samples import Sampler, Task, task_of
from tracepoint.lab.simulate.simulation import InputValues, Shot, Simulation
from tracepoint.layout.abi import Abi
from tracepoint.layout.compute import compute_layout
from tracepoint.layout.sizes import TypeSizes
from tracepoint.printk.facts import RenderFacts
from tracepoint.printk.program import PrintProgram, compile_print
from tracepoint.printk.render import render_record
from tracepoint.source import ast
from tracepoint.source.cexpr import write_expression
from tracepoint.source.constants import constant_value
from tracepoint.source.environment import Environment

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tracepoint.assign.machine import Unfollowed
    from tracepoint.assign.program import Assigned, Program
    from tracepoint.assign.values import Input
    from tracepoint.lab.simulate.inputs import Given
    from tracepoint.layout.btf import Btf
    from tracepoint.layout.format import EventFormat
    from tracepoint.layout.sizes import Names
    from tracepoint.model.event import EnumDef, Event

MAX_COUNT = 10_000
MAX_OPENINGS = 40
START_S = 100
# Facts of the simulated kernel: Debian's HZ, four cpus, the usual addresses of its memory
# (Documentation/x86/x86_64/mm.rst), and a struct page of 64 bytes.
DEFAULT_HZ = 250
N_CPUS = 4
_VARIABLES = {
    8: {
        "mem_map": 0xFFFF_EA00_0000_0000,
        "vmemmap_base": 0xFFFF_EA00_0000_0000,
        "page_offset_base": 0xFFFF_8880_0000_0000,
        "_stext": 0xFFFF_FFFF_8100_0000,
        "pageblock_order": 9,
    },
    4: {"mem_map": 0xC200_0000, "_stext": 0xC010_0000, "pageblock_order": 10},
}
_SIZES = {"struct page": 64}


@dataclass(slots=True)
class _Stage:
    """The state shared by all firings of one simulation."""

    event: Event
    layout: EventFormat
    program: Program
    sizes: TypeSizes
    inputs: dict[str, Input]
    given: dict[str, Given]
    facts: RenderFacts
    printer: PrintProgram
    used: dict[str, list[Given]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    unfollowed: list[Unfollowed] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    print_names: dict[str, int] = field(default_factory=dict)

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def fail(self, reason: str) -> None:
        if reason not in self.reasons:
            self.reasons.append(reason)

    def constant(self, name: str) -> int | None:
        found = self.sizes.constant(name)
        return WELL_KNOWN.get(name) if found is None else found

    def print_name(self, name: str) -> int | None:
        """Return the value of a name that only the print format has, from the user or as a sample."""
        sample = self.print_names.get(name)
        given = self.given.get(name, sample)
        value = given if isinstance(given, int) else sample
        if sample is None or value is None:
            return None
        self.used[name] = [value]
        if name == "jiffies":
            self.note(
                f"jiffies is taken as {value} when the line is printed; a kernel's is another each time"
            )
        elif name not in self.given:
            self.note(f"{name} is a constant that no available header defines: its value here is a sample")
        return value


def simulate_event(
    event: Event,
    *,
    abi: Abi = Abi.X86_64,
    set_values: Mapping[str, str | Given] | None = None,
    count: int = 1,
    environment: Names | None = None,
    btf: Btf | None = None,
    facts: RenderFacts | None = None,
    format: EventFormat | None = None,  # noqa: A002  the kernel's word for it
    enums: Iterable[EnumDef] = (),
    is_char_signed: bool | None = None,
) -> Simulation:
    """Fire an event `count` times (1 to 10 000) and show what the kernel would.

    `set_values` maps inputs to values, as text (`7`, `"bash"`, `[1,2]`, `hex:00ff`) or as Python
    values; other inputs get samples.  `environment` is the header's, `btf` answers
    for types, `facts` for what rendering needs beyond the record; `format` is a kernel's own and
    replaces the computed layout, for which `is_char_signed` overrides the ABI.  Raises LayoutError
    when the record cannot be laid out, SourceError when the assignment is damaged, GivenValueError
    for a value that names no input.
    """
    _refuse_recordless(event)
    layout = format or compute_layout(
        event, abi, btf=btf, environment=environment, enums=enums, is_char_signed=is_char_signed
    )
    sizes = TypeSizes(abi, btf=btf, environment=environment)
    program = read_program(event)
    stage = _Stage(
        event, layout, program, sizes, {}, {}, facts or RenderFacts(hash_pointers=True), compile_print(layout)
    )
    stage.printer = compile_print(
        layout, constants=stage.constant, layouts=lambda name: shown_layout(sizes, name)
    )
    inputs = find_inputs(event, layout, constant=stage.constant, sizeof=sizes.sizeof, program=program)
    stage.inputs = {input_.text: input_ for input_ in inputs}
    if btf is None and format is None:
        stage.print_names = _print_names(stage, environment)
        stage.inputs |= {input_.text: input_ for input_ in inputs_of(stage.print_names)}
    stage.given = match_given(set_values or {}, stage.inputs, stage.constant)
    stage.facts = _facts(stage)
    hints = read_hints(event, lambda name: stage.constant(name) or stage.print_names.get(name))
    shots = []
    for index in range(max(1, min(count, MAX_COUNT))):
        sampler = Sampler(event.full_name, hints, layout.long_size, layout.is_big_endian, index)
        shots.append(_shoot(stage, sampler, index))
    return _simulation(stage, tuple(shots))


def _refuse_recordless(event: Event) -> None:
    if event.is_syscall or event.is_nop:
        kind = "system call" if event.is_syscall else "_NOP"
        raise LayoutError(f"a {kind} event has no assignment to simulate", event=event.full_name)


def _facts(stage: _Stage) -> RenderFacts:
    facts = stage.facts
    outer_constants, outer_sizeof = facts.constants, facts.sizeof
    hz = facts.hz or stage.constant("HZ") or DEFAULT_HZ
    variables = {**_VARIABLES[stage.layout.long_size], **facts.variables}
    jiffies = stage.print_name("jiffies")
    if jiffies is not None:
        variables["jiffies"] = jiffies

    def constants(name: str) -> int | None:
        found = hz if name == "HZ" else outer_constants(name)
        found = stage.constant(name) if found is None else found
        return stage.print_name(name) if found is None else found

    def sizeof(name: str) -> int | None:
        found = outer_sizeof(name)
        if found is None:
            found = stage.sizes.sizeof(name)
        return _SIZES.get(name) if found is None else found

    n_cpus = facts.n_possible_cpus or N_CPUS
    return replace(
        facts, constants=constants, sizeof=sizeof, hz=hz, variables=variables, n_possible_cpus=n_cpus
    )


def _print_names(stage: _Stage, environment: Names | None) -> dict[str, int]:
    """Return samples for undefined names in the print format.

    If the C file that creates the event is available, a missing constant is a fault of the header,
    and no sample hides it.
    """
    variables = {**_VARIABLES[stage.layout.long_size], **stage.facts.variables}
    names = [name for name in names_of(stage.printer, variables) if stage.constant(name) is None]
    hz = stage.facts.hz or stage.constant("HZ") or DEFAULT_HZ
    # include/linux/jiffies.h: INITIAL_JIFFIES is five minutes before 32 bits are full.
    found = {"jiffies": (1 << 32) + (START_S - 300) * hz} if "jiffies" in names else {}
    is_whole = isinstance(environment, Environment) and environment.has_creator
    wanted = [name for name in names if name not in ("jiffies", "HZ") and name.isupper() and not is_whole]
    return found | sample_names(wanted, stage.layout.print_fmt, stage.constant)


def _openings(stage: _Stage) -> list[dict[str, Given]]:
    """Return sample values that TP_CONDITION compares with, so that a sample event fires."""
    openings: list[dict[str, Given]] = [{}]
    if stage.program.condition is None:
        return openings
    for node in ast.walk(stage.program.condition):
        if isinstance(node, ast.Binary) and node.op in ("==", "!=", ">", ">=", "<", "<="):
            value = constant_value(node.right, stage.constant)
            if value is not None:
                text = write_expression(node.left)
                openings += [{text: value}, {text: value + 1}, {text: value - 1}]
        elif isinstance(node, ast.Unary) and node.op == "!":
            openings.append({write_expression(node.operand): 0})
    return openings[:MAX_OPENINGS]


def _shoot(stage: _Stage, sampler: Sampler, index: int) -> Shot:
    """Fire once; if samples keep the event from firing, others are tried."""
    shot, values = Shot(b"", (), ""), dict[str, "Given"]()
    for opening in _openings(stage):
        if opening.keys() & stage.given.keys():
            continue
        values = dict(opening)
        shot = _shoot_with(stage, sampler, index, values)
        if shot.record:
            break
    else:
        stage.note("TP_CONDITION is false with these inputs: the event does not fire")
    for text, value in values.items():
        stage.used.setdefault(text, []).append(value)
    return shot


def _shoot_with(stage: _Stage, sampler: Sampler, index: int, values: dict[str, Given]) -> Shot:
    """Fire once; `values` holds fixed values, and collects those that are requested."""

    def resolve(input_: Input) -> Given:
        if input_.text not in values:
            values[input_.text] = _value_of(stage, sampler, input_)
        return values[input_.text]

    inputs = Inputs(
        stage.layout,
        stage.event.fields,
        param_types(stage.event.proto),
        resolve,
        stage.constant,
        stage.sizes.sizeof,
    )
    result = run_program(stage.program, inputs)
    if not result.has_fired:
        return Shot(b"", (), "", inputs=values)
    _take_notes(stage, result)
    task = _task(stage, values, task_of(stage.event.full_name, index))
    record = _with_common(result.record, stage.layout, task)
    line, is_exact = _line(stage, record, task, index, result)
    return Shot(record, dump_record(record, stage.layout), line, is_exact, values, result.written)


def _value_of(stage: _Stage, sampler: Sampler, input_: Input) -> Given:
    known = stage.inputs.get(input_.text)
    # Bytes are as many as this path copies, whatever other paths would.
    merged = replace(merge_inputs(known, input_), length=input_.length) if known is not None else input_
    stage.inputs[input_.text] = merged
    if input_.text in stage.given:
        return check_given(input_.text, merged.ctype, stage.given[input_.text])
    node = input_.node
    if isinstance(node, ast.Index) and isinstance(node.index, ast.Number):
        whole = stage.given.get(write_expression(node.base))
        if isinstance(whole, (list, bytes)) and node.index.value < len(whole):
            return whole[node.index.value]
        if isinstance(whole, str):
            raw = whole.encode("utf-8", "surrogateescape") + b"\0"
            return raw[node.index.value] if node.index.value < len(raw) else 0
    if input_.text.isupper() and isinstance(node, ast.Name) and input_.text not in stage.event.proto.names:
        stage.note(
            f"{input_.text} is a constant that no available header defines: its value here is a sample"
        )
    return sampler.sample(merged)


def _task(stage: _Stage, values: Mapping[str, Given], task: Task) -> Task:
    """Make `current->comm` and the like, if set, the task in the line."""
    comm, pid = values.get("current->comm"), values.get("current->pid")
    cpu = values.get("smp_processor_id()", values.get("raw_smp_processor_id()"))
    for name in ("current->comm", "current->pid"):
        given = stage.given.get(name)
        comm = given if name.endswith("comm") and given is not None else comm
        pid = given if name.endswith("pid") and given is not None else pid
    if isinstance(comm, bytes):
        comm = comm.split(b"\0", 1)[0].decode("latin-1")
    return Task(
        comm[:15] if isinstance(comm, str) else task.comm,
        pid if isinstance(pid, int) else task.pid,
        cpu % 4096 if isinstance(cpu, int) and cpu >= 0 else task.cpu,
    )


def _with_common(record: bytes, layout: EventFormat, task: Task) -> bytes:
    """Fill in the common fields: a made-up type when no kernel gave one, no flags, the task's pid."""
    data = bytearray(record)
    full_name = f"{layout.system}:{layout.name}".encode("utf-8", "surrogateescape")
    type_id = layout.id or 300 + zlib.crc32(full_name) % 3000
    order = "big" if layout.is_big_endian else "little"
    for name, value in (("common_type", type_id), ("common_pid", task.pid)):
        if name in layout:
            place = layout[name]
            raw = (value & ((1 << 8 * place.size) - 1)).to_bytes(
                place.size, "big" if order == "big" else "little"
            )
            data[place.offset : place.offset + place.size] = raw
    return bytes(data)


def _line(stage: _Stage, record: bytes, task: Task, index: int, result: Assigned) -> tuple[str, bool]:
    """Return the line as kernel/trace/trace_output.c: trace_print_context() begins it."""
    strings = {address: text.decode("latin-1") for address, text in result.strings.items()}
    formats = {**stage.facts.printk_formats, **strings}
    shown = render_record(stage.printer, record, replace(stage.facts, printk_formats=formats))
    for note in shown.notes:
        stage.note(note)
    if not shown.is_exact:
        stage.fail(shown.notes[0] if shown.notes else "a part of the print format is not known")
    time_us = START_S * 1_000_000 + 1000 * index + zlib.crc32(stage.event.full_name.encode()) % 1000
    seconds, rest = divmod(time_us, 1_000_000)
    comm = task.comm if task.pid else "<idle>"
    head = f"{comm:>16}-{task.pid:<7d} [{task.cpu:03d}] ..... {seconds:5d}.{rest:06d}: "
    return f"{head}{stage.event.name}: {shown.text}", shown.is_exact


def _take_notes(stage: _Stage, result: Assigned) -> None:
    for item in result.unfollowed:
        if item not in stage.unfollowed:
            stage.unfollowed.append(item)
    for text in result.notes:
        stage.note(text)
    for conversion in result.conversions:
        if conversion.input_ in stage.given:
            where = f" in {conversion.field}" if conversion.field else ""
            said = f"{conversion.input_} = {conversion.value} does not fit"
            stage.note(f"{said}: {conversion.stored} is stored{where}")
    for name in result.unassigned:
        stage.note(f"{name} is not assigned on this path: the kernel shows what the buffer held, here zeros")
    for name, reason in result.unknown.items():
        stage.fail(f"{name} cannot be known: {reason}")
    for item in result.unfollowed:
        stage.fail(f"{item.text}: {item.reason}")


def _simulation(stage: _Stage, shots: tuple[Shot, ...]) -> Simulation:
    inputs = []
    for text, input_ in stage.inputs.items():
        if text in stage.print_names and text not in stage.used and text not in stage.given:
            continue
        used = tuple(stage.used.get(text, ()))
        is_given = text in stage.given
        values = used or ((stage.given[text],) if is_given else ())
        ctype = input_.ctype or _type_text(input_, stage.layout)
        inputs.append(InputValues(text, ctype, values, is_given, bool(used)))
    return Simulation(
        stage.event,
        stage.layout,
        tuple(inputs),
        shots,
        tuple(stage.unfollowed),
        tuple(stage.notes),
        not stage.reasons,
        stage.reasons[0] if stage.reasons else "",
        tuple(stage.inputs.values()),
    )


def _type_text(input_: Input, layout: EventFormat) -> str:
    """Return a type for an undeclared input: the one that its use needs."""
    if input_.field in layout and input_.role == "int" and not layout[input_.field].is_array:
        return layout[input_.field].ctype
    match input_.role:
        case "pointer":
            return "void *"
        case "string":
            return "const char *"
        case "bytes":
            return f"{input_.length} bytes" if input_.length else "bytes"
    return f"{'s' if input_.is_signed else 'u'}{8 * input_.size}" if input_.size else "long"


__all__ = ["InputValues", "Shot", "Simulation", "simulate_event"]
