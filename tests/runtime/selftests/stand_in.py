"""A program that stands in for a kernel: declares its events, and fires some of them.

`stand_in.py INCLUDE DIRECTORY` loads trace headers of a kernel source, mounts the control files on
DIRECTORY, and fires the scheduler's events for every process of its session that begins, changes its
program, or ends, as the process connector tells.  What it knows is true: pid, name, priority, the order.
What it cannot know is made up: when they slept and ran, the place of a kmalloc.  Every record bears the pid
of this program.
"""

import os
import socket
import struct
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import tracepoint
from tracepoint.model.python.declare import declare
from tracepoint.model.python.fields import scalar
from tracepoint.runtime.declare.event import make_tracepoint
from tracepoint.runtime.remote.mount import mount
from tracepoint.runtime.rings.symbols import address_of

HEADERS = ("sched", "kmem", "irq", "signal", "timer", "syscalls")
CN_PROC, PROC_FORK, PROC_EXEC, PROC_EXIT = 1, 0x1, 0x2, 0x80000000
HEADER_BYTES = 36
TICK_S = 0.01
TIMER_SOFTIRQ = 1
OWN = os.getsid(0)
# System calls have no header: the kernel makes their events of the calls' own parameters.
SYSTEM_CALLS = {
    "sys_enter_open": {"filename": "const char *", "flags": "int", "mode": "umode_t"},
    "sys_enter_openat": {"dfd": "int", "filename": "const char *", "flags": "int", "mode": "umode_t"},
    "sys_exit_openat": {"ret": "long"},
}


def task(pid):
    """What is known of a process: its name and priority, as long as it is there."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return SimpleNamespace(pid=pid, comm=b"<gone>".ljust(16, b"\0"), prio=120, session=0)
    name = text[text.index(b"(") + 1 : text.rindex(b")")]
    words = text[text.rindex(b")") + 2 :].split()
    prio, session = 100 + int(words[15]), int(words[3])
    return SimpleNamespace(pid=pid, comm=name[:15].ljust(16, b"\0"), prio=prio, session=session)


def declare_system_calls():
    """Declare events for tests that only attach something to them; nothing here fires them."""
    for name, parameters in SYSTEM_CALLS.items():
        fields = {"__syscall_nr": "int", **parameters}
        proto = ", ".join(f"{ctype} {field}" for field, ctype in fields.items())
        struct = [scalar(ctype, field) for field, ctype in fields.items()]
        assign = {field: field for field in fields}
        make_tracepoint(
            declare(
                name,
                system="syscalls",
                proto=proto,
                struct=struct,
                assign=assign,
                printk='"%d", __syscall_nr',
            )
        )


class Kernel:
    """The events, and who is there."""

    def __init__(self, include):
        functions = {"__trace_sched_switch_state": lambda *_: 0, "task_cpu": lambda _: 0, "NUMA_NO_NODE": -1}
        self.headers = {
            name: tracepoint.load(include / f"trace/events/{name}.h", include=[include], functions=functions)
            for name in HEADERS
        }
        self.alive = {os.getpid(): None}
        self.idle = SimpleNamespace(pid=0, comm=b"swapper/0".ljust(16, b"\0"), prio=120)
        self.here = address_of("copy_process")

    def fire(self, header, name, *values):
        self.headers[header][name](*values)

    def run(self, one):
        """Wake a task, let it run, and let it sleep again."""
        self.fire("sched", "sched_waking", one)
        self.fire("sched", "sched_wakeup", one)
        self.fire("sched", "sched_switch", False, self.idle, one, 0)
        self.fire("sched", "sched_switch", False, one, self.idle, 1)
        self.fire("irq", "softirq_entry", TIMER_SOFTIRQ)
        self.fire("irq", "softirq_exit", TIMER_SOFTIRQ)

    def tick(self):
        for pid in list(self.alive):
            one = task(pid)
            if one.session:
                self.run(one)
            else:
                del self.alive[pid]

    def forked(self, parent, child):
        older, younger = task(parent), task(child)
        if OWN not in (older.session, younger.session):
            return
        self.alive[child] = younger
        self.fire("sched", "sched_process_fork", older, younger)
        self.fire("kmem", "kmalloc", self.here, 0x1000, 100, 128, 0x400CC0, -1)
        self.run(younger)

    def executed(self, pid):
        one = task(pid)
        if one.session != OWN:
            return
        self.alive[pid] = one
        name = one.comm.rstrip(b"\0").decode(errors="replace")
        self.fire("sched", "sched_process_exec", one, pid, SimpleNamespace(filename=f"/usr/bin/{name}"))
        self.run(one)

    def ended(self, pid):
        one = self.alive.pop(pid, None)
        if one is not None:
            self.fire("sched", "sched_process_exit", one)


def connect():
    """Return a socket that tells of processes; raises OSError where this kernel does not let us."""
    stream = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, 11)
    stream.bind((os.getpid(), CN_PROC))
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    told = struct.pack("=IIIIHHI", CN_PROC, CN_PROC, 0, 0, 4, 0, 1)
    stream.send(struct.pack("=IHHII", 16 + len(told), 3, 0, 0, os.getpid()) + told)
    stream.settimeout(TICK_S)
    return stream


def serve(kernel, stream):
    """Fire what happens, and tick meanwhile."""
    ticked = time.monotonic()
    while True:
        try:
            data = stream.recv(4096)
        except TimeoutError:
            data = b""
        except OSError:
            continue  # More happened than the socket holds.
        if len(data) >= HEADER_BYTES + 32:
            (what,) = struct.unpack_from("=I", data, HEADER_BYTES)
            first, second, third, _ = struct.unpack_from("=4I", data, HEADER_BYTES + 16)
            if what == PROC_FORK:
                kernel.forked(first, third)
            elif what == PROC_EXEC:
                kernel.executed(first)
            elif what == PROC_EXIT and first == second:
                kernel.ended(first)
        if time.monotonic() - ticked > TICK_S:
            kernel.tick()
            ticked = time.monotonic()


def main():
    # A test looks at once for the event of a process that it has just made: hear of it early.
    os.nice(-15)
    kernel = Kernel(Path(sys.argv[1]))
    declare_system_calls()
    try:
        stream, said = connect(), "ready\n"
    except OSError as error:
        stream, said = None, f"ready, but no process connector: {error.strerror}\n"
    with mount(sys.argv[2]):
        sys.stdout.write(said)
        sys.stdout.flush()
        while stream is None:
            time.sleep(TICK_S)
            kernel.tick()
        serve(kernel, stream)


if __name__ == "__main__":
    main()
