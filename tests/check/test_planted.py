"""Faults planted in copies of the kernel's own headers: each is found, by its rule, and was not there before."""

from __future__ import annotations

import re
from functools import cache

import pytest

from oracles import kernel_source, kernel_sources
from tracepoint.check.engine import check_header
from tracepoint.tree.creators import Creators
from tracepoint.tree.facts import read_facts as kernel_facts
from tracepoint.tree.headers import HeaderReader

pytestmark = pytest.mark.oracle

EVENTS = "include/trace/events"
ATH = "drivers/net/wireless/ath/ath10k/trace.h"
PLANTED = {
    "the size of a pointer": (
        f"{EVENTS}/bridge.h",
        r"memcpy\(__entry->addr, addr, ETH_ALEN\)",
        "memcpy(__entry->addr, addr, sizeof(addr))",
        "TP214",
    ),
    "a whole task into its name": (
        f"{EVENTS}/oom.h",
        r"\w+\(__entry->comm, task->comm[^;]*;",
        "memcpy(__entry->comm, task, sizeof(*task));",
        "TP215",
    ),
    "a copy longer than its array": (
        f"{EVENTS}/i2c.h",
        r"msg->buf, msg->len\)",
        "msg->buf, num * msg->len)",
        "TP215",
    ),
    "a string as member, assigned": (
        f"{EVENTS}/irq.h",
        r"__assign_str\(name[^;]*;",
        "strcpy(__entry->name, action->name);",
        "TP212",
    ),
    "a string as member, shown": (f"{EVENTS}/irq.h", r"__get_str\(name\)", "__entry->name", "TP212"),
    "a missing semicolon": (
        f"{EVENTS}/sched.h",
        r"(__entry->prev_pid\s*= prev->pid);",
        r"\1",
        "TP216",
    ),
    "an instance with another integer": (
        f"{EVENTS}/error_report.h",
        r"(DEFINE_EVENT[^;]*)unsigned long id",
        r"\1int id",
        "TP101",
    ),
    "no TRACE_INCLUDE_PATH": (ATH, r"#define TRACE_INCLUDE_PATH .*\n", "", "TP017"),
    "another TRACE_INCLUDE_FILE": (
        ATH,
        r"#define TRACE_INCLUDE_FILE trace",
        "#define TRACE_INCLUDE_FILE tracing",
        "TP017",
    ),
    "64 bits into an int": (
        f"{EVENTS}/kvm.h",
        r"__field\(\s*u64,\s*gpa\s*\)",
        "__field(int, gpa)",
        "TP217",
    ),
    "shown twice, the sibling never": (
        f"{EVENTS}/sched.h",
        r"__entry->orig_cpu, __entry->dest_cpu\)",
        "__entry->dest_cpu, __entry->dest_cpu)",
        "TP324",
    ),
    "two arguments exchanged": (
        f"{EVENTS}/sched.h",
        r"__entry->orig_cpu, __entry->dest_cpu\)",
        "__entry->dest_cpu, __entry->orig_cpu)",
        "TP325",
    ),
    "the other task": (
        f"{EVENTS}/sched.h",
        r"(__entry->prev_pid\s*= )prev->pid",
        r"\1next->pid",
        "TP218",
    ),
    "a pid followed when it is recorded": (
        f"{EVENTS}/sched.h",
        r"(__entry->prev_prio\s*= )prev->prio",
        r"\1((struct task_struct *)__entry->prev_pid)->prio",
        "TP219",
    ),
    "a pid followed when it is shown": (
        f"{EVENTS}/sched.h",
        r"__entry->prev_comm, __entry->prev_pid",
        "((struct task_struct *)(long)__entry->prev_pid)->comm, __entry->prev_pid",
        "TP219",
    ),
}


@cache
def reader_of(root):
    return HeaderReader(creators=Creators(root, ())), kernel_facts(root)


def codes_of(text, relative, root):
    reader, facts = reader_of(root)
    header = reader._read(text, root / relative, root, reader._loader(root), ())
    return [d.code for d in check_header(header, facts=facts)]


@pytest.mark.parametrize(
    "tree", sorted({*kernel_sources()[:1], *kernel_sources()[-1:]}) or ["linux-source-6.1"]
)
@pytest.mark.parametrize("fault", sorted(PLANTED))
def test_a_planted_fault_is_found(fault, tree):
    relative, pattern, replacement, code = PLANTED[fault]
    root = kernel_source(tree)
    text = (root / relative).read_text("utf-8", errors="surrogateescape")
    planted, count = re.subn(pattern, replacement, text, count=1)
    assert count == 1, f"{relative} of {tree} has no {pattern}"
    before, after = codes_of(text, relative, root), codes_of(planted, relative, root)
    assert after.count(code) == before.count(code) + 1
