"""What runs inside a guest: reads a job from a JSON file, works on the real tracefs, writes the answer.

Never started on a developer's machine: it refuses unless its process tree begins with the lab's init.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import BinaryIO

from control import machine
from tracepoint.cli.main import main as program
from tracepoint.control import dynamic
from tracepoint.control.files import MountedFiles, find_files
from tracepoint.control.journal import Journal, journal_folder
from tracepoint.control.restore import restore_journals, restore_settings
from tracepoint.control.session import TracefsSession, open_tracefs
from tracepoint.control.settings import capture, read_settings
from tracepoint.control.tracefs import Tracefs

SYSTEMS = ("sched", "irq")


def main() -> None:
    if not Path("/lab/modules").exists():
        sys.exit("this is not a guest of the lab")
    job = json.loads(Path(sys.argv[1]).read_text())
    answer = JOBS[job["job"]](find_files(), job)
    Path(sys.argv[2]).write_text(json.dumps(answer))


def facts(files: MountedFiles, job: dict) -> dict:
    """Tell what a made-up tracefs needs to look like this one, after letting the buffers grow."""
    files.write("events/sched/sched_switch/enable", "1")
    files.write("events/sched/sched_switch/enable", "0")
    formats = {}
    for system in SYSTEMS:
        for name in files.names(f"events/{system}"):
            if name not in ("enable", "filter"):
                formats[f"{system}:{name}"] = files.read(f"events/{system}/{name}/format")
    return {"formats": formats, "settings": read_settings(files), "available": files.read("available_events")}


def near(files: MountedFiles) -> dict[str, str]:
    """Return the settings that the state machine can change."""
    folders = [s for s in (*SYSTEMS, "synthetic", "kprobes") if files.exists(f"events/{s}")]
    paths = [
        "trace_clock",
        "set_event_pid",
        "set_event_notrace_pid",
        "tracing_on",
        "snapshot",
        "dynamic_events",
    ]
    paths += [f"options/{name}" for name in ("markers", "overwrite", "verbose")]
    paths += [f"per_cpu/{cpu}/buffer_size_kb" for cpu in files.names("per_cpu")]
    for system in folders:
        names = [n for n in files.names(f"events/{system}") if n not in ("enable", "filter")]
        paths += [f"events/{system}/{n}/{what}" for n in names for what in ("enable", "filter", "trigger")]
    return {path: capture(files, path) or "" for path in paths} | {
        "instances": " ".join(files.names("instances"))
    }


def run_machine(files: MountedFiles, job: dict) -> dict:
    """Perform chosen operations; tell after each the answer and what changed, at the end what is not as before."""
    told = []
    everything = read_settings(files)
    for seed in job["seeds"]:
        before = last = near(files)
        tracing = TracefsSession(Tracefs(files, Journal(Path("/run/journals"), files.root)))
        steps = []
        for operation in machine.choose(seed, job["n"]):
            answer = machine.perform(tracing, operation)
            now = near(files)
            steps.append([operation, answer, _difference(last, now)])
            last = now
        restored = tracing.restore()
        told.append([steps, _difference(before, near(files)), restored.problems])
    return {"runs": told, "left": _difference(everything, read_settings(files))}


def _difference(before: dict[str, str], after: dict[str, str]) -> dict:
    return {
        p: [before.get(p), after.get(p)] for p in sorted({*before, *after}) if before.get(p) != after.get(p)
    }


def kills(files: MountedFiles, job: dict) -> dict:
    """Kill a working process at many moments, restore, and tell what is then not as before."""
    source = random.Random(job["seed"])
    everything = read_settings(files)
    before = near(files)
    wrong = []
    n_writes = n_journals = n_changed = 0
    began = time.monotonic()
    for number in range(job["n"]):
        child, writes = _work(files, source.randrange(1 << 30))
        with writes:
            n_writes += len(writes.read(source.randint(1, job["writes"])))
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        for report in restore_journals(Path(journal_folder()), lambda: files):
            n_journals += 1
            n_changed += len(report.restored.changed)
            wrong += [[number, problem] for problem in report.restored.problems]
        now = near(files)
        wrong += [[number, _difference(before, now)]] if now != before else []
        before = now
    return {
        "wrong": wrong,
        # What one kill leaves behind is there at the end too: no later session knows of it.
        "left": _difference(everything, read_settings(files)),
        "writes": n_writes,
        "journals": n_journals,
        "changed": n_changed,
        "settings": len(everything),
        "seconds": round(time.monotonic() - began, 1),
    }


class _CountedFiles(MountedFiles):
    """A mounted tracefs that tells a pipe of each write."""

    def __init__(self, root: str, pipe: int) -> None:
        super().__init__(root)
        self.pipe = pipe

    def write(self, path: str, text: str, *, truncate: bool = False) -> None:
        super().write(path, text, truncate=truncate)
        os.write(self.pipe, b"x")


def _work(files: MountedFiles, seed: int) -> tuple[int, BinaryIO]:
    """Start a process that performs operations without end; return its number, and a byte for each write."""
    ready, tell = os.pipe()
    child = os.fork()
    if child:
        os.close(tell)
        return child, os.fdopen(ready, "rb")
    try:
        tracing = open_tracefs(_CountedFiles(files.root, tell))
        while True:
            for operation in machine.choose(seed, 50):
                machine.perform(tracing, operation)
            seed += 1
    finally:
        os._exit(9)


def write_filters(files: MountedFiles, job: dict) -> list:
    """Write filters and tell errno, what the file shows, and the last entry of the error log."""
    told = []
    for event, text in job["filters"]:
        path = f"events/{event.replace(':', '/')}/filter"
        number = 0
        try:
            files.write(path, text)
        except OSError as error:
            number = error.errno
        shown = files.read(path)
        log = files.read("error_log") if number else ""
        told.append([number, shown, log[log.rfind("\n[") + 1 :]])
        if number:
            files.write("error_log", "\n")
    for event in {event for event, _ in job["filters"]}:
        files.write(f"events/{event.replace(':', '/')}/filter", "0")
    return told


def commands(files: MountedFiles, job: dict) -> dict:
    """Run command lines, and tell status and output of each and whether the settings are as before."""
    told = []
    everything = read_settings(files)
    for words in job["commands"]:
        before = near(files)
        told.append([*_run(words), _difference(before, near(files))])
    return {"runs": told, "left": _difference(everything, read_settings(files))}


def _run(words: list[str]) -> tuple[int, str, str]:
    """Run a command; our own program in a fork of this process, which has loaded it already."""
    if words[0] != "tracepoint":
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr
    paths = [Path("/tmp/stdout"), Path("/tmp/stderr")]
    child = os.fork()
    if not child:
        for number, path in enumerate(paths, 1):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        status = 99
        try:
            status = program(words[1:])
        finally:
            sys.stdout.flush()
            os._exit(status)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), paths[0].read_text(), paths[1].read_text()


def latency(files: MountedFiles, job: dict) -> dict:
    """Measure wake-up latencies with histograms that depend on each other, and undo that in three ways."""
    before = read_settings(files)
    with open_tracefs(files) as tracing:
        _set_latency(tracing)
        time.sleep(0.5)
        tables = tracing.event("synthetic:tp_lat").histograms()
        fired = tracing.event("irq:softirq_exit").state
        rows = [{name: str(value) for name, value in (r.keys | r.values).items()} for r in tables[0].rows]
    after_end = _difference(before, read_settings(files))
    child = os.fork()
    if not child:
        _set_latency(open_tracefs(files))
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    reports = restore_journals(Path(journal_folder()), lambda: files)
    after_kill = _difference(before, read_settings(files))
    with open_tracefs(files) as tracing:
        _set_latency(tracing)
        tracing.disable("*:*")
        set_up = read_settings(files)
        tracing.keep()
    with open_tracefs(files) as again:
        for event in ("synthetic:tp_lat", "sched:sched_switch", "sched:sched_waking"):
            again.event(event).remove_triggers()
        for name in ("tp_lat", "tp_switches", "tp_opens"):
            dynamic.remove_dynamic(again.tracefs, name)
    after_removal = _difference(set_up, read_settings(files))
    off = {"enable": "0", "filter": "none"}
    changed = {p for p in {*before, *set_up} if before.get(p) != set_up.get(p)}
    restore_settings(files, {p: before.get(p, off.get(p.rpartition("/")[2], "")) for p in changed})
    return {
        "rows": rows,
        "fired": fired,
        "problems": [p for r in reports if r.restored for p in r.restored.problems],
        "left": [after_end, after_kill, after_removal, _difference(before, read_settings(files))],
    }


def _set_latency(tracing: TracefsSession) -> None:
    for definition in (
        "s:tp_lat u64 lat; pid_t pid",
        "e:tp_probes/tp_switches sched.sched_switch pid=$next_pid:s32",
        "p:tp_probes/tp_opens do_sys_openat2",
    ):
        dynamic.define_dynamic(tracing.tracefs, definition)
    tracing.forget_names()
    tracing.event("sched:sched_waking").trigger = "hist:keys=pid:ts0=common_timestamp.usecs if pid != 0"
    tracing.event(
        "sched:sched_switch"
    ).trigger = (
        "hist:keys=next_pid:lat=common_timestamp.usecs-$ts0:onmatch(sched.sched_waking).tp_lat($lat,next_pid)"
    )
    tracing.event("synthetic:tp_lat").trigger = "hist:keys=pid,lat.log2:sort=hitcount.descending"
    # Fires at once, and leaves its target enabled when it is taken off.
    tracing.event("sched:sched_switch").trigger = "enable_event:irq:softirq_exit"
    tracing.event("tp_probes:tp_opens").filter = "common_pid != 0"
    tracing.enable("tp_probes:*", "synthetic:tp_lat")


JOBS = {
    "latency": latency,
    "facts": facts,
    "machine": run_machine,
    "kills": kills,
    "filters": write_filters,
    "commands": commands,
}

if __name__ == "__main__":
    main()
