"""The C module and its twins find the same in any records, also in those that no kernel writes."""

import random
from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.conftest import without_c
from tracepoint.analysis.coverage import Coverage, Gap, find_times
from tracepoint.analysis.distribution import Distribution
from tracepoint.analysis.histogram import PRECISION
from tracepoint.analysis.sched import waits as waits_module
from tracepoint.analysis.sched.build import run_machine
from tracepoint.analysis.sched.events import SchedKind, SchedPart
from tracepoint.analysis.sched.report import SchedReport
from tracepoint.analysis.sched.sums import SchedSums
from tracepoint.analysis.sched.waits import CAUSES
from tracepoint.decode.column import number_column, text_column
from tracepoint.decode.numbers import add_lengths, count_up, keep_below, null_bits, numbers_of, sort_numbers
from tracepoint.decode.table import JoinedTable
from tracepoint.record.decode import DECODE

WAKE = ("pid", "common_pid", "common_flags", "comm")
FIELDS = {
    "sched:sched_switch": ("prev_pid", "prev_state", "next_pid", "next_prio", "prev_comm", "next_comm"),
    "sched:sched_waking": WAKE,
    "sched:sched_wakeup": WAKE,
    "sched:sched_wakeup_new": WAKE,
    "sched:sched_migrate_task": ("pid",),
    "task:task_newtask": WAKE,
    "sched:sched_process_exec": ("pid", "old_pid"),
    "sched:sched_process_free": ("pid",),
    "task:task_rename": ("pid", "newcomm"),
}
WORDS = [b"a", b"", b"\xff", b"kworker/0:1"]
MIN, MAX = -(1 << 63), (1 << 63) - 1
RANGES = {"b": (-128, 127), "i": (-(1 << 31), (1 << 31) - 1), "q": (MIN, MAX), "Q": (0, (1 << 64) - 1)}
STATES = {0: "R", 1: "S", 2: "D", 16: "X", 32: "Z", 256: "R+", 3: "S"}
CPUS = [0, 0, 0, 1, 1, 1, 2, -1, (1 << 31) - 1, -(1 << 31)]


def a_column(rng, name, n):
    """A column of a field with values that are likely to meet, and some that are not there."""
    if name.endswith("comm"):
        column = text_column(name, rng.choices(range(len(WORDS)), k=n), WORDS)
    else:
        code = rng.choice("qQi" if name == "prev_state" else "iiiibqQ")
        likely = (
            [state for state in STATES if state < 128] if name == "prev_state" else [0, 1, 2, 3, 4, 8, 16]
        )
        values = rng.choices([*likely, *likely, *likely, *RANGES[code]], k=n)
        column = number_column(name, values, code)
    if rng.randrange(6):
        return column
    n_nulls, bits = null_bits(numbers_of(rng.choices(range(7), k=n), "i"), 0)
    return type(column)(column.plan, n, n_nulls, bits, column.values, column.bytes_, column.ends)


class Records:
    """Records of all kinds in memory, in parts, as `SchedEvents` gives them."""

    def __init__(self, tables):
        self._tables = tables
        self.recorded_kinds = frozenset(SchedKind)
        self.names = {1: "saved"}

    def parts(self):
        return (SchedPart(table, FIELDS) for table in self._tables)

    def times(self):
        return ((part.stamps, part.cpus) for part in self.parts())

    def label(self, value):
        return STATES.get(value, "?")


def some_times(rng, n):
    if not rng.randrange(4):
        return rng.choices([MIN, MIN + 1, -1, MAX, 5, 7], k=n)
    return [rng.randint(0, 4 * n + 1) for _ in range(n)]


def a_table(rng, n, *, is_sorted):
    stamps = some_times(rng, n)
    columns = [
        number_column("common_timestamp", sorted(stamps) if is_sorted else stamps, "q"),
        number_column("common_cpu", rng.choices(CPUS, k=n), "i"),
        number_column("common_type", rng.choices(range(10), k=n), "H"),
    ]
    names = {}
    for full, fields in FIELDS.items():
        short = full.partition(":")[2]
        for field in fields:
            # As events of one kernel have them: most share the places of their fields.
            names[short, field] = field if field in WAKE else f"{short}.{field}"
    columns += [a_column(rng, name, n) for name in dict.fromkeys(names.values())]
    events = {number: full.partition(":")[2] for number, full in enumerate(FIELDS)}
    return JoinedTable(events, names, lambda: columns)


@st.composite
def records(draw):
    rng = random.Random(draw(st.integers(0, 1 << 32)))
    sizes, is_sorted = draw(st.lists(st.integers(0, 80), min_size=1, max_size=2)), rng.random() < 0.7
    found = Records([a_table(rng, n, is_sorted=is_sorted) for n in sizes])
    found.recorded_kinds = {kind for kind in SchedKind if rng.random() < 0.7} | {SchedKind.SWITCH}
    losses = {cpu: sorted(some_times(rng, rng.randint(1, 4))) for cpu in CPUS if not rng.randrange(6)}
    return found, losses, rng.choice([MIN, 0, 100, 1000, MAX])


def columns_of(rows):
    found = vars(rows) if hasattr(rows, "__dict__") else rows._asdict()
    return {name: list(column) for name, column in found.items()}


def everything(found, losses, stop):
    """All that is computed of records."""
    times = find_times(found.times(), losses)
    gaps = {
        cpu: [Gap(start, at, 1) for start, at in zip(times[cpu].before, stops, strict=True)]
        for cpu, stops in losses.items()
    }
    rows = run_machine(found, gaps, stop)
    report = SchedReport(rows, Coverage(0, stop, gaps), [])
    utids = range(0, len(rows.threads.tid), 2)
    waits = [report.latency(cause, some) for cause in (*CAUSES, None) for some in (None, utids)]
    return {
        "times": times,
        "rows": [columns_of(part) for part in (rows.runs, rows.states, rows.spurious, rows.threads)],
        "counts": rows.counts,
        "states": (rows.names.names, rows.names.classes),
        "words": rows.words,
        "cpus": report.cpus,
        "tasks": report.tasks,
        "classes": {name: list(one.values) for name, one in report.latency_by_class(utids).items()},
        "waits": [(list(one.values), one.sum, one.count, one.quantile(0.5)) for one in waits],
        "tables": [
            table.to_dicts()
            for table in (report.sched, report.thread_state, report.spurious_sched_wakeup, report.thread)
        ],
    }


@pytest.fixture(autouse=True, scope="module")
def form():
    """Each test here runs both forms."""
    if DECODE is None:
        pytest.skip("tracepoint._decode is not built: install gcc and python3-dev")


@pytest.mark.thorough
@settings(max_examples=150, deadline=None)
@given(given=records())
def test_both_forms_find_the_same_in_any_records(given):
    found = everything(*given)
    with pytest.MonkeyPatch.context() as patch:
        without_c(patch)
        twin = everything(*given)
    for name, value in twin.items():
        assert found[name] == value, name


def sums_of(sums):
    """Sums by their keys: parts meet them in another order."""
    waits = sums.waits.by_thread(CAUSES, str), sums.waits.by_priority(str)
    return (
        sums.cpus,
        sorted(sums.states),
        list(sums._ends),
        [{key: list(own.values) for key, own in sorted(found.items())} for found in waits],
    )


@settings(max_examples=100, deadline=None)
@given(given=records())
def test_parts_add_up_to_the_whole(given):
    found, _, stop = given
    whole = SchedSums()
    rows = run_machine(found, {}, stop)
    whole.add(rows)

    def in_parts():
        sums = SchedSums()
        last = run_machine(found, {}, stop, sums.add)
        assert (last.counts, last.words, columns_of(last.threads)) == (
            rows.counts, rows.words, columns_of(rows.threads),
        )  # fmt: skip
        sums.add(last)
        return sums_of(sums)

    assert in_parts() == sums_of(whole)
    with pytest.MonkeyPatch.context() as patch:
        without_c(patch)
        assert in_parts() == sums_of(whole)


@settings(max_examples=60, deadline=None)
@given(given=records())
def test_folded_waits_are_those_of_the_whole_within_the_error(given):
    found, _, stop = given
    exact = SchedSums()
    exact.add(run_machine(found, {}, stop))

    def folded():
        sums = SchedSums()
        sums.add(run_machine(found, {}, stop, sums.add))
        assert sums.waits.is_exact == (not len(exact.waits.samples(CAUSES)))
        return sums.waits

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(waits_module, "MAX_EXACT", 0)
        by_c = folded()
        without_c(patch)
        by_twin = folded()
    for causes in (CAUSES, CAUSES[:1]):
        for utids in (None, [0, 2]):
            whole, close = (own.samples(causes, (1, 5), utids) for own in (exact.waits, by_c))
            assert (len(close), close.total, close.count) == (len(whole), whole.total, whole.count)
            for rank, value in enumerate(whole.values, 1):
                low, high = close.ranked(rank)
                assert low <= value <= high
                assert high - low <= abs(value) / (1 << PRECISION)
            twin = by_twin.samples(causes, (1, 5), utids)
            assert isinstance(twin, Distribution) or twin == close
    assert by_c.by_priority(str) == by_twin.by_priority(str)


@given(values=st.lists(st.one_of(st.integers(-5, 5), st.integers(MIN, MAX))))
def test_arrays_of_both_forms_are_the_same(values):
    def arrays():
        numbers = numbers_of(values, "q")
        small = numbers_of([value % 128 - 5 for value in values], "i")
        ordered, total = sort_numbers(values)
        n_nulls, bits = null_bits(numbers, -1)
        unused = len(bits) * 8 - len(values)
        return (
            list(ordered), total, n_nulls, int.from_bytes(bytes(bits), "little") << unused & (1 << 8 * len(bits)) - 1,
            list(count_up(len(values))), list(keep_below(small, 9)),
            list(add_lengths(count_up(len(values)), numbers_of([abs(v % 99) - 1 for v in values], "q"))),
        )  # fmt: skip

    found = arrays()
    with pytest.MonkeyPatch.context() as patch:
        without_c(patch)
        assert arrays() == found
    assert found[:2] == (sorted(values), sum(values))


def a_machine():
    return DECODE.sched_machine(True, True, True, (), (b"", b""))


def an_event(**changes):
    tid = (array("i", [1, 2]), "i", None)
    given = {"number": 1, "kind": 1, "numbers": (tid, None, None, None), "names": (None, None)} | changes
    return tuple(given.values())


HEADS = ((array("H", [1, 1]), "H", None), array("q", [5, 6]), array("i", [0, 0]))
SHORT = (b"", "i", None)
BAD_EVENTS = {
    "not an event of": an_event(kind=9),
    "of the scheduler": an_event(number=1 << 16),
    "its task": an_event(numbers=(None, None, None, None)),
    "without": an_event(kind=0),
    "a number for": an_event(numbers=(SHORT, None, None, None)),
    "an integer": an_event(numbers=((bytes(8), "f", None), None, None, None)),
    "a bit for": an_event(numbers=((bytes(8), "i", b""), None, None, None)),
    "a name for": an_event(names=((b"", b"", None), None)),
}


@pytest.mark.parametrize("message", BAD_EVENTS)
def test_a_damaged_event_is_refused(message):
    machine = a_machine()
    with pytest.raises(ValueError, match=message):
        DECODE.sched_run(machine, HEADS, (BAD_EVENTS[message],), 0)
    assert DECODE.sched_run(machine, HEADS, (an_event(),), 0) == 2


def test_wrong_arguments_are_errors():
    machine, tids = a_machine(), (array("i", [1, 2]), "i", None)
    for heads in ((HEADS[0], HEADS[1], b""), (SHORT, *HEADS[1:]), (None, *HEADS[1:])):
        with pytest.raises(ValueError, match="not"):
            DECODE.sched_run(machine, heads, (), 0)
    with pytest.raises(TypeError, match="event"):
        DECODE.sched_run(machine, HEADS, (1,), 0)
    # A value of prev_state that is not known yet, and numbers that no state has.
    switch = an_event(kind=0, numbers=(tids, None, (array("q", [7, 7]), "q", None), None))
    assert DECODE.sched_run(machine, HEADS, (switch,), 0) == 0
    for number, kind in ((0, 1), (9, 1), (2, 9)):
        with pytest.raises(ValueError, match="number of a state"):
            DECODE.sched_state(machine, 7, number, kind)
    DECODE.sched_state(machine, 7, 2, 2)
    assert DECODE.sched_run(machine, HEADS, (switch,), 0) == 2
    assert len(DECODE.sched_rows(machine, 9)[0][0]) == 16
    with pytest.raises(ValueError, match="given its rows"):
        DECODE.sched_rows(machine, 9)
    for gaps in (((0, b"", bytes(8)),), ((0, bytes(3), bytes(3)),), ((0, b"", b""), (0, b"", b""))):
        with pytest.raises(ValueError, match="losses"):
            DECODE.sched_machine(True, True, True, gaps, (b"", b""))
    with pytest.raises(ValueError, match="lengths"):
        DECODE.sched_waits(bytes(8), b"", b"", b"", b"", b"", 1)
    with pytest.raises(ValueError, match="lengths"):
        DECODE.sched_fold(bytes(4), b"", bytes(8), 7)
    with pytest.raises(ValueError, match="precision"):
        DECODE.sched_fold(b"", b"", b"", 25)
    with pytest.raises(ValueError, match="twice"):
        DECODE.times_before(b"", b"", ((0, b""), (0, b"")))
    with pytest.raises(ValueError, match="int64"):
        DECODE.null_bits(b"", 2, 0)
