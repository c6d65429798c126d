"""A long random search for recordings that make the reader do anything but read them or say why not.

TRACEPOINT_FUZZ_SECONDS is how long (20 without it), TRACEPOINT_FUZZ_SEED where it begins.
"""

import os
import random
import resource
import signal
import struct
import time
from functools import partial
from itertools import islice
from pathlib import Path

import pytest

import tracepoint as tp
from tracefile.ctfmaking import packed_metadata, write_ctf
from tracefile.making import GOLDEN, content_of, everything, written
from tracefile.test_ctf import small_trace
from tracepoint.errors import DecodeError
from tracepoint.tracefile.compression import has_zstd
from tracepoint.tracefile.text import TextWriter, facts_of
from tracepoint.tracefile.tracedat import read_tracedat

pytestmark = pytest.mark.fuzz

SECONDS = float(os.environ.get("TRACEPOINT_FUZZ_SECONDS", "20"))
MAX_CASE_SECONDS = 20
MAX_MEMORY = 1 << 30
TEMPTING = (
    0,
    1,
    4,
    7,
    0x7F,
    0xFF,
    0xFFF,
    0x1000,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
    1 << 32,
    (1 << 63) - 1,
    (1 << 64) - 1,
)


def samples():
    names = ["cut.v6.dat", *(["cut.v7.zstd.dat"] if has_zstd() else [])]
    yield from ((GOLDEN / name).read_bytes() for name in names)
    for version, compression in (
        (6, "none"),
        (7, "none"),
        (7, "zlib"),
        *([(7, "zstd")] if has_zstd() else []),
    ):
        yield written(content_of(n_records=100, instances=("i",)), version, compression)
        yield written(content_of(True, 4, n_records=100), version, compression)


def places_of_interest(data):
    """Places that hold structure rather than text: heads, options, tables, page heads."""
    step = 4096 if len(data) > 8192 else 64
    return [*range(64), *range(max(len(data) - 400, 0), len(data)), *range(0, len(data), step)]


def mutate(rng, data, places):
    raw = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8, 30))):
        if not raw:
            break
        at = rng.randrange(len(raw)) if rng.random() < 0.5 else rng.choice(places) + rng.randrange(-8, 24)
        at = min(max(at, 0), len(raw) - 1)
        match rng.randrange(7):
            case 0:
                raw[at] ^= 1 << rng.randrange(8)
            case 1:
                raw[at] = rng.randrange(256)
            case 2 | 3:
                code = rng.choice(("<H", "<I", "<Q", ">H", ">I", ">Q"))
                size = struct.calcsize(code)
                value = rng.choice((*TEMPTING, len(raw), at, rng.randrange(len(raw))))
                if at + size <= len(raw):
                    struct.pack_into(code, raw, at, value & ((1 << 8 * size) - 1))
            case 4:
                del raw[at : at + rng.choice((1, 4, 16, 4096))]
            case 5:
                piece = raw[at : at + rng.choice((8, 20, 64, 4096))]
                to = rng.randrange(len(raw))
                raw[to:to] = piece
            case 6:
                if rng.random() < 0.2:
                    del raw[at:]
    return bytes(raw)


def use(data):
    """Read everything, and the text of the first records."""
    n_records, damage = everything(data)
    trace = read_tracedat(data)
    writer = TextWriter(trace.events, facts_of(trace), is_big_endian=trace.is_big_endian)
    for buffer in trace.buffers:
        for line in writer.lines(islice(buffer.records(), 50)):
            assert line.endswith("\n")
    return n_records, damage


def too_long(signum, frame):
    raise TimeoutError(f"a case took more than {MAX_CASE_SECONDS} s")


def test_mutated_recordings(tmp_path, request):
    search([(data, use) for data in samples()], tmp_path, request)


def test_mutated_ctf(tmp_path, request):
    with tp.open_trace(GOLDEN / "cut.v6.dat") as trace:
        tp.write_ctf(trace, tmp_path / "golden")
    text, data = small_trace()
    write_ctf(tmp_path / "small", packed_metadata(text, n_bytes=512), stream=data)
    paths = [path for name in ("small", "golden") for path in sorted((tmp_path / name).iterdir())]
    search([(path.read_bytes(), partial(use_ctf, path)) for path in paths], tmp_path, request)


def use_ctf(path, data):
    """Read everything of a trace, one file of which is other bytes."""
    kept = path.read_bytes()
    path.write_bytes(data)
    try:
        with tp.open_trace(path.parent) as trace:
            for table in trace.tables().values():
                table.to_dicts()
            return trace.n_records, trace.damage
    finally:
        path.write_bytes(kept)


def search(samples, tmp_path, request):
    """Change samples for a while, and give them to what uses them: (data, use) each."""
    seed = int(os.environ.get("TRACEPOINT_FUZZ_SEED", str(time.time_ns())))
    rng = random.Random(seed)
    originals = [(data, places_of_interest(data), use) for data, use in samples]
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    # Of addresses, not of memory: libraries of tests before this one may have reserved gigabytes of them.
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MAX_MEMORY, hard))
    before = signal.signal(signal.SIGALRM, too_long)
    counts = {"cases": 0, "refused": 0, "damaged": 0, "whole": 0, "slowest_ms": 0}
    end = time.monotonic() + SECONDS
    try:
        while time.monotonic() < end:
            data, places, use = rng.choice(originals)
            case = mutate(rng, data, places)
            begin = time.monotonic()
            signal.alarm(MAX_CASE_SECONDS)
            try:
                _, damage = use(case)
            except DecodeError:
                counts["refused"] += 1
            except BaseException as error:
                kept = tmp_path / "case.dat"
                kept.write_bytes(case)
                error.add_note(f"seed {seed}, case {counts['cases']}, kept as {kept}")
                raise
            else:
                counts["damaged" if damage else "whole"] += 1
            counts["cases"] += 1
            counts["slowest_ms"] = max(counts["slowest_ms"], int(1000 * (time.monotonic() - begin)))
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    for name, count in {"seed": seed, **counts}.items():
        request.node.user_properties.append((name, count))
    assert counts["refused"] > 0
    assert counts["damaged"] > 0
