"""The answers of a booted 6.1.187 kernel, replayed: accepted or not, errno, what the file then shows."""

import os
import re
from pathlib import Path

import pytest
from filter_formats import EVENTS

from tracepoint.filter.error import FilterError
from tracepoint.filter.parse import is_clear, parse_filter
from tracepoint.filter.profile import KERNEL_6_1_187

ROOT = Path(__file__).resolve().parents[2]
LOG = Path(os.environ.get("TRACEPOINT_DATA", ROOT.parent / "shared" / "data")) / "control-6.1.log"
WRITE = re.compile(r"W  events/(?P<event>\w+/\w+)/filter <- '(?P<text>.*)' => (?P<answer>ok|ERR .*)")


def read_steps():
    """Yield (event, text, answer, file content, error_log entry) of every write to an event's filter."""
    lines = LOG.read_text(errors="surrogateescape").split("\n")
    for i, line in enumerate(lines):
        match = WRITE.fullmatch(line)
        if match is None:
            continue
        blocks = {}
        name = ""
        for following in lines[i + 1 :]:
            if following.startswith("R  "):
                name = following[3:].rstrip(":").rsplit("/", 1)[-1]
                blocks.setdefault(name, [])
            elif following.startswith("   |") and name:
                blocks[name].append(following[4:])
            else:
                break
        yield match["event"], match["text"], match["answer"], blocks.get("filter"), blocks.get("error_log")


def ask(event, text):
    """Return what we answer: (errno text, file content, error_log entry)."""
    if is_clear(text):
        return "ok", "none\n", None
    try:
        parsed = parse_filter(text, EVENTS[event], KERNEL_6_1_187)
    except FilterError as error:
        return f"ERR {os.strerror(error.errno)}", error.report, error.log_entry
    return "ok", parsed.text + "\n", None


@pytest.mark.oracle
@pytest.mark.skipif(not LOG.exists(), reason=f"{LOG} is missing; set TRACEPOINT_DATA to the recorded data")
def test_replay():
    n_steps = n_reports = n_logs = 0
    for event, text, answer, shown, log in read_steps():
        ours, our_report, our_log = ask(event, text)
        assert ours == answer, text
        n_steps += 1
        if shown is not None:
            assert our_report == "\n".join(shown) + "\n", text
            n_reports += 1
        if log:
            assert our_log == "\n".join([log[0].split("] ", 1)[1], *log[1:]]) + "\n", text
            n_logs += 1
    assert (n_steps, n_reports, n_logs) == (82, 79, 36)
