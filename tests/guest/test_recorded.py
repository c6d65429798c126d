"""What a booted full kernel said about its own records, against what we make of the same bytes."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from guest.recording import say
from module_trees import with_events
from oracles import headers_of, kernel_source, wrongly_missing
from printk.pages import lines, records
from tracepoint.lab.kernels import modules
from tracepoint.layout.compressed import decompress
from tracepoint.layout.format import EventFormat, read_format, write_format
from tracepoint.layout.objects import read_object
from tracepoint.printk.facts import RenderFacts, read_printk_formats
from tracepoint.printk.kallsyms import Kallsyms
from tracepoint.printk.program import compile_print
from tracepoint.printk.render import render_record
from tracepoint.tree.cache import cache_folder
from tracepoint.tree.kernel_facts import KernelKnowledge, find_kernel_files

pytestmark = pytest.mark.guest


def formats(folder: Path) -> dict[str, str]:
    """`system/event` to text of all formats of a recording."""
    return {
        f"{path.parent.parent.name}/{path.parent.name}": path.read_text()
        for path in sorted(folder.glob("events/*/*/format"))
    }


def without_id(text: str) -> str:
    return "\n".join(line for line in text.split("\n") if not line.startswith("ID: "))


def test_enough_was_recorded(recorded):
    info = json.loads((recorded / "info.json").read_text())
    assert info["types_not_syscalls"] >= 300
    assert info["types"] - info["types_not_syscalls"] >= 330
    assert len(formats(recorded)) > 4000


def test_formats_out_of_modules_are_those_of_the_kernel(recorded):
    """Byte for byte, for every event of every module that was loaded."""
    kernel = formats(recorded)
    package = json.loads((recorded / "info.json").read_text())["package"]
    folder = cache_folder() / "kernels" / package
    tree = modules.ModuleTree(next(folder.glob("**/lib/modules/*")))
    loaded = {line.split(" ", 1)[0] for line in (recorded / "modules").read_text().splitlines()}
    different = []
    compared = 0
    for info in with_events(tree):
        if info.name not in loaded:
            continue
        for event in read_object(decompress(info.path.read_bytes())):
            name = f"{event.system}/{event.name}"
            compared += 1
            if without_id(write_format(event)) != without_id(kernel.get(name, "")):
                different.append(name)
    assert compared > 2500
    assert different == []


# Not declared by a trace header: made from system call tables, or by the tracer itself.
OWN_SYSTEMS = {"ftrace", "syscalls", "kprobes", "uprobes", "synthetic"}


@pytest.mark.oracle
def test_every_event_is_found_in_a_header(recorded):
    source = kernel_source("linux-source-6.1")
    version = json.loads((recorded / "info.json").read_text())["package"].rpartition("_")[2]
    declared = {event.full_name for header in headers_of(source) for event in header.events}
    kernel = {name.replace("/", ":") for name in formats(recorded) if name.split("/")[0] not in OWN_SYSTEMS}
    assert len(kernel) > 3000
    assert wrongly_missing(kernel - declared, source, version) == []
    assert len(kernel - declared) < 0.01 * len(kernel)


class Judge:
    """Renders every record of a recording and counts, by type, what is not the kernel's text."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.info = json.loads((folder / "info.json").read_text())
        root = cache_folder() / "kernels" / self.info["package"]
        self.kernel = KernelKnowledge(find_kernel_files(self.info["release"], roots=[root, Path("/")]))
        events = [read_format(text, name.split("/")[0]) for name, text in formats(folder).items()]
        self.programs = {event.id: compile_print(event) for event in events}
        self.seen: Counter[str] = Counter()
        self.wrong: dict[str, tuple[str, str]] = {}
        self.inexact: dict[str, tuple[str, ...]] = {}

    def judge(self, part: Path) -> None:
        known = RenderFacts(
            kallsyms=Kallsyms((part / "kallsyms").read_text(), (part / "modules").read_text()),
            printk_formats=read_printk_formats((self.folder / "printk_formats").read_text()),
            variables=self.info["variables"],
            n_possible_cpus=self.info["cpus"],
        )
        facts = self.kernel.facts(known)
        texts = lines((part / "trace.txt").read_bytes().decode("utf-8", "surrogateescape"))
        for cpu, bodies in texts.items():
            held = [record for _, record in records((part / f"cpu{cpu}.raw").read_bytes())]
            assert len(held) == len(bodies), part.name
            for record, body in zip(held, bodies, strict=True):
                self.compare(record, body.rstrip("\n"), facts)

    def compare(self, record: bytes, body: str, facts: RenderFacts) -> None:
        program = self.programs[int.from_bytes(record[:2], "little")]
        event: EventFormat = program.format
        name = f"{event.system}:{event.name}"
        self.seen[name] += 1
        if self.seen[name] > 300 or name in self.wrong:
            return
        rendered = render_record(program, record, facts)
        text = f"{event.name}: {rendered.text}" if program.is_named else rendered.text
        if not rendered.is_exact:
            self.inexact[name] = rendered.notes
        elif text.rstrip("\n") != body:
            self.wrong[name] = (body, text)


# What no file of the kernel tells: variables at the time of printing, strings in its memory.
UNKNOWABLE = ("a variable of the kernel", "the string at kernel address")


def test_our_text_is_the_kernels(recorded):
    judge = Judge(recorded)
    for part in sorted(recorded.glob("passes/*")):
        judge.judge(part)
    assert len(judge.seen) > 900
    assert judge.wrong == {}
    # Of 362 types that a first recording had, 355 or more must be the kernel's own text.
    n_types = sum(not name.startswith("syscalls:") for name in judge.seen)
    say(
        f"{n_types - len(judge.inexact)} of {n_types} types, without system calls, are the kernel's own text\n"
    )
    assert len(judge.inexact) <= 7 / 362 * n_types, judge.inexact
    assert judge.kernel.hz == judge.info["hz"]
    for notes in judge.inexact.values():
        assert any(text in notes[0] for text in UNKNOWABLE), notes
