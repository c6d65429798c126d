"""Events fired in this process: inputs, record, trace line."""

import re
from pathlib import Path

import pytest

from tracepoint.errors import LayoutError, SourceError
from tracepoint.lab.simulate.event import simulate_event
from tracepoint.lab.simulate.inputs import GivenValueError
from tracepoint.lab.simulate.simulation import show_value
from tracepoint.layout.abi import Abi
from tracepoint.layout.format import EventFormat, FieldFormat
from tracepoint.model.read import read_header_text
from tracepoint.tree.headers import HeaderReader, read_header

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def read(struct, assign, printk, *, proto="struct foo *p, int n", head="", macro="TRACE_EVENT", condition=""):
    args = ", ".join(part.split()[-1].lstrip("*") for part in proto.split(","))
    header = read_header_text(
        f"#define TRACE_SYSTEM demo\n{head}\n{macro}(one, TP_PROTO({proto}), TP_ARGS({args}), {condition}"
        f"TP_STRUCT__entry({struct}), TP_fast_assign({assign}), TP_printk({printk}));"
    )
    return header["one"], header.environment


def body(simulation, index=0):
    return simulation.lines[index].split(": ", 2)[2]


@pytest.fixture(scope="module")
def reader():
    return HeaderReader()


@pytest.mark.parametrize("name", ["swap", "traps", "sched_switch", "block_class", "every_field"])
def test_examples_simulate_completely(reader, name):
    header = reader.read(EXAMPLES / f"{name}.h")
    assert header.events
    assert header.diagnostics == ()
    for event in header.events:
        for abi in Abi:
            simulation = simulate_event(event, abi=abi, environment=header.environment, count=2)
            assert simulation.is_complete, (event.name, abi, simulation.reason)
            assert len(simulation.lines) == 2
            assert not any("not assigned" in note for note in simulation.notes)


def test_sched_switch_with_given_values(reader):
    header = reader.read(EXAMPLES / "sched_switch.h")
    simulation = simulate_event(
        header["sched_switch"],
        set_values={
            "prev->comm": '"bash"',
            "prev -> pid": "7",
            "prev->prio": "120",
            "prev->__state": "1",
            "preempt": "false",
            "next->comm": "swapper/0",
            "next->pid": "0",
            "next->prio": "0x78",
        },
    )
    assert body(simulation) == (
        "prev_comm=bash prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120"
    )
    assert all(input_.is_given for input_ in simulation.inputs)
    record = simulation.records[0]
    assert len(record) == simulation.layout.size_bytes == 64
    assert record[8:24] == b"bash".ljust(16, b"\0")
    assert record[24:28] == b"\7\0\0\0"


def test_the_line_begins_as_the_kernel_begins_it(reader):
    header = reader.read(EXAMPLES / "swap.h")
    (line,) = simulate_event(header["mm_page_swap_out"]).lines
    assert re.fullmatch(
        r" {8}worker-1-\d{4}    \[00\d\] \.{5}   100\.\d{6}: mm_page_swap_out: pfn=0x[0-9a-f]+ ret=0", line
    )


def test_current_is_the_task_of_the_line():
    event, _ = read("__array(char, c, 16)", "memcpy(__entry->c, current->comm, 16);", '"c=%s", __entry->c')
    simulation = simulate_event(event, set_values={"current->comm": "nginx"})
    assert simulation.lines[0].lstrip().startswith("nginx-")
    assert body(simulation) == "c=nginx"


def test_samples_are_the_same_every_time_and_vary_with_count(reader):
    header = reader.read(EXAMPLES / "block_class.h")
    first = simulate_event(header["request_queued"], count=3)
    assert first.lines == simulate_event(header["request_queued"], count=3).lines
    assert len(set(first.records)) == 3
    assert len(first.inputs[0].values) == 3


def test_an_unknown_input_is_an_error_with_the_nearest_names():
    event, _ = read("__field(int, a)", "__entry->a = p->count;", '"%d", __entry->a')
    with pytest.raises(GivenValueError, match=r"p->cuont is not an input .* did you mean p->count\?"):
        simulate_event(event, set_values={"p->cuont": "1"})
    with pytest.raises(GivenValueError, match="its inputs are: p->count"):
        simulate_event(event, set_values={"zzzzzz": "1"})


def test_a_value_that_does_not_fit_is_stored_as_c_does_and_told():
    event, _ = read("__field(u8, a)", "__entry->a = p->x;", '"%u", __entry->a')
    simulation = simulate_event(event, set_values={"p->x": "-1"})
    assert body(simulation) == "255"
    assert "p->x = -1 does not fit: 255 is stored in a" in simulation.notes


def test_lists_are_taken_by_element_and_as_a_whole():
    event, _ = read(
        "__dynamic_array(u16, l, n) __field(int, first)",
        "memcpy(__get_dynamic_array(l), p->list, n * 2); __entry->first = p->list[1];",
        '"%s %d", __print_array(__get_dynamic_array(l), __get_dynamic_array_len(l) / 2, 2), __entry->first',
    )
    simulation = simulate_event(event, set_values={"p->list": "[1, 2, 0x30]", "n": "3"})
    assert body(simulation) == "{0x1,0x2,0x30} 2"


def test_print_tables_choose_the_samples():
    event, _ = read(
        "__field(int, kind) __field(u32, flags)",
        "__entry->kind = p->kind; __entry->flags = p->flags;",
        '"%s %s", __print_symbolic(__entry->kind, { 70, "A" }, { 71, "B" }),'
        ' __print_flags(__entry->flags, "|", { 0x40, "X" }, { 0x80, "Y" })',
    )
    simulation = simulate_event(event, count=6)
    assert {body(simulation, i) for i in range(6)} <= {f"{a} {b}" for a in "AB" for b in "XY"}


def test_a_sample_makes_the_condition_true_and_a_given_value_may_not():
    event, _ = read(
        "__field(int, a)", "__entry->a = n;", '"%d", __entry->a', macro="TRACE_EVENT_CONDITION",
        condition="TP_CONDITION(n == 12345), ",
    )  # fmt: skip
    assert body(simulate_event(event)) == "12345"
    silent = simulate_event(event, set_values={"n": "3"})
    assert silent.lines == ()
    assert "the event does not fire" in silent.notes[0]


def test_what_cannot_be_followed_makes_it_incomplete():
    event, _ = read("__field(int, a)", "goto out; __entry->a = 1;", '"%d", __entry->a')
    simulation = simulate_event(event)
    assert not simulation.is_complete
    assert "goto" in simulation.reason
    assert simulation.unfollowed[0].text == "goto out;"
    assert simulation.unfollowed[0].span is not None


def test_unassigned_fields_are_noted():
    event, _ = read("__field(int, a) __field(int, b)", "__entry->a = 1;", '"%d", __entry->b')
    assert any(note.startswith("b is not assigned") for note in simulate_event(event).notes)


def test_strings_behind_pointers_are_shown():
    event, _ = read("__field(const char *, a)", '__entry->a = n ? "yes" : "no";', '"%s", __entry->a')
    assert body(simulate_event(event, set_values={"n": "1"})) == "yes"


def test_constants_of_the_header_count():
    event, environment = read(
        "__field(int, a)", "__entry->a = LIMIT + n;", '"%d", __entry->a', head="#define LIMIT (2 * 4)"
    )
    simulation = simulate_event(event, environment=environment, set_values={"n": "LIMIT"})
    assert body(simulation) == "16"


def test_an_unknown_constant_is_told():
    event, _ = read("__field(int, a)", "__entry->a = SOME_LIMIT;", '"%d", __entry->a')
    assert any(note.startswith("SOME_LIMIT is a constant") for note in simulate_event(event).notes)


def test_rows_cover_the_record_without_gaps():
    event, _ = read("__field(u8, a) __field(u64, b) __string(s, p->name)", "__assign_str(s, p->name);", '"x"')
    (shot,) = simulate_event(event).shots
    at = 0
    for row in shot.rows:
        assert row.offset == at
        assert row.data == shot.record[at : at + row.size]
        at += row.size
    assert at == len(shot.record)
    assert [row.name for row in shot.rows if row.is_data] == ["s"]
    assert [row.name for row in shot.rows[4:7]] == ["a", "", "b"]


def test_a_given_format_is_used():
    event, _ = read("__field(int, a)", "__entry->a = n;", '"%d", __entry->a')
    computed = simulate_event(event).layout
    moved = EventFormat(
        "demo", "one", (*computed.common_fields, FieldFormat("a", "int", 16, 4, is_signed=True)),
        computed.print_fmt, id=77, size_bytes=20,
    )  # fmt: skip
    record = simulate_event(event, format=moved, set_values={"n": "5"}).records[0]
    assert record[:2] == b"\x4d\0"
    assert record[16:] == b"\5\0\0\0"


def test_big_endian_and_32_bit_records():
    event, _ = read("__field(unsigned long, a)", "__entry->a = p->x;", '"%lx", __entry->a')
    big = simulate_event(event, abi=Abi.S390X, set_values={"p->x": "0x0102030405060708"})
    assert big.records[0][8:] == bytes(range(1, 9))
    small = simulate_event(event, abi=Abi.I386, set_values={"p->x": "0x0102030405060708"})
    assert small.records[0][8:] == b"\x08\x07\x06\x05"
    assert body(small) == "5060708"


def test_events_without_a_record_are_refused():
    event, _ = read("__field(int, a)", "", '"x"', macro="TRACE_EVENT_NOP")
    with pytest.raises(LayoutError, match="NOP"):
        simulate_event(event)


def test_damaged_assignments_are_source_errors():
    event, _ = read("__field(int, a)", "if (n)", '"x"')
    with pytest.raises(SourceError):
        simulate_event(event)


@pytest.mark.parametrize(
    ("value", "ctype", "shown"),
    [
        (7, "int", "7"),
        (0, "void *", "0"),
        (4096, "struct page *", "0x1000"),
        ('a"b', "", '"a\\"b"'),
        ([1], "", "[1]"),
    ],
)
def test_values_are_shown_as_they_can_be_given(value, ctype, shown):
    assert show_value(value, ctype) == shown


def test_a_simulation_prints_itself_and_has_a_short_repr():
    header = read_header(EXAMPLES / "swap.h")
    done = simulate_event(header["mm_page_swap_in"])
    assert str(done).startswith("\nformat\n  name: mm_page_swap_in\n")
    assert "\ntrace\n" in str(done)
    assert repr(done) == "<Simulation kmem:mm_page_swap_in, 1 fired>"
    assert done._repr_html_().startswith("<pre>\nformat\n")
