"""What calls one after another share of files: as if each call had read them itself."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tracepoint.tree import disk, headers, kept
from tracepoint.tree.headers import HeaderReader, read_header
from tracepoint.tree.kept import KeptAnswers, KeptFiles

SMALL = Path(__file__).parent / "small"
HEADER = """#define TRACE_SYSTEM demo
#include "sizes.h"
TRACE_EVENT(ping,
\tTP_PROTO(int n),
\tTP_ARGS(n),
\tTP_STRUCT__entry(__array(char, name, NAME_LEN)),
\tTP_fast_assign(__entry->name[0] = n;),
\tTP_printk("%d", __entry->name[0])
);
"""


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list that what is read from now on is added to."""
    paths: list[str] = []
    original = kept.read_if_sane
    monkeypatch.setattr(kept, "read_if_sane", lambda path: paths.append(path) or original(path))
    monkeypatch.setattr(headers, "_KEPT", KeptFiles())
    monkeypatch.setattr(headers, "_ANSWERS", KeptAnswers())
    return paths


@pytest.fixture
def header(tmp_path: Path) -> Path:
    path = tmp_path / "demo_trace.h"
    path.write_text(HEADER)
    (tmp_path / "sizes.h").write_text("#define NAME_LEN 8\n")
    return path


def trust_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take every stamp for an old one, as those of a kernel tree are."""
    monkeypatch.setattr(disk, "_RECENT_NS", -1_000_000_000_000)


def name_len(header: Path) -> int | None:
    environment = read_header(header).environment
    assert environment is not None
    return environment.constant("NAME_LEN")


def test_included_files_are_read_once(
    reads: list[str], header: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trust_all(monkeypatch)
    assert [name_len(header) for _ in range(3)] == [8, 8, 8]
    assert [Path(path).name for path in reads] == ["sizes.h"]


def test_a_file_that_changes_is_read_again(
    reads: list[str], header: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trust_all(monkeypatch)
    sizes = header.with_name("sizes.h")
    assert name_len(header) == 8
    sizes.write_text("#define NAME_LEN 16\n")
    assert name_len(header) == 16
    sizes.unlink()
    assert name_len(header) is None
    sizes.write_text("#define NAME_LEN 32\n")
    assert name_len(header) == 32
    assert len(reads) == 3


def test_a_change_within_one_tick_of_the_clock_is_seen(reads: list[str], header: Path) -> None:
    sizes = header.with_name("sizes.h")
    for value in range(20, 40):
        # The same size, and with a coarse clock the same time.
        sizes.write_text(f"#define NAME_LEN {value}\n")
        os.utime(sizes, ns=(1, 1))
        assert name_len(header) == value
    assert len(reads) == 20


def test_what_was_asked_for_longest_ago_goes_first(
    reads: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trust_all(monkeypatch)
    files = KeptFiles(most=25)
    paths = [str(tmp_path / name) for name in "abc"]
    for path in paths:
        Path(path).write_text("#define A 1")
    for path in (paths[0], paths[1], paths[0], paths[2], paths[0], paths[1]):
        assert files.read(path)
    assert [path[-1] for path in reads] == ["a", "b", "c", "b"]


def test_threads_get_whole_files(header: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trust_all(monkeypatch)
    sizes = header.with_name("sizes.h")

    def write(value: int) -> None:
        fresh = sizes.with_name(f"fresh{value}")
        fresh.write_text(f"#define NAME_LEN {value}\n")
        fresh.replace(sizes)

    with ThreadPoolExecutor(4) as pool:
        read = [pool.submit(name_len, header) for _ in range(40)]
        written = [pool.submit(write, value) for value in range(100, 120)]
        read += [pool.submit(name_len, header) for _ in range(40)]
        assert {future.result() for future in read} <= {8, *range(100, 120)}
        assert all(future.result() is None for future in written)
    assert name_len(header) in range(100, 120)


def test_it_says_the_same_as_a_reader_of_its_own(
    reads: list[str], header: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trust_all(monkeypatch)
    for _ in range(2):
        for path in (header, *sorted((SMALL / "include/trace/events").glob("*.h"))):
            own, shared = HeaderReader().read(path), read_header(path)
            assert own == shared
            assert own.environment is not None
            assert shared.environment is not None
            assert [f.path for f in own.environment.closure.files] == [
                f.path for f in shared.environment.closure.files
            ]
    assert len(reads) == len(set(reads))
    assert reads
