"""What booted kernels answer to bad and good texts in trigger and synthetic_events files, and what we answer."""

import contextlib
import os
import re
import shlex

import pytest

from runtime import control_tree
from tracepoint.layout.format import read_format
from tracepoint.runtime.files.tree import ControlFiles
from tracepoint.runtime.hierarchy import Tracing

pytestmark = pytest.mark.guest
FORK = "events/sched/sched_process_fork"
SWITCH = "events/sched/sched_switch"
EVENTS = ("sched_process_fork", "sched_switch", "sched_waking", "sched_process_exec")
HISTS = [
    "keys=nosuch", "keys=", "vals=child_pid", "keys=child_pid:vals=nosuch", "keys=child_pid.nosuch",
    "keys=child_pid.execname", "keys=common_pid.execname", "keys=child_pid.buckets=0", "keys=child_pid.buckets=8",
    "keys=child_pid:sort=", "keys=child_pid:sort=parent_pid", "keys=child_pid:sort=child_pid.up",
    "keys=child_pid:sort=child_pid,", "keys=child_pid:sort=child_pid,hitcount,parent_pid",
    "keys=child_pid:size=100", "keys=child_pid:size=300", "keys=child_pid:size=x", "keys=child_pid:junk",
    "keys=child_pid:x=", "keys=child_pid:x=nosuch", "keys=child_pid:x=$nosuch", "keys=$nosuch",
    "keys=child_pid:x=1,y", "keys=child_pid:x=1,x=2", "keys=child_pid:x=child_pid/0", "keys=child_pid:x=3/0",
    "keys=child_pid:x=1+", "keys=child_pid:x=+1", "keys=child_pid:x=-1", "keys=child_pid:x=-(1)+2",
    "keys=child_pid:x=-(child_pid)", "keys=child_pid:x=1+2+3+4+5", "keys=child_pid:x=32+10*3/20-4",
    "keys=child_pid:x=09", "keys=child_pid:x=12ab", "keys=child_pid:x=child_comm+1", "keys=child_pid:x=1+child_comm",
    "keys=child_pid:x=16-8-4-2", "keys=child_pid:x=64/8/4/2", "keys=child_pid:x=4*3/2*2", "keys=child_pid:x=0x10",
    "keys=child_pid:x=common_timestamp.usecs-common_timestamp", "keys=child_pid:x=common_timestamp.usecs",
    "keys=child_pid:x=child_comm", "keys=child_pid:clear", "keys=child_pid:cont", "keys=child_pid:pause",
    "keys=child_pid:onmax(child_pid).save(parent_pid)", "keys=child_pid:onmax($nosuch).save(parent_pid)",
    "keys=child_pid:x=child_pid:onmax($x).save()", "keys=child_pid:x=child_pid:onmax($x).save(nosuch)",
    "keys=child_pid:x=child_pid:onmax($x).save(parent_pid)", "keys=child_pid:x=child_pid:onchange($x).snapshot()",
    "keys=child_pid:x=child_pid:onmax($x)", "keys=child_pid:x=child_pid:onmax($x).nosuch(child_pid)",
    "keys=child_pid:onmatch(sched).lat(child_pid)", "keys=child_pid:onmatch(sched.nosuch).lat(child_pid)",
    "keys=child_pid:onmatch(sched.sched_waking).nosuch(child_pid)", "keys=child_pid:onmatch(sched.sched_waking",
    "keys=child_pid:onmatch(sched.sched_waking).save(child_pid)", "keys=child_pid:onmatch(sched.sched_waking).snapshot()",
    "keys=child_pid:onmatch(sched.sched_waking).lat(child_pid)",
    "keys=child_pid:onmatch(sched.sched_waking).lat($nosuch,child_pid)",
    "keys=child_pid:onmatch(sched.sched_waking).lat(child_comm,child_pid)",
    "keys=child_pid:onmatch(sched.sched_waking).lat(child_pid,child_pid)",
    "keys=child_pid:x=common_timestamp:onmatch(sched.sched_waking).lat($x,prio)",
    "keys=child_pid:x=common_timestamp:onmatch(sched.sched_waking).lat($x,child_pid)",
    "keys=child_pid:x=common_timestamp:onmatch(sched.sched_waking).trace(lat,$x,child_pid)",
    "keys=child_pid:x=common_timestamp:onmatch(sched.sched_waking).trace(nosuch,$x,child_pid)",
    "keys=child_pid,parent_pid,child_comm,parent_comm", "keys=child_pid,parent_comm", "name=n:keys=child_pid",
    "keys=child_pid:vals=parent_pid,hitcount", "keys=child_pid.hex:vals=parent_pid.hex",
    "keys=child_pid.log2:vals=parent_pid.log2", "keys=child_pid.log2:sort=child_pid", "keys=child_pid.log2:sort=child_pid.log2",
    "keys=child_pid.hex,parent_pid.buckets=4:vals=child_pid:sort=child_pid,parent_pid.descending", "keys=child_pid.sym:sort=child_pid",
    "keys=common_timestamp.usecs:sort=common_timestamp", "keys=child_pid.sym-offset:sort=child_pid.ascending",
    "keys=child_pid:vals=parent_pid,child_pid,common_pid", "keys=child_pid:vals=parent_pid,child_pid,hitcount",
    "keys=child_pid:vals=parent_pid.percent:sort=parent_pid", "keys=child_pid:vals=parent_pid.graphic,child_pid.percentage",
    "keys=child_pid.percent", "keys=child_pid.graph", "keys=child_pid:x=parent_pid.percent", "keys=child_pid:x=parent_pid.graph",
    "keys=child_pid:z=$y,y=child_pid:x=-(parent_pid+0x10):v=cpu", "keys=child_pid:x=$y+1:y=child_pid.hex", "keys=child_pid,CPU",
    "keys=child_pid:vals=$nosuch", "keys=child_pid:x=sched.sched_switch.$nosuch",
    "keys=stacktrace:sort=stacktrace", "keys=child_pid:nohc",
]  # fmt: skip
# What a kernel has since 6.3.
LATER_HISTS = [
    "keys=stacktrace", "keys=common_stacktrace,child_pid:sort=common_stacktrace", "keys=STACKTRACE", "keys=child_pid:x=stacktrace",
    "keys=child_pid:vals=stacktrace", "keys=child_pid:nohitcount", "keys=child_pid:NOHC", "keys=child_pid:vals=hitcount:nohitcount",
    "keys=child_pid:vals=parent_pid:nohitcount", "keys=child_pid:vals=parent_pid.percent:NOHC:sort=parent_pid.descending",
    "keys=child_pid:vals=hitcount.percent,hitcount.graph", "keys=child_pid:vals=hitcount,hitcount", "keys=child_pid:x=hitcount",
    "keys=hitcount", "keys=child_pid:vals=hitcount.hex:nohitcount", "keys=child_pid:vals=hitcount.log2",
    "keys=child_pid.stacktrace",
]  # fmt: skip
# One after the other, each in what those before it left.
SEQUENCE = [
    "hist:keys=child_pid:x=parent_pid", "traceon", "hist:keys=parent_pid:x=1", "hist:keys=child_pid:x=parent_pid",
    "hist:keys=child_pid:x=parent_pid:pause", "hist:keys=parent_pid", "stacktrace", "hist:keys=parent_pid,child_pid:y=$x",
    "!hist:keys=child_pid:x=parent_pid", "!hist:keys=parent_pid,child_pid:y=$x", "!hist:keys=child_pid:x=parent_pid",
    "hist:keys=parent_pid,child_pid:x=2", "!stacktrace", "!traceon", "!hist:keys=parent_pid", "!hist:keys=parent_pid,child_pid:x=2",
]  # fmt: skip
SYNTHETICS = [
    "one", "one u64", "one u64 a", "one u64 a b", "one u64 a; b", "one nosuch a", "one unsigned a", "one unsigned int a",
    "one unsigned long a; char b[]", "one char a[0]", "one char a[256]", "one char a[257]", "one char a[x]", "one char a[",
    "one char a]", "one u64 a[3]", "one short a", "one size_t a", "o-ne u64 a", "1one u64 a", "one u64 1a", "one u64 a-b",
    "one;u64 a", "; u64 a", "one ; u64 a", "one u64 a;;u64 b", "one u64 a;", "one u64 a pid_t b", "one\tu64 a",
    "one  u64  a ;  u64  b", "one s8 a; u8 b; s16 c; u16 d; s32 e; u32 f; s64 g; bool h; gfp_t i; long j; int k; char l",
    "lat u64 a",
]  # fmt: skip
TRIGGERS = [
    "traceon", "traceoff", "traceoff:5", "traceoff:0", "traceoff:-1", "traceoff:x", "traceoff:5:3", "traceoff :5",
    "traceoff+0", "snapshot:2", "stacktrace", "stacktrace:foo", "stacktrace:3", "enable_event:sched:sched_switch",
    "enable_event:sched:nosuch", "enable_event:sched", "enable_event", "disable_event:sched:sched_switch:2",
    "disable_event+1", "enable_event:sched:sched_switch:x", "enable_hist:sched:sched_switch", "nosuch", "hist", "hist:",
    "traceoff if", "traceoff if child_pid == 0", "traceoff if child_pid = 0", "traceoff if nosuch", "traceoff:2 if a",
    "snapshot if child_pid > 5 && parent_pid < 3", "enable_event:sched:sched_switch if child_pid == 1", "if child_pid == 0",
    "traceoff if (child_pid == 0", 'traceoff if child_comm ~ "x*"', "!nosuch", "!traceoff",
]  # fmt: skip
DYNAMICS = [
    "s:one u64 a", "s:synthetic/one u64 a; char b[]", "s:junk/one u64 a", "s:one", "s:", "-:nosuch", "-:synthetic/nosuch",
    "x:y z", "-one", "-:", "!s:nosuch", "s:o-ne u64 a", "s:one nosuch a", "s:lat u64 a",
]  # fmt: skip
SWITCHES = "sched/sched_switch"
PROBES = [
    "e", "e:", "e:p", "e a.", "e .b", "e sched", "e a.b", "e:p a.b", "e:p ftrace/print", "e:p s-x/sched", "e:/p " + SWITCHES,
    f"e:{'g' * 64}/p {SWITCHES}", f"e:{'g' * 63}/ {SWITCHES}", f"e:g.1/p {SWITCHES}", f"e:g/{'p' * 64} {SWITCHES}",
    f"e:g/p.1 {SWITCHES}", f"e:1g/p {SWITCHES}", f"e:sched/sched_switch {SWITCHES}", f"e:ftrace/print {SWITCHES}",
    "e:p synthetic/lat a=$lat b=$pid:s32", "e:p sched.sched_switch", "exy:p sched.sched_switch", " e:p sched.sched_switch",
    "e:p/ sched.sched_switch", "e:p  sched/sched_switch   a=$prev_pid    b=$nosuch ", "e:p sched/sched_switch # a=$prev_pid",
    *(f"e:p {SWITCHES} {args}" for args in (
        "foo", "a=", "=$prev_pid", "a-b=$prev_pid", "common_pid=$prev_pid", "__probe_ip=$prev_pid", "a=$prev_pid a=$prev_pid",
        f"{'n' * 33}=$prev_pid", f"{'n' * 32}=$prev_pid", f"a=${'n' * 64}", "a=$", "a=$nosuch", "a=$common_pid", "a=$prev_pid",
        "a=%ax", "a=%ax:string", "a=@+5", "a=@5x", "a=@99999999999999999999", "a=+0x", "a=+x($prev_pid)", "a=+(($prev_pid)",
        "a=+u8($prev_pid", "a=-8($prev_pid", "a=+0(+u8(foo))", "a=+99999999999999999999($prev_comm)", "a=+0($nosuch)",
        'a=+0(\\"xx"):string', 'a=\\"xx:string', 'a=\\":string', 'a=\\"":string', "a=\\5x", "a=\\", "a=\\99999999999999999999",
        "a=\\-1 b=\\+0x10:x8", "a=$prev_pid:", "a=$prev_pid:char", "a=$prev_pid:u128", "a=$prev_pid:u8[3", "a=$prev_pid:u8[3]x",
        "a=$prev_pid:u8[0]", "a=$prev_pid:u8[x]", "a=$prev_pid:u8[65]", "a=$prev_pid:u8[4]", "a=+u0($prev_pid):u8[4]",
        "a=$prev_pid:b0@0/8", "a=$prev_pid:b5@4/8", "a=$prev_pid:b5@4/9", "a=$prev_pid:b5/8", "a=$prev_pid:b5@/8", "a=$prev_pid:b5@0/8",
        f"a={'+0(' * 14}$x{')' * 14}", f"a={'+0(' * 15}$x{')' * 15}", " ".join(f"a{i}=+0($prev_comm):u64[64]" for i in range(7)),
        "if", "a=$prev_pid if", "a=$prev_pid if prev_pid = 3", "a=$prev_pid if nosuch == 3", 'if prev_pid > 0 && next_comm ~ "x*"',
    )),
]  # fmt: skip
GOOD_PROBES = [
    "$prev_pid $next_pid", "a=$prev_pid:u8 b=$prev_pid:s16 c=$prev_pid:x32 d=$prev_pid:s64 e=$prev_pid:symbol",
    "a=$prev_comm:string b=+0($prev_comm):ustring c=$comm:string d=$COMM:string e=+2($comm):u16 f=-4(+0($prev_comm)):string",
    "a=+0($prev_comm):u8[16] b=+4294967297($prev_comm):u8 c=+1($prev_comm):b2@3/16 d=+0($prev_comm):b2@3/16[3]",
    'a=\\5 b=\\-5:s32 c=\\0x1ff:x8 d=\\"text":string e=@0x10:string f=+0($prev_pid):string', "",
]  # fmt: skip
REMOVALS = [
    "-:", "-p", "-x:p", "!p", "!:p", "-:p sched/sched_waking", "-:p xx", "-:p sched.sched_switch a=$prev_pid b=4", "-:q/p",
    "-:eprobes/q", "-:/p", "-:q/", " -:p", "!e:p", "-:p", "-:eprobes/p", "-:eprobes/", "-:p sched/sched_switch",
    "-:p sched.sched_switch a=$prev_pid", "!x:eprobes/p sched.sched_switch a=$prev_pid b=$next_pid:u8",
]  # fmt: skip
SCRIPT = r"""
cd /sys/kernel/tracing
try() {
    echo >error_log
    if echo "$2" >>"$1" 2>/tmp/words; then echo "= ok"; else echo "= ERR $(sed 's/.*: //' /tmp/words)"; fi
    cat error_log
    echo shows
    cat "$3"
}
echo 'lat u64 lat; pid_t pid' >synthetic_events
"""


def log_of(text):
    """Return an answer without times, and without counts: in a kernel processes fork meanwhile."""
    text = re.sub(r"(:count=|^ID: )\d+", r"\1N", text, flags=re.MULTILINE)
    return re.sub(r"^\[ *\d+\.\d+\] ", "", text, flags=re.MULTILINE)


def ask_guest(guest, requests):
    """Return for every (file, text, shown file, undo) what the guest answered."""
    lines = [SCRIPT]
    for path, text, shown, undo in requests:
        lines.append(f"echo '@@@'; try {path} {shlex.quote(text)} {shown}\n")
        lines.append(f"printf '%s' {shlex.quote(undo)} >>{path} 2>/dev/null\n" if undo else "")
    said = guest.run("".join(lines) + "echo >synthetic_events", timeout=120, check=False).text
    return [log_of(part.strip("\n")) for part in said.split("@@@")[1:]]


def ask_here(tree, requests):
    answers = []
    for path, text, shown, undo in requests:
        tree.write_text("error_log", "\n")
        try:
            tree.write_text(path, text, append=True)
            answer = "= ok"
        except OSError as error:
            answer = f"= ERR {os.strerror(error.errno)}"
        log = tree.read_text("error_log")
        answers.append(log_of(f"{answer}\n{log}shows\n{tree.read_text(shown)}".strip("\n")))
        if undo:
            with contextlib.suppress(OSError):
                tree.write_text(path, undo, append=True)
    return answers


def hists(texts):
    return [(f"{FORK}/trigger", f"hist:{text}", f"{FORK}/trigger", f"!hist:{text}") for text in texts]


def compare(guest, requests):
    """Ask both the same, in a tree with the kernel's events."""
    tracing = Tracing()
    for name in EVENTS:
        path = f"/sys/kernel/tracing/events/sched/{name}/format"
        control_tree.declare_format(read_format(guest.read(path), system="sched"), tracing)
    tree = ControlFiles(tracing)
    tree.write_text("synthetic_events", "lat u64 lat; pid_t pid")
    theirs, ours = ask_guest(guest, requests), ask_here(tree, requests)
    assert len(theirs) == len(ours) == len(requests)
    different = [
        (request[1], there, here)
        for request, there, here in zip(requests, theirs, ours, strict=True)
        if [line.rstrip() for line in there.splitlines()] != [line.rstrip() for line in here.splitlines()]
    ]
    assert different == [], "\n\n".join(f"{text}\n{there}\n{here}" for text, there, here in different)


def test_histograms_answer_as_the_kernels(guest):
    requests = [(f"{FORK}/trigger", text, f"{FORK}/trigger", "") for text in SEQUENCE] + hists(HISTS)
    requests += hists([] if guest.image.release.startswith("6.1.") else LATER_HISTS)
    compare(guest, requests)


def test_the_answers_are_those_of_the_kernel(guest):
    if not guest.image.release.startswith("6.1."):
        pytest.skip("the words are those of 6.1")
    requests = [("synthetic_events", text, "synthetic_events", "!one") for text in SYNTHETICS]
    requests += [(f"{FORK}/trigger", text, f"{FORK}/trigger", f"!{text}") for text in TRIGGERS]
    requests += [("dynamic_events", text, "dynamic_events", "-:one") for text in DYNAMICS]
    requests += [("dynamic_events", text, "dynamic_events", "-:p") for text in PROBES]
    shown = "events/eprobes/p/format"
    requests += [("dynamic_events", f"e:p {SWITCHES} {args}", shown, "-:p") for args in GOOD_PROBES]
    made = f"e:p {SWITCHES} a=$prev_pid b=$next_pid:u8"
    for text in REMOVALS:
        requests += [
            ("dynamic_events", made, "dynamic_events", ""),
            ("dynamic_events", text, "dynamic_events", "-:p"),
        ]
    compare(guest, requests)
