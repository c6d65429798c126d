"""SCSI commands as drivers/scsi/scsi_trace.c shows them; a guest's own lines are in tests/guest."""

import pytest

from printk.making import line, rendered

FMT = '"%s", scsi_trace_parse_cdb(p, __get_dynamic_array(cmnd), REC->n)'
ADDRESS_16 = "00 00 00 01 00 00 00 02"
TAIL_32 = f"{ADDRESS_16} 00 00 00 07 00 00 00 00 00 00 00 20"


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("12 00 00 00 24 00", "-"),
        ("08 e1 02 03 00 00", "lba=66051 txlen=256"),
        ("0a 1f ff ff 05 00", "lba=2097151 txlen=5"),
        ("28 20 00 00 08 00 00 00 10 00", "lba=2048 txlen=16 protect=1"),
        ("41 08 00 00 08 00 00 00 10 00", "lba=2048 txlen=16 protect=0 unmap=1"),
        ("a8 00 00 00 08 00 00 01 00 00 00 00", "lba=2048 txlen=65536 protect=0"),
        (f"8a 60 {ADDRESS_16} 00 00 00 08 00 00", "lba=4294967298 txlen=8 protect=3"),
        (f"93 08 {ADDRESS_16} 00 00 00 08 00 00", "lba=4294967298 txlen=8 protect=0 unmap=1"),
        ("42 00 00 00 00 00 00 00 18 00", "regions=1"),
        ("42 00 00 00 00 00 00 00 00 00", "regions=268435455"),
        (f"9e 10 {ADDRESS_16} 00 00 00 20 00 00", "READ_CAPACITY_16 lba=4294967298 alloc_len=32"),
        (f"9e 11 {ADDRESS_16} 00 00 00 20 00 00", "UNKNOWN"),
        ("a3 0c 01 12 00 00 00 00 02 00 00 00", "REPORT_SUPPORTED_OPERATION_CODES alloc_len=512"),
        ("a4 0f 00 00 00 00 00 00 00 0c 00 00", "SET_TIMESTAMP alloc_len=12"),
        (f"94 03 {ADDRESS_16} 00 00 00 00 01 00", "OPEN_ZONE zone=4294967298 all=1"),
        (
            f"95 00 {ADDRESS_16} 00 00 10 00 bf 00",
            "REPORT_ZONES zone=4294967298 alloc_len=4096 options=63 partial=1",
        ),
        (
            f"7f 00 00 00 00 00 00 18 00 09 20 00 {TAIL_32}",
            "READ_32 lba=4294967298 txlen=32 protect=1 ei_lbrt=7",
        ),
        (
            f"7f 00 00 00 00 00 00 18 00 0d 28 00 {TAIL_32}",
            "WRITE_SAME_32 lba=4294967298 txlen=32 protect=1 ei_lbrt=7 unmap=1",
        ),
        (f"7f 00 00 00 00 00 00 18 00 0c 28 00 {TAIL_32}", "-"),
    ],
)
def test_commands(command, text):
    data = bytes.fromhex(command)
    fields = ("unsigned int", "n", len(data)), ("__data_loc u8[]", "cmnd", data)
    assert line(FMT, *fields) == line(FMT, *fields, big=True) == text


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (f"9c 00 {ADDRESS_16} 00 00 00 08 00 00", "WRITE_ATOMIC_16"),
        ("28 20 00 00 08 00", "cut off"),
        ("", "cut off"),
    ],
)
def test_what_cannot_be_known_is_shown_raw(command, reason):
    data = bytes.fromhex(command)
    result = rendered(FMT, ("unsigned int", "n", len(data)), ("__data_loc u8[]", "cmnd", data))
    assert not result.is_exact
    assert reason in result.notes[0]
