"""Formats and records with fields of every shape, in any byte order."""

import random
import struct

from tracepoint.layout.format import EventFormat, FieldFormat

COMMON = (
    FieldFormat("common_type", "unsigned short", 0, 2, False),
    FieldFormat("common_flags", "unsigned char", 2, 1, False),
    FieldFormat("common_preempt_count", "unsigned char", 3, 1, False),
    FieldFormat("common_pid", "int", 4, 4, True),
)
OWN = (
    FieldFormat("n8", "s8", 8, 1, True),
    FieldFormat("u8", "u8", 9, 1, False),
    FieldFormat("n16", "s16", 10, 2, True),
    FieldFormat("n32", "u32", 12, 4, False),
    FieldFormat("n64", "s64", 16, 8, True),
    FieldFormat("real", "double", 24, 8, False),
    FieldFormat("comm", "char[16]", 32, 16, True),
    FieldFormat("name", "__data_loc char[]", 48, 4, True),
    FieldFormat("path", "__rel_loc char[]", 52, 4, True),
    FieldFormat("list", "__data_loc u32[]", 56, 4, False),
    FieldFormat("words", "u16[4]", 60, 8, False),
    FieldFormat("blob", "struct in6_addr", 68, 16, False),
    FieldFormat("mask", "__data_loc unsigned long[]", 84, 4, False),
    FieldFormat("cpus", "__rel_loc cpumask_t", 88, 4, False),
    FieldFormat("rest", "char[]", 92, 0, True),
)


def format_of(number=17, is_big_endian=False):
    return EventFormat(
        "demo", f"event{number}", (*COMMON, *OWN), '"%s", __get_bitmask(mask)', number, 4, 0, is_big_endian
    )


def record_of(rng: random.Random, number=17, is_big_endian=False):
    """One record that is right, but for what a random cut leaves out."""
    order = ">" if is_big_endian else "<"
    name = rng.choice([b"a", b"", b"\xff\xfe", b"worker/%d" % rng.randrange(6)]) + b"\0"
    numbers = struct.pack(
        f"{order}{n}I" if (n := rng.randrange(4)) else "", *(rng.randrange(1 << 32) for _ in range(n))
    )
    bits = struct.pack(
        f"{order}{n}Q" if (n := rng.randrange(3)) else "", *(rng.getrandbits(64) for _ in range(n))
    )
    at = 96
    words = [len(name) << 16 | at, len(name) << 16 | at - 56, len(numbers) << 16 | at + len(name)]
    masks = len(bits) << 16 | at + len(name) + len(numbers)
    record = struct.pack(order + "HBBi", number, 1, 2, rng.randrange(99))
    record += struct.pack(order + "bBhIqd", -5, 200, -300, 1 << 31, -(1 << 40), rng.random())
    record += rng.choice([b"swapper/0", b"sh", b"\xe9t\xe9"]).ljust(16, b"\0")
    record += (
        struct.pack(order + "3I4H", *words, 1, 2, 3, 0xFFFF)
        + bytes(range(16))
        + struct.pack(order + "2I", masks, masks - 92)
        + b"tail"
    )
    record = record.ljust(at, b"\0") + name + numbers + bits
    return record if rng.random() < 0.8 else record[: rng.randrange(len(record) + 1)]
