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

from control import machine
from tracepoint.control.files import MountedFiles, find_files
from tracepoint.control.journal import Journal, journal_folder
from tracepoint.control.restore import restore_journals
from tracepoint.control.session import Tracing, open_tracefs
from tracepoint.control.settings import capture, read_settings
from tracepoint.control.tracefs import Tracefs

SYSTEMS = ("sched", "irq")


def main() -> None:
    if not Path("/lab/modules").exists():
        sys.exit("this is no guest of the lab")
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
        tracing = Tracing(Tracefs(files, Journal(Path("/run/journals"), files.root)))
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
    n_journals = n_changed = 0
    began = time.monotonic()
    for number in range(job["n"]):
        child = _work(files, source.randrange(1 << 30))
        time.sleep(source.uniform(0, job["seconds"]))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        for report in restore_journals(journal_folder(), lambda: files):
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
        "journals": n_journals,
        "changed": n_changed,
        "settings": len(everything),
        "seconds": round(time.monotonic() - began, 1),
    }


def _work(files: MountedFiles, seed: int) -> int:
    """Start a process that performs operations without end; return its number once it works."""
    ready, tell = os.pipe()
    child = os.fork()
    if child:
        os.read(ready, 1)
        os.close(ready)
        os.close(tell)
        return child
    try:
        tracing = open_tracefs(files)
        os.write(tell, b"x")
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
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        told.append([done.returncode, done.stdout, done.stderr, _difference(before, near(files))])
    return {"runs": told, "left": _difference(everything, read_settings(files))}


JOBS = {
    "facts": facts,
    "machine": run_machine,
    "kills": kills,
    "filters": write_filters,
    "commands": commands,
}

if __name__ == "__main__":
    main()
