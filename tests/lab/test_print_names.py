"""What a line takes from elsewhere than its record: names that nobody defines, structs, libata's words."""

from __future__ import annotations

import pytest

from tracepoint.lab.simulate.event import simulate_event
from tracepoint.lab.simulate.simulation import Simulation
from tracepoint.model.read import read_header_text
from tracepoint.source.text import SourceFile


def simulate(fields: str, assign: str, printk: str, before: str = "", **given: str) -> Simulation:
    header = read_header_text(
        f"#define TRACE_SYSTEM demo\n{before}\nTRACE_EVENT(tick, TP_PROTO(unsigned long n, struct fid *f), "
        f"TP_ARGS(n, f), TP_STRUCT__entry({fields}), TP_fast_assign({assign}), TP_printk({printk}));\n"
    )
    return simulate_event(header["tick"], environment=header.environment, set_values=given)


SYMBOLS = '"%s", __print_symbolic(__entry->n, {0, "zero"}, {DEMO_RED, "red"}, {DEMO_BLUE, "blue"})'


def test_constants_that_no_header_defines_are_inputs_with_samples() -> None:
    found = simulate("__field(int, n)", "__entry->n = n;", SYMBOLS, n="2")
    assert found.is_complete
    assert found.lines[0].endswith("tick: blue")
    values = {input_.text: input_.value for input_ in found.inputs}
    assert {values["DEMO_RED"], values["DEMO_BLUE"]} == {1, 2}
    assert any("DEMO_BLUE is a constant that no available header defines" in note for note in found.notes)


def test_such_constants_can_be_given() -> None:
    found = simulate("__field(int, n)", "__entry->n = n;", SYMBOLS, n="40", DEMO_RED="40")
    assert found.lines[0].endswith("tick: red")
    assert not any("DEMO_RED is a constant" in note for note in found.notes)


def test_a_constant_that_the_whole_source_lacks_is_not_made_up() -> None:
    class Files:
        def load(self, name: str, *, is_quoted: bool, includer: str) -> SourceFile | None:
            return SourceFile(name, "") if name == "demo.c" else None

    header = read_header_text(
        "#define TRACE_SYSTEM demo\nTRACE_EVENT(tick, TP_PROTO(int n), TP_ARGS(n), TP_STRUCT__entry(__field(int, n)),"
        f"TP_fast_assign(__entry->n = n;), TP_printk({SYMBOLS}));\n",
        loader=Files(),
        extra_includes=[("demo.c", True, "demo.c")],
    )
    found = simulate_event(header["tick"], environment=header.environment, set_values={"n": "2"})
    assert not found.is_complete
    assert "DEMO_RED" in found.reason


def test_jiffies_is_an_input_that_is_named() -> None:
    found = simulate(
        "__field(unsigned long, n)",
        "__entry->n = n;",
        '"age=%lu", (jiffies - __entry->n) / HZ',
        n="1000",
        jiffies="2000",
    )
    assert found.is_complete
    assert found.lines[0].endswith("age=4")
    assert any(note.startswith("jiffies is taken as 2000") for note in found.notes)
    sample = simulate("__field(unsigned long, n)", "__entry->n = n;", '"%lu", jiffies', n="1")
    assert sample.is_complete


def test_members_of_a_struct_that_the_header_defines_are_shown() -> None:
    found = simulate(
        "__field_struct(struct fid, fid)",
        "__entry->fid = *f;",
        '"%llx:%u:%d", __entry->fid.vid, __entry->fid.part.unique, __entry->fid.level',
        "typedef u64 vid_t;\nstruct fid { vid_t vid; struct { u8 pad; u16 unique; } part; s8 level; };",
        **{"*f": "hex:0807060504030201" + "00ff3412" + "fe000000"},
    )
    assert found.is_complete, found.reason
    assert found.lines[0].endswith("102030405060708:4660:-2")


def test_a_pointer_to_a_page_table_entry_is_a_pointer() -> None:
    found = simulate(
        "__field(pte_t *, ptep)", "__entry->ptep = (void *)n;", '"ptep %p", __entry->ptep', n="0x1000"
    )
    assert found.is_complete, found.reason


TFLAGS = "enum { ATA_TFLAG_LBA48 = 1, ATA_TFLAG_ISADDR = 2, ATA_TFLAG_DEVICE = 4, ATA_TFLAG_WRITE = 8,\n"
TFLAGS += "ATA_TFLAG_LBA = 16, ATA_TFLAG_FUA = 32, ATA_TFLAG_POLLING = 64 };\n"
QFLAGS = (
    "enum { ATA_QCFLAG_EH = 2, "
    + ", ".join(
        f"ATA_QCFLAG_{name} = 1 << {bit}"
        for bit, name in enumerate(
            (
                "ACTIVE",
                "DMAMAP",
                "IO",
                "RESULT_TF",
                "CLEAR_EXCL",
                "QUIET",
                "RETRY",
                "SENSE_VALID",
                "EH_SCHEDULED",
            ),
            4,
        )
    )
    + " };\n"
)


@pytest.mark.parametrize(
    ("function", "value", "enums", "text"),
    [
        ("tf_flags", "0x4c", TFLAGS, "4c{ DEV WRITE POLL }"),
        ("tf_flags", "0", TFLAGS, "0"),
        ("host_stat", "6", "enum { ATA_DMA_ACTIVE = 1, ATA_DMA_ERR = 2, ATA_DMA_INTR = 4 };", "{ INTR ERR }"),
        ("qc_flags", "0x12", QFLAGS, "12{ ACTIVE FAILED }"),
    ],
)
def test_words_of_libata(function: str, value: str, enums: str, text: str) -> None:
    found = simulate(
        "__field(int, n)",
        "__entry->n = n;",
        f'"%s", libata_trace_parse_{function}(p, __entry->n)',
        enums,
        n=value,
    )
    assert found.is_complete, found.reason
    assert found.lines[0].endswith(f"tick: {text}")
