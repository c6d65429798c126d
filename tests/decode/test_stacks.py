"""Stacks beside their events, and addresses as names."""

import re
import struct

import pytest

import tracepoint as tp
from tracefile.making import layout_of, recorded_layouts, tick, tick_format, write_folder, written
from tracepoint.decode.trace import Trace
from tracepoint.layout.format import write_format
from tracepoint.layout.process_events import OWN_BY_NAME
from tracepoint.record.layout import header_page_text
from tracepoint.record.write import PageWriter
from tracepoint.tracefile.content import BufferContent, CpuPages, TraceContent
from tracepoint.tracefile.tracedat import read_tracedat

KALLSYMS = (
    "ffffffff81000000 T _stext\nffffffff81000100 T first\nffffffff81000200 t second\nffffffff81000300 T end\n"
)
FIRST, SECOND, NOWHERE = 0xFFFFFFFF81000104, 0xFFFFFFFF81000208, 0x1000
STACK_ID, USER_ID, OTHER_ID = 4, 6, 401
USER_FORMAT = (
    "name: user_stack\nID: 6\nformat:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
    "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
    "\tfield:unsigned int tgid;\toffset:8;\tsize:4;\tsigned:0;\n"
    "\tfield:unsigned long caller[8];\toffset:16;\tsize:64;\tsigned:0;\n\n"
    'print fmt: "none"\n'
)


def stack(*addresses, pid=7, flags=0, order="<"):
    return struct.pack(
        f"{order}HBBiII{len(addresses)}Q", STACK_ID, flags, 0, pid, len(addresses), 0, *addresses
    )


def user_stack(*addresses, pid=7, order="<"):
    return struct.pack(
        f"{order}HBBiII8Q", USER_ID, 0, 0, pid, pid, 0, *addresses, *[0] * (8 - len(addresses))
    )


def other(pid=7, flags=0, order="<"):
    return struct.pack(f"{order}HBBi", OTHER_ID, flags, 0, pid)


def trace_of(*cpus, is_big_endian=False):
    """Each CPU has (time, record) or a number of lost events."""
    layout, made = layout_of(is_big_endian), []
    for number, records in enumerate(cpus):
        writer = PageWriter(layout)
        for one in records:
            if isinstance(one, int):
                writer.lose(one)
            else:
                writer.add(*one)
        made.append(CpuPages(number, (writer.pages(),)))
    formats = (
        ("demo", tick_format()),
        ("demo", tick_format().replace("name: tick\nID: 400", f"name: other\nID: {OTHER_ID}")),
        ("ftrace", write_format(OWN_BY_NAME["kernel_stack"])),
        ("ftrace", USER_FORMAT),
    )
    content = TraceContent(
        (BufferContent(tuple(made), "", "local"),),
        formats,
        header_page_text(layout),
        kallsyms=KALLSYMS,
        is_big_endian=is_big_endian,
    )
    return Trace(read_tracedat(written(content)))


@pytest.mark.parametrize("is_big_endian", [False, True])
def test_stacks_are_beside_their_events(is_big_endian):
    order = ">" if is_big_endian else "<"

    def made(n, **more):
        return tick(n, is_big_endian=is_big_endian, **more)

    first = [
        (10, made(0)),
        (20, made(2)),
        (21, stack(FIRST, SECOND, NOWHERE, order=order)),
        (22, user_stack(0x4000, 0x5000, order=order)),
        (30, made(4)),
    ]
    # At the same time as on the other CPU, with the same context.
    second = [(10, made(1)), (10, stack(SECOND, order=order)), (20, made(3))]
    with trace_of(first, second, is_big_endian=is_big_endian) as trace:
        table = trace.with_stacks("tick")
        assert table["n"].tolist() == [0, 1, 2, 3, 4]
        assert table["kernel_stack"].tolist() == [None, [SECOND], [FIRST, SECOND, NOWHERE], None, None]
        assert table["kernel_stack_symbols"].tolist() == [
            None,
            ["second"],
            ["first", "second", "0x00001000"],
            None,
            None,
        ]
        user = [0x4000, 0x5000, *[0] * 6]
        assert table["user_stack"].tolist() == [None, None, user, None, None]
        assert table.n_unattached == 0
        assert table.schema["kernel_stack_symbols"] == "+L<dictionary<i, U>>"
        rows = table.to_dicts()
        assert rows[1]["kernel_stack"] == [SECOND]
        assert rows[1]["kernel_stack_symbols"] == ["second"]


def test_what_an_interrupt_records_between_does_not_take_the_stack():
    """Also another task's stack does not: each has the context of its own event."""
    records = [
        (10, tick(0)),
        (11, tick(1, flags=8)),
        (12, stack(FIRST, flags=8)),
        (13, stack(SECOND)),
        (14, tick(2)),
        (15, tick(3, flags=8)),
        (16, stack(SECOND)),
        (17, tick(4, pid=8)),
        (18, stack(FIRST, pid=8)),
    ]
    with trace_of(records) as trace:
        found = trace.with_stacks("tick")["kernel_stack"].tolist()
        assert found == [[SECOND], [FIRST], [SECOND], None, [FIRST]]


def test_the_stack_of_another_event_is_not_taken():
    with trace_of([(10, tick(0)), (11, other()), (12, stack(FIRST)), (13, stack(SECOND))]) as trace:
        table = trace.with_stacks("tick")
        assert table["kernel_stack"].tolist() == [None]
        # The other event has one already.
        assert table.n_unattached == 1


def test_stacks_without_their_events_are_counted():
    records = [(9, stack(FIRST)), (10, tick(0)), 3, (11, stack(FIRST)), (12, tick(1)), (13, stack(SECOND))]
    with trace_of(records) as trace:
        table = trace.with_stacks("demo:tick")
        assert table["kernel_stack"].tolist() == [None, [SECOND]]
        assert table.n_unattached == 2
        assert trace.lost == {0: 3}


def test_of_the_chosen_records():
    records = [one for n in range(20) for one in ((10 * n, tick(n)), (10 * n + 1, stack(FIRST + n)))]
    with trace_of(records, records) as trace:
        chosen = trace.where("n > 15 || n == 3").on_cpus(1)
        table = chosen.with_stacks("tick")
        assert table["n"].tolist() == [3, 16, 17, 18, 19]
        assert table["kernel_stack"].tolist() == [[FIRST + n] for n in (3, 16, 17, 18, 19)]
        window = trace.between(50, 80).with_stacks("tick")
        assert window["kernel_stack"].tolist() == [[FIRST + n] for n in (5, 5, 6, 6, 7, 7)]


def test_a_stack_that_is_cut_off_is_null():
    with trace_of([(1, tick(0)), (2, stack(FIRST)[:12]), (3, b"\x04")]) as trace:
        table = trace.with_stacks("tick")
        assert table["kernel_stack"].tolist() == [None]
        assert table.n_unattached == 0


def test_names_of_any_addresses():
    with trace_of([(1, tick(0)), (2, stack(FIRST, 0x7FFFFFFF)), (3, stack())]) as trace:
        table = trace.with_symbols("kernel_stack", "caller")
        assert table["caller_symbols"].tolist() == [["first", "[FTRACE TRAMPOLINE]"], []]
        assert table.columns[-1] == "caller_symbols"
        with pytest.raises(KeyError, match="no column 'calls'"):
            trace.with_symbols("kernel_stack", "calls")
        with pytest.raises(KeyError, match="common_pid of kernel_stack is no column of addresses"):
            trace.with_symbols("kernel_stack", "common_pid").to_dicts()


def test_other_libraries_take_them():
    pyarrow, polars = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    with trace_of([(1, tick(0)), (2, stack(FIRST, SECOND)), (3, tick(1))]) as trace:
        table = trace.with_stacks("tick")
        arrow = pyarrow.table(table)
        arrow.validate(full=True)
        assert arrow["kernel_stack_symbols"].to_pylist() == [["first", "second"], None]
        assert polars.DataFrame(table)["kernel_stack_symbols"].to_list() == [["first", "second"], None]
        assert list(table.numpy("kernel_stack_symbols")) == [["first", "second"], None]


def test_names_are_those_of_the_text(tmp_path):
    """Of a kernel's own stacks."""
    found = 0
    for number, (_, made) in enumerate(sorted(recorded_layouts().items())):
        for index, recording in enumerate(made["recordings"].values()):
            write_folder(tmp_path / f"{number}-{index}", made, recording)
            with tp.open_trace(tmp_path / f"{number}-{index}") as trace:
                if "ftrace:kernel_stack" not in trace.events:
                    continue
                names = trace.with_symbols("ftrace:kernel_stack", "caller")["caller_symbols"].tolist()
                texts = [r.text for r in trace.records() if r.event == "ftrace:kernel_stack"]
                shown = [re.findall(r" => (.+)", text) for text in texts]
                assert shown == names
                found += len(names)
    assert found > 0
