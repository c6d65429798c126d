"""Whether all figures of analyses are within their bounds where a recording lost pages."""

import random

import pytest

from analysis.losing import Record, held_figures, schedule_of
from analysis.test_faults import COMPLETED, DONE, GUP, HANDLER, MAJOR, RETRY, SYMBOLS, TRAP
from tracepoint.analysis import analyse_faults, analyse_memory, analyse_swap, analyse_traps
from tracepoint.analysis.functions.report import analyse_functions
from tracepoint.analysis.power.report import analyse_power

TASKS = (10, 11, 12, 13)
MOST = (1 << 64) - 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("losses")


class Clock:
    """Records of tasks on two CPUs, one after the other."""

    def __init__(self, rng):
        self.rng, self.now, self.records = rng, 0, []

    def add(self, event, values, by=0, cpu=None):
        self.now += self.rng.randint(1, 20)
        cpu = self.rng.randrange(2) if cpu is None else cpu
        self.records.append(Record(self.now, cpu, event, values, by))


def faults(rng, n):
    """Faults that are tried again and fail, that read and wait, and mappings that come and go."""
    clock, doing = Clock(rng), {}

    def done(tid, ret, caller=TRAP):
        clock.add(DONE, {"__probe_func": HANDLER, "__probe_ret_ip": caller, "ret": ret}, tid)

    while len(clock.records) < n:
        tid = rng.choice(TASKS)
        step = doing.pop(tid, "")
        if step == "read":
            clock.add("block:block_bio_queue", {"rwbs": "RA"}, tid)
            doing[tid] = "sleep"
        elif step == "sleep":
            names = {"prev_comm": "a", "next_comm": "b"}
            clock.add("sched:sched_switch", {"prev_pid": tid, "prev_state": 2, **names}, tid)
            doing[tid] = "done"
        elif step == "done":
            ret = rng.choice([0, 0, MAJOR, RETRY, COMPLETED, 2])
            done(tid, ret)
            if ret == RETRY:
                doing[tid] = "done"
        elif rng.random() < 0.6:
            address = rng.choice([8, 0x7F0000000000, 0x7F0000400000])
            values = {"address": address, "ip": rng.choice([1, 2]), "error_code": rng.choice([4, 6, 0x14])}
            clock.add("exceptions:page_fault_user", values, tid)
            doing[tid] = rng.choice(["done", "done", "read", ""])
        elif rng.random() < 0.5:
            clock.add("raw_syscalls:sys_enter", {"id": 0}, tid)
            if rng.random() < 0.7:
                doing[tid] = "read" if rng.random() < 0.5 else ""
        elif rng.random() < 0.5:
            clock.add("syscalls:sys_enter_mmap", {"len": 0x1000, "flags": 0x22}, tid)
            clock.add("syscalls:sys_exit_mmap", {"ret": 0x7F0000000000}, tid)
        elif rng.random() < 0.5:
            clock.add("syscalls:sys_enter_munmap", {"addr": 0x7F0000000000, "len": 0x1000}, tid)
        else:
            done(tid, 0, GUP)
    return clock.records


def swap(rng, n):
    """Pages that go to slots and come back, reclaim of tasks and kswapd, pages of files that come back."""
    clock, reclaiming, slots, files = Clock(rng), {}, {}, set()
    while len(clock.records) < n:
        tid, what, at = rng.choice(TASKS), rng.randrange(5), rng.randrange(12)
        if what == 0 and at not in slots:
            n_pages = rng.choice([1, 1, 4])
            slots[at] = n_pages
            clock.add("kmem:mm_page_swap_out", {"nr_pages": n_pages, "entry": 100 * at}, tid)
        elif what == 1 and at in slots:
            for page in range(slots.pop(at)):
                values = {"entry": 100 * at + page, "major": rng.randrange(2)}
                clock.add("kmem:mm_page_swap_in", values, tid)
        elif what == 2:
            event, is_kswapd = "vmscan:mm_vmscan_direct_reclaim_", tid == TASKS[0]
            if is_kswapd:
                event = "vmscan:mm_vmscan_kswapd_"
            if tid in reclaiming:
                del reclaiming[tid]
                clock.add(event + ("sleep" if is_kswapd else "end"), {"nr_reclaimed": 5}, tid)
            else:
                reclaiming[tid] = True
                clock.add(event + ("wake" if is_kswapd else "begin"), {"order": 0}, tid)
        elif what == 3:
            add = at in files
            files ^= {at}
            event = f"filemap:mm_filemap_{'add_to' if add else 'delete_from'}_page_cache"
            clock.add(event, {"i_ino": 5, "s_dev": 8, "index": at}, tid)
        elif what == 4:
            clock.add("vmscan:mm_vmscan_write_folio", {"pfn": at, "reclaim_flags": rng.choice([9, 10])}, tid)
    return clock.records


def traps(rng, n):
    """Page faults, some of which become signals, signals of traps without events, interrupts."""
    clock, pending, busy = Clock(rng), {}, set()
    timer = "irq_vectors:local_timer"
    while len(clock.records) < n:
        tid, cpu = rng.choice(TASKS), rng.randrange(2)
        if tid in pending:
            number, code = pending.pop(tid)
            clock.add("signal:signal_generate", {"sig": number, "code": code, "pid": tid}, tid)
        elif rng.random() < 0.4:
            clock.add("exceptions:page_fault_user", {}, tid)
            if rng.random() < 0.5:
                pending[tid] = (11, 1)
        elif rng.random() < 0.3:
            clock.add("signal:signal_generate", {"sig": 8, "code": 1, "pid": tid}, tid)
        else:
            clock.add(f"{timer}_{'exit' if cpu in busy else 'entry'}", {"vector": 236}, tid, cpu)
            busy ^= {cpu}
    return clock.records


def memory(rng, n):
    """Objects and blocks of pages that are allocated and freed again and again at the same addresses."""
    clock, objects, pages = Clock(rng), set(), {}
    while len(clock.records) < n:
        tid, at = rng.choice(TASKS), rng.randrange(30)
        if rng.random() < 0.5:
            pointer = 0xFFFF888000000000 + 4096 * at
            if pointer in objects:
                clock.add("kmem:kfree", {"ptr": pointer}, tid)
            else:
                size = rng.choice([64, 128])
                values = {"call_site": at % 3, "ptr": pointer, "bytes_req": size - 4, "bytes_alloc": size}
                clock.add(f"kmem:{rng.choice(['kmalloc', 'kmem_cache_alloc'])}", values, tid)
            objects ^= {pointer}
        elif at in pages:
            clock.add("kmem:mm_page_free", {"pfn": 64 * at, "order": pages.pop(at)}, tid)
        else:
            pages[at] = rng.randrange(3)
            clock.add("kmem:mm_page_alloc", {"pfn": 64 * at, "order": pages[at]}, tid)
    return clock.records


def power(rng, n):
    """Idle states, frequencies and tasks of CPUs."""
    clock, is_idle = Clock(rng), [False, False]
    for cpu in (0, 1):
        clock.add("power:cpu_frequency", {"cpu_id": cpu, "state": 1_000_000}, 0, 0)
        clock.add("power:cpu_idle", {"cpu_id": cpu, "state": MOST >> 32}, 0, cpu)
    while len(clock.records) < n:
        cpu, what = rng.randrange(2), rng.random()
        if what < 0.3:
            khz = rng.choice([1_000_000, 2_000_000])
            clock.add("power:cpu_frequency", {"cpu_id": cpu, "state": khz}, 0, rng.randrange(2))
        elif what < 0.5:
            values = {"next_pid": rng.choice([0, 10]), "prev_comm": "a", "next_comm": "b"}
            clock.add("sched:sched_switch", values, 0, cpu)
        else:
            state = MOST >> 32 if is_idle[cpu] and rng.random() < 0.8 else rng.randint(1, 2)
            is_idle[cpu] = state < 3
            clock.add("power:cpu_idle", {"cpu_id": cpu, "state": state}, 0, cpu)
    return clock.records


def functions(rng, n):
    """Calls of tasks, some of functions within themselves."""
    clock, stacks = Clock(rng), {tid: [] for tid in TASKS}
    while len(clock.records) < n:
        tid = rng.choice(TASKS)
        stack = stacks[tid]
        if stack and (len(stack) > 4 or rng.random() < 0.5):
            func, start = stack.pop()
            values = {"func": func, "depth": len(stack), "calltime": start, "rettime": clock.now * 1000}
            clock.add("ftrace:funcgraph_exit", values, tid)
        else:
            func = rng.choice([0xFFFF_FFFF_8100_0000, 0xFFFF_FFFF_8100_1000, 0xFFFF_FFFF_8100_2000])
            clock.add("ftrace:funcgraph_entry", {"func": func, "depth": len(stack)}, tid)
            stack.append((func, clock.now * 1000))
    return clock.records


def with_symbols(*args):
    made = schedule_of(*args)
    made.kallsyms = SYMBOLS
    return made


@pytest.mark.parametrize(
    ("generated", "analyse"),
    [
        (faults, analyse_faults),
        (swap, analyse_swap),
        (traps, analyse_traps),
        (memory, analyse_memory),
        (power, analyse_power),
        (functions, analyse_functions),
    ],
)
def test_figures_are_within_their_bounds_where_pages_were_lost(folder, generated, analyse):
    rng = random.Random(1)
    counts = held_figures(generated(rng, 900), analyse, rng, folder, schedule=with_symbols)
    wrong = {name: own for name, own in counts.items() if own[True] < 0.95 * own.total()}
    assert not wrong
    assert sum(own.total() for own in counts.values()) >= 80
