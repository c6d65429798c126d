"""Latencies against `perf sched latency` on a perf.data of the same records, but for what it loses, counted."""

import re
import shutil
import subprocess
from types import SimpleNamespace

import pytest

import tracepoint as tp
from oracles import data_file
from tracefile.perfmaking import PerfMaker
from tracepoint.analysis import analyse_sched
from tracepoint.analysis.sched.waits import CAUSES
from tracepoint.tracefile.compression import has_zstd
from tracepoint.tracefile.tracedat import open_tracedat

# perf 6.1 takes the wake-up, later ones the waking where it was recorded: so it is left out.
EVENTS = ("sched_switch", "sched_wakeup", "sched_wakeup_new", "sched_stat_runtime")
# A second or more fills its column: no blank stands before it.
LINE = re.compile(r"^ .+:(\d+) +\|.* ms \| +(\d+) \| avg: *([\d.]+) ms \| max: *([\d.]+) ms", re.MULTILINE)
US = 1000

pytestmark = [
    pytest.mark.usefixtures("form"),
    pytest.mark.oracle,
    pytest.mark.skipif(shutil.which("perf") is None, reason="perf is not installed"),
    pytest.mark.skipif(not has_zstd(), reason="no library for zstd: pip install zstandard"),
]


class SchedMaker(PerfMaker):
    """Some events only; perf refuses a file with formats that it cannot parse."""

    def __init__(self, file, names):
        super().__init__(file)
        with tp.open_trace(file.path) as trace:
            self.ids = sorted(trace.format(f"sched:{name}").id for name in names)
        self.records = [r for r in self.records if r.id(is_big_endian=self.big) in self.ids]
        kept = "is_big_endian layout saved_cmdlines header_page header_event printk_formats".split()
        self.trace = SimpleNamespace(
            **{name: getattr(file, name) for name in kept},
            formats=[(system, text) for system, text in file.formats if system == "sched"],
        )


def shown(text):
    """How often each task waited, the sum of it and the longest, in us, of what `perf sched latency -p` prints."""
    found = {}
    for word, number, mean, longest in LINE.findall(text):
        # A task that runs before the record of its beginning has another line, without its name.
        n, total, most = found.get(int(word), (0, 0, 0))
        found[int(word)] = (
            n + int(number),
            total + int(number) * float(mean) * US,
            max(most, float(longest) * US),
        )
    return found


def counted(report):
    """The waits of each task, in us, that perf counts."""
    tids = {row["utid"]: row["tid"] for row in report.thread}
    found = {}
    # perf does not know the letters R+: a preempted task waits for nothing.
    for cause in set(CAUSES) - {"preemption"}:
        for tid, waits in report.latency_by_task(cause, lambda utid: str(tids[utid])).items():
            found.setdefault(int(tid), []).extend(ns / US for ns in waits.values)
    return found


def test_latencies_are_those_of_perf(tmp_path):
    path = tmp_path / "perf.data"
    with open_tracedat(data_file("small.v7.zstd.dat")) as file:
        path.write_bytes(SchedMaker(file, EVENTS).file())
    with tp.open_trace(path) as trace:
        report = analyse_sched(trace)
    ours = counted(report)
    command = ["perf", "sched", "-f", "-i", str(path), "latency", "-p"]
    theirs = shown(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    for tid, (n, total, most) in theirs.items():
        own = ours.pop(tid)
        assert n == len(own)
        assert sum(own) == pytest.approx(total, abs=0.51 * n)
        assert max(own) == pytest.approx(most, abs=0.51)
    assert not ours
    assert (len(theirs), len(report.latency("preemption").values)) == (52, 35)
