"""Verify declared events in a real kernel: build a module with them, boot, load, control, fire, compare.

Every event is simulated for exactly this kernel, and fired there with the simulation's inputs.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from tracepoint.errors import GenerateError, LabError, LayoutError, TracepointError
from tracepoint.generate.inputs.variables import plan_inputs
from tracepoint.generate.kernel_facts import read_facts
from tracepoint.lab.build.module import BuildError, build_modules, disk_errors
from tracepoint.lab.guest import machine as lab_guest
from tracepoint.lab.kernels import packages
from tracepoint.lab.kernels.headers import fetch_headers, has_unsigned_char, read_texts
from tracepoint.lab.simulate.event import simulate_event
from tracepoint.lab.verify.compare import Difference, find_differences, stale_offsets
from tracepoint.lab.verify.module import at_the_header, make_module, replaced_parts
from tracepoint.lab.verify.script import ARCHIVE, Answer, EventToFire, read_answers, write_script
from tracepoint.layout.btf import read_btf
from tracepoint.layout.compute import compute_layout
from tracepoint.printk.facts import RenderFacts
from tracepoint.printk.kallsyms import Kallsyms
from tracepoint.tree.cache import cache_folder
from tracepoint.tree.headers import HeaderReader
from tracepoint.tree.loader import kernel_include_paths, make_config, source_folders
from tracepoint.tree.tracing_macros import FACT_FILES, TreeFacts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from tracepoint.generate.fileset import FileSet
    from tracepoint.generate.inputs.variables import InputPlan
    from tracepoint.lab.guest.machine import Guest
    from tracepoint.lab.simulate.simulation import Simulation
    from tracepoint.layout.btf import Btf
    from tracepoint.layout.format import EventFormat
    from tracepoint.model.event import Event, TraceHeader

MODULE = "tp_verify"
_HZ = 250
_MEMORY_MB = 384
_SECONDS = 120
# Addresses as the simulation knows them, %p unchanged: what cannot be compared otherwise.
_APPEND = "no_hash_pointers nokaslr"
_SYMBOLS = ("%ps", "%pS", "%pB", "%pf", "%pF")
_RECORD_OVERHEAD = 16


class Simulator(Protocol):
    """Simulates one event with a given layout for a kernel of which `facts` are known."""

    def __call__(
        self, header: TraceHeader, event: Event, layout: EventFormat, facts: RenderFacts, btf: Btf | None
    ) -> Simulation:
        """Return the simulation; raises TracepointError when the event has none."""


@dataclass(frozen=True, slots=True)
class Verification:
    """One event as a kernel showed it.

    `simulation` was made for this kernel (its layout has the kernel's id), `answer` is the kernel's answer;
    `filter` the expression tried; `system` the one that it was declared under there; `differences` is empty
    if all is as simulated; `notes` say what was copied from the kernel. `reason` says why there is no answer
    (then `simulation` and `answer` are None).
    """

    event: Event
    simulation: Simulation | None = None
    answer: Answer | None = None
    filter: str = ""
    system: str = ""
    differences: tuple[Difference, ...] = ()
    notes: tuple[str, ...] = ()
    reason: str = ""

    @property
    def is_equal(self) -> bool:
        """Whether the kernel showed exactly what was simulated."""
        return self.answer is not None and not self.differences


@dataclass(slots=True)
class Sighting:
    """All events of one boot: `release` of the kernel, messages of its log, and how long each part took."""

    release: str
    verifications: list[Verification]
    log: tuple[str, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KernelAtHand:
    """A bootable kernel, its exact headers, and their facts about its tracing."""

    image: packages.KernelImage
    headers: Path
    facts: TreeFacts

    @property
    def include_paths(self) -> tuple[Path, ...]:
        """The folders where trace headers for this kernel find what they include."""
        folders = [p for root in source_folders(self.headers) for p in kernel_include_paths(root)]
        return tuple(dict.fromkeys(folder.resolve() for folder in folders))

    def reader(self, include: Iterable[Path] = (), defines: dict[str, str] | None = None) -> HeaderReader:
        """Return a reader of trace headers with this kernel's includes and configuration.

        `include` are folders searched first, `defines` macros besides the kernel's.
        """
        config = make_config(self.headers, defines=defines)
        return HeaderReader((*include, *self.include_paths), config=config)


@dataclass(slots=True)
class _Job:
    """One module: a header with those of its events that can be verified."""

    name: str
    header: TraceHeader
    system: str
    simulations: list[Simulation]
    lines: list[tuple[str, ...]] = field(default_factory=list)
    modules: tuple[Path, ...] = ()
    notes: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(slots=True)
class _Stand:
    """The state shared by all steps of one verification."""

    guest: Guest
    kernel: KernelAtHand
    simulate: Simulator
    say: Callable[[str], None]
    failed: list[Verification] = field(default_factory=list)
    btf: Btf | None = None
    symbols: Kallsyms | None = None


def plain_simulator(set_values: Mapping[str, str] | None = None, count: int = 1) -> Simulator:
    """Return what simulates `count` firings with the given values and samples for the rest."""

    def simulate(
        header: TraceHeader, event: Event, layout: EventFormat, facts: RenderFacts, btf: Btf | None
    ) -> Simulation:
        return simulate_event(
            event,
            set_values=set_values,
            count=count,
            environment=header.environment,
            btf=btf,
            facts=facts,
            format=layout,
            enums=header.exported_enums,
        )

    return simulate


def fetch_kernel_at_hand(
    name: str = "6.1", say: Callable[[str], None] = lambda _words: None, apt: Sequence[str] = ()
) -> KernelAtHand:
    """Return kernel `name` (of `lab.kernels`, or a Debian package) and its headers, fetched when needed.

    `apt` are options for apt (`tracepoint.lab.kernels.suites`).  Raises LabError when one of them
    is not available.
    """
    with disk_errors(cache_folder()):
        say(f"looking for kernel {name} and its headers")
        image = packages.fetch_kernel(name, apt)
        headers = fetch_headers(image, say, apt)
        return KernelAtHand(image, headers, read_facts(read_texts(headers, FACT_FILES)))


def verify_events(
    events: Iterable[tuple[TraceHeader, Event]],
    kernel: KernelAtHand,
    *,
    simulate: Simulator | None = None,
    say: Callable[[str], None] = lambda _words: None,
) -> Sighting:
    """Show events (each with its header) in a booted kernel and compare with their simulations.

    The headers are best read with the kernel's `include_paths`; `simulate` makes the simulations
    (default: one firing with samples); `say` is called with progress messages. One boot serves all. An
    event that cannot be verified gets a Verification with the reason.  Raises LabError when compiler or QEMU
    are missing, when a module does not compile or load, or when the kernel breaks.
    """
    clock = _Clock()
    with disk_errors(cache_folder()):
        say(f"booting {kernel.image.release}")
        plan = lab_guest.GuestPlan(kernel.image, _MEMORY_MB, cpus=1, append=_APPEND)
        with lab_guest.boot_plan(plan) as guest:
            clock.lap("boot")
            stand = _Stand(guest, kernel, simulate or plain_simulator(), say)
            jobs = _plan(stand, list(events))
            clock.lap("simulate")
            _build(stand, jobs)
            clock.lap("build")
            verifications = _show(stand, jobs) if jobs else []
            clock.lap("show")
            log = _warnings(guest)
    return Sighting(kernel.image.release, [*verifications, *stand.failed], log, clock.seconds)


class _Clock:
    """Seconds since the last lap, by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.monotonic()

    def lap(self, name: str) -> None:
        now = time.monotonic()
        self.seconds[name] = round(now - self._last, 2)
        self._last = now


def _plan(stand: _Stand, events: Sequence[tuple[TraceHeader, Event]]) -> list[_Job]:
    """Simulate all events and put those that can be shown into one module for each header.

    An event whose inputs cannot be passed is set aside, so that it does not stop the others.
    """
    taken = set(stand.guest.read("/sys/kernel/tracing/available_events").split())
    groups: dict[int, tuple[TraceHeader, list[Simulation]]] = {}
    for header, event in events:
        group = groups.setdefault(id(header), (header, []))
        try:
            simulation = _simulate(stand, header, event)
            plan = plan_inputs((event,), {event.full_name: simulation.uses})
            for shot in simulation.shots:
                plan.line(event.name, shot.inputs)
            group[1].append(simulation)
        except TracepointError as error:
            stand.failed.append(Verification(event, reason=str(error)))
    jobs = []
    for number, (header, simulations) in enumerate(g for g in groups.values() if g[1]):
        own = tuple(r.event for r in simulations)
        is_taken = any(e.full_name in taken for e in own)
        name = f"{MODULE}{number or ''}"
        chosen = replace(header, events=own, tracepoints=())
        jobs.append(_Job(name, chosen, f"tp_{header.system}" if is_taken else "", simulations))
    return jobs


def _simulate(stand: _Stand, header: TraceHeader, event: Event) -> Simulation:
    """Simulate for this kernel; its own type information is used if the header is not sufficient."""
    try:
        layout = _layout(stand, header, event)
    except LayoutError:
        if stand.btf is not None or event.is_nop:
            raise
        stand.say("reading the kernel's type information")
        stand.btf = read_btf(stand.guest.get("/sys/kernel/btf/vmlinux"))
        layout = _layout(stand, header, event)
    if stand.symbols is None and any(mark in layout.print_fmt for mark in _SYMBOLS):
        stand.symbols = Kallsyms(stand.guest.read("/proc/kallsyms"))
    facts = RenderFacts(kallsyms=stand.symbols, hz=_HZ, hash_pointers=False, n_possible_cpus=1)
    return stand.simulate(header, event, layout, facts, stand.btf)


def _layout(stand: _Stand, header: TraceHeader, event: Event) -> EventFormat:
    return compute_layout(
        event,
        btf=stand.btf,
        environment=header.environment,
        is_char_signed=not has_unsigned_char(stand.kernel.headers),
        enums=header.exported_enums,
    )


def _build(stand: _Stand, jobs: list[_Job]) -> None:
    """Write and build the module of every job, and the lines that fire its events."""
    for job in list(jobs):
        made = _generate(stand, job)
        if made is None:
            jobs.remove(job)
            continue
        files, plan = made
        job.notes = replaced_parts(job.header, plan)
        stand.say(f"building the module of {job.header.path or job.header.system}")
        try:
            # Warnings about the header's own expressions are for its author to judge.
            job.modules = build_modules(files, stand.kernel.headers, warnings_fail=False)
        except BuildError as error:
            raise at_the_header(error, job.header, files) from error
        for simulation in job.simulations:
            lines = tuple(plan.line(simulation.event.name, shot.inputs) for shot in simulation.shots)
            job.lines.append(lines)


def _generate(stand: _Stand, job: _Job) -> tuple[FileSet, InputPlan] | None:
    """Return the module's files; events that no module can declare are set aside with the reason."""
    while job.simulations:
        inputs = {r.event.full_name: r.uses for r in job.simulations}
        try:
            return make_module(job.header, job.name, inputs, stand.kernel.facts, job.system)
        except GenerateError as error:
            refused = [r.event for r in job.simulations if r.event.full_name == error.event]
            if not refused:
                raise
            stand.failed += [Verification(event, reason=str(error)) for event in refused]
            job.simulations = [r for r in job.simulations if r.event not in refused]
            job.header = replace(job.header, events=tuple(r.event for r in job.simulations))
    return None


def _show(stand: _Stand, jobs: Sequence[_Job]) -> list[Verification]:
    """Load the modules, fire everything, and compare."""
    guest = stand.guest
    targets: list[EventToFire] = []
    for job in jobs:
        stand.say(f"loading {job.name}")
        if guest.run(f"[ -e /sys/module/{job.name} ]", check=False).status == 0:
            raise LabError(f"the kernel has a module {job.name} already")
        for module in job.modules:
            guest.insmod(module)
        for simulation, lines in zip(job.simulations, job.lines, strict=True):
            event = simulation.event
            path = f"/sys/kernel/debug/{job.name}/{event.name}"
            targets.append(
                EventToFire(job.system or event.system, event.name, path, lines, choose_filter(simulation))
            )
    counters = [f"/sys/module/{job.name}/parameters/probes" for job in jobs]
    stand.say(f"firing {len(targets)} events")
    size = sum(len(r) + _RECORD_OVERHEAD for job in jobs for x in job.simulations for r in x.records)
    guest.put("/tmp/verify.sh", write_script(targets, counters, 256 + size // 512).encode())  # noqa: S108
    guest.run("sh /tmp/verify.sh", timeout=_SECONDS + sum(len(t.lines) for t in targets) // 10)
    answers = read_answers(guest.get(ARCHIVE), targets)
    for job in jobs:
        guest.rmmod(job.name)
    simulations = [(r, job.notes[r.event.full_name]) for job in jobs for r in job.simulations]
    return [
        _compare(simulation, answer, target, notes)
        for (simulation, notes), answer, target in zip(simulations, answers, targets, strict=True)
    ]


def _compare(
    simulation: Simulation, answer: Answer, target: EventToFire, replaced: Sequence[str]
) -> Verification:
    """Compare the simulations with the kernel's answers."""
    layout = replace(simulation.layout, id=answer.id)
    same = replace(simulation, layout=layout)
    if not answer.id:
        reason = f"the kernel made no event {target.system}:{target.name} of it"
        return Verification(simulation.event, reason=reason, system=target.system)
    notes = []
    if target.system != simulation.event.system:
        notes.append(
            f"{simulation.event.full_name} is the kernel's own: verified as {target.system}:{target.name}"
        )
    if answer.refused:
        notes.append(f"a line was refused: {answer.refused}")
    stale = max((len(stale_offsets(shot, layout)) for shot in same.shots if shot.record), default=0)
    notes += replaced
    if stale:
        notes.append(f"{stale} bytes that nothing stores to are taken as the ring buffer had them")
    differences = find_differences(same, answer, target.filter)
    return Verification(
        simulation.event, same, answer, target.filter, target.system, differences, tuple(notes)
    )


def choose_filter(simulation: Simulation) -> str:
    """Return a filter that the first record passes: on a field of the event, else on a common one."""
    shot = next((s for s in simulation.shots if s.record), None)
    for item in simulation.layout.event_fields if shot is not None else ():
        if item.is_array or item.is_data_loc or item.size not in (1, 2, 4, 8) or "*" in item.ctype:
            continue
        raw = shot.record[item.offset : item.offset + item.size] if shot is not None else b""
        return f"{item.name} == {int.from_bytes(raw, 'little', signed=item.is_signed)}"
    return "common_pid > 0"


def _warnings(guest: Guest) -> tuple[str, ...]:
    """Return the kernel's messages about the modules, except that they taint it."""
    words = "WARNING: |unsafe dereference|Could not create|bad_print|cut here|event trace:"
    lines = guest.run(f"dmesg | grep -E {words!r} | grep -v taint", check=False).text.splitlines()
    return tuple(line.partition("] ")[2] or line for line in lines)
