"""Following what is still being written: pipes, files that grow, texts; order, losses, ends, memory."""

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from itertools import islice
from pathlib import Path

import pytest

import tracepoint as tp
from oracles import data_file
from tracefile.making import GOLDEN, content_of, layout_of, tick, tick_format
from tracepoint.errors import DecodeError
from tracepoint.filter.error import FilterError
from tracepoint.record.page import LOST_UNKNOWN
from tracepoint.record.write import PageWriter, write_pages
from tracepoint.tracefile.follow import Followed

SOURCE = Path(__file__).resolve().parents[2] / "src"
PAGE = 4096


def put_formats(folder, *, is_big_endian=False):
    path = folder / "events/demo/tick/format"
    path.parent.mkdir(parents=True)
    path.write_text(tick_format())
    content = content_of(is_big_endian, n_records=0)
    (folder / "events/header_page").write_text(content.header_page)
    (folder / "saved_cmdlines").write_text("7 seven\n")
    (folder / "trace_clock").write_text("local [mono]\n")


def cpu_file(folder, cpu):
    path = folder / f"per_cpu/cpu{cpu}/trace_pipe_raw"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def page_of(*numbers, lost=0, is_big_endian=False):
    """A page with the records `numbers`, 1 ms apart."""
    writer = PageWriter(layout_of(is_big_endian))
    if lost:
        writer.lose(lost)
    for n in numbers:
        writer.add(10**9 + 10**6 * n, tick(n, is_big_endian=is_big_endian))
    return writer.pages()


def append(path, data):
    with path.open("ab") as file:
        file.write(data)


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "tracing"
    put_formats(folder)
    return folder


def later(*steps, after=0.1):
    """Run steps in a thread, some time after each other."""

    def run():
        for step in steps:
            time.sleep(after)
            step()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def fifos(folder, n_cpus):
    for cpu in range(n_cpus):
        os.mkfifo(cpu_file(folder, cpu))
    return [cpu_file(folder, cpu) for cpu in range(n_cpus)]


@pytest.mark.parametrize("is_big_endian", [False, True])
def test_pipes_of_two_cpus_by_time_until_their_end(tmp_path, is_big_endian):
    put_formats(tmp_path, is_big_endian=is_big_endian)
    paths = fifos(tmp_path, 2)

    def write(cpu):
        with paths[cpu].open("wb") as file:
            for n in range(cpu, 60, 20):
                file.write(page_of(*range(n, n + 20, 2), is_big_endian=is_big_endian))
                file.flush()
                time.sleep(0.03)

    threads = [threading.Thread(target=write, args=(cpu,)) for cpu in range(2)]
    # On a busy machine a writer may come after the other one's records have waited for a second.
    with tp.follow(tmp_path, delay_s=30) as records:
        for thread in threads:
            thread.start()
        found = [(record["n"], record.cpu, record.comm, record.text) for record in records]
        assert found == [(n, n % 2, "seven", f"n={n} name=a") for n in range(60)]
        assert (records.n_lost, records.n_late, records.damage) == (0, 0, ())
    for thread in threads:
        thread.join()


def test_a_page_that_comes_in_pieces_and_one_that_is_cut_off(folder):
    (path,) = fifos(folder, 1)
    data = page_of(0, 1) + page_of(2)

    def write():
        with path.open("wb", buffering=0) as file:
            for piece in (data[:5], data[5:4000], data[4000:5000], data[5000:], page_of(3)[:100]):
                file.write(piece)
                time.sleep(0.05)

    thread = later(write, after=0)
    with tp.follow(path) as records:
        assert [record["n"] for record in records] == [0, 1, 2]
        (damage,) = records.damage
        assert (damage.cpu, damage.offset) == (0, 2 * PAGE)
        assert damage.reason == "100 bytes are left over after the last whole page"
    thread.join()


def test_a_folder_that_grows_with_a_cpu_that_is_silent_and_one_that_comes_later(folder):
    append(cpu_file(folder, 0), page_of(0, 1))
    append(cpu_file(folder, 1), b"")
    with tp.follow(folder, delay_s=0.3) as records:
        found = iter(records)
        assert [record["n"] for record in islice(found, 2)] == [0, 1]
        thread = later(
            lambda: append(cpu_file(folder, 0), page_of(4)), lambda: append(cpu_file(folder, 3), page_of(5))
        )
        assert [(record["n"], record.cpu) for record in islice(found, 2)] == [(4, 0), (5, 3)]
        thread.join()


def test_pages_of_another_recording_that_come_later_are_reported(folder):
    append(cpu_file(folder, 0), page_of(0, 1))

    def copy():
        (folder / "old").mkdir()
        (folder / "old/cpu0.raw").write_bytes(page_of(7))
        time.sleep(1.2)
        append(cpu_file(folder, 0), page_of(2))

    with tp.follow(folder, delay_s=0.1) as followed:
        thread = later(copy)
        assert [record["n"] for record in islice(followed, 3)] == [0, 1, 2]
        assert [damage.reason.partition(":")[0] for damage in followed.damage] == [
            f"pages of several recordings, in {folder}, {folder}/old"
        ]
    thread.join()


def test_a_cpu_without_records_is_waited_for(folder):
    append(cpu_file(folder, 0), page_of(10))
    append(cpu_file(folder, 1), b"")
    thread = later(lambda: append(cpu_file(folder, 1), page_of(3, 11)))
    with tp.follow(folder, delay_s=30) as records:
        assert [record["n"] for record in islice(records, 2)] == [3, 10]
    thread.join()


def test_both_cpus_of_old_pages_are_in_the_order_of_time(folder):
    """As much as there is, without waiting: neither has to be read to its end first."""
    for cpu in range(2):
        records = [(10**9 + 1000 * n, tick(n)) for n in range(cpu, 20000, 2)]
        append(cpu_file(folder, cpu), write_pages(records, layout_of()))
    with tp.follow(folder, delay_s=30) as records:
        found = [record["n"] for record in islice(records, 19000)]
        assert found == list(range(19000))
        assert records.n_late == 0


def test_a_record_that_comes_too_late_is_given_and_counted(folder):
    for cpu in range(2):
        append(cpu_file(folder, cpu), b"")
    append(cpu_file(folder, 0), page_of(10))
    with tp.follow(folder, delay_s=0.05) as records:
        found = iter(records)
        assert next(found)["n"] == 10
        append(cpu_file(folder, 1), page_of(3))
        assert next(found)["n"] == 3
        assert records.n_late == 1


def test_losses_are_counted_also_of_events_that_are_not_chosen(folder):
    (path,) = fifos(folder, 1)
    data = page_of(0, 1) + page_of(2, lost=5) + page_of(3, lost=7)
    thread = later(lambda: path.write_bytes(data), after=0)
    with tp.follow(folder) as records:
        chosen = records.where("n == 1").on_cpus(0).select("demo:*").of_tasks("seven")
        assert [record["n"] for record in chosen] == [1]
        assert records.n_lost == 12
    thread.join()


def test_losses_that_nothing_counted(folder):
    (path,) = fifos(folder, 1)
    thread = later(lambda: path.write_bytes(page_of(0) + page_of(1, lost=LOST_UNKNOWN)), after=0)
    with tp.follow(folder) as records:
        assert [record.lost for record in records] == [0, LOST_UNKNOWN]
        assert records.n_lost == LOST_UNKNOWN
    thread.join()


def test_damaged_pages_do_not_stop_it(folder):
    (path,) = fifos(folder, 1)
    garbage = bytes(range(256)) * 16
    thread = later(lambda: path.write_bytes(page_of(0) + garbage + page_of(1)), after=0)
    with tp.follow(folder) as records:
        found = [record["n"] for record in records if record.event == "demo:tick"]
        assert (found[0], found[-1]) == (0, 1)
        assert any(damage.offset >= PAGE for damage in records.damage)
    thread.join()


def test_what_cannot_be_followed(tmp_path):
    with pytest.raises(DecodeError, match=r"no pages to follow: per_cpu/cpu0/trace_pipe_raw"):
        tp.follow(tmp_path)
    with pytest.raises(DecodeError, match="/dev/null: not a file or a pipe"):
        tp.follow("/dev/null")
    with pytest.raises(FileNotFoundError):
        tp.follow(tmp_path / "nothing")
    with pytest.raises(DecodeError, match="pid:1: rings of a process are not followed: read them without"):
        tp.follow("pid:1")


TEXT = """# tracer: nop
#
           seven-7       [001] .....     1.000001: tick: n=1 name=a
           seven-7       [000] .....     1.000002: tick: n=2 name=b
CPU:1 [LOST 4 EVENTS]
           seven-7       [001] .....     1.000003: other: anything
 => a_caller
"""


@pytest.mark.parametrize("name", ["cut.v6.dat", "cut.v7.zstd.dat"])
def test_a_recording_that_is_complete_is_not_followed(name):
    with pytest.raises(DecodeError, match="complete: read it without following"):
        next(iter(tp.follow(GOLDEN / name)))


def test_a_second_loop_goes_on_with_the_next_record(folder):
    pipe, *_ = fifos(folder, 1)
    writer = later(lambda: append(pipe, page_of(*range(5))))
    with tp.follow(folder) as followed:
        for record in followed:
            assert record["n"] == 0
            break
        assert [record["n"] for record in followed] == [1, 2, 3, 4]
    writer.join()


def test_a_text_that_grows_with_typed_fields(folder):
    path = folder / "trace.txt"
    half = TEXT.index("name=b")
    path.write_text(TEXT[:half])
    with tp.follow(path) as records:
        found = iter(records)
        first = next(found)
        assert (first["n"], first.event, first.comm, first.cpu) == (1, "demo:tick", "seven", 1)
        append(path, TEXT[half:].encode())
        second, third = islice(found, 2)
        assert (second["n"], second["name"]) == (2, "b")
        assert third.text == "anything\n => a_caller"
        assert records.n_lost == 4


def test_names_beside_the_pages_come_before_those_of_the_folder_above(tmp_path):
    put_formats(tmp_path)
    append(cpu_file(tmp_path / "raw", 0), page_of(1))
    (tmp_path / "raw/saved_cmdlines").write_text("7 other\n")
    with tp.follow(tmp_path) as records:
        assert next(iter(records)).comm == "other"
    with tp.follow(tmp_path, formats=tmp_path) as records:
        assert next(iter(records)).comm == "seven"


@pytest.mark.parametrize("n_bytes", [1, 100, 1 << 20])
def test_the_end_of_a_text_without_a_newline_is_left_out_and_reported(folder, n_bytes):
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    whole = "  seven-7  [001] .....  10.000001: tick: n=1 name=a\n"
    writer = later(lambda: append(pipe, (whole + whole[:-2].ljust(n_bytes)).encode()))
    with tp.follow(pipe) as records:
        assert [record["n"] for record in records] == [1]
        [damage] = records.damage
    writer.join()
    assert damage.offset == len(whole)
    assert "the last line has no newline" in damage.reason


def truncate(path):
    os.truncate(path, 10)


def replace_by_another(path):
    other = path.with_suffix(".new")
    other.write_bytes(path.read_bytes() * 2)
    other.replace(path)


ENDS = {
    "truncated from": truncate,
    "replaced by another file": replace_by_another,
    "removed while": Path.unlink,
}


@pytest.mark.parametrize("reason", ENDS)
@pytest.mark.parametrize("is_text", [False, True])
def test_a_file_that_is_cut_off_or_replaced_ends_it_with_an_error(folder, reason, is_text):
    path = folder / "trace.txt" if is_text else cpu_file(folder, 0)
    append(path, TEXT.encode() if is_text else page_of(1, 2))
    with tp.follow(path) as records:
        found = iter(records)
        assert [record["n"] for record in islice(found, 2)] == [1, 2]
        ENDS[reason](path)
        with pytest.raises(DecodeError, match=f"{path.name}: {reason}"):
            list(found)


def test_what_was_read_of_a_file_that_is_cut_off_is_given(folder):
    """CPU 1 is silent, so the record of CPU 0 waits for it when the file goes away."""
    append(cpu_file(folder, 0), page_of(1))
    append(cpu_file(folder, 1), b"")
    with tp.follow(folder, delay_s=30) as records:
        thread = later(lambda: cpu_file(folder, 0).unlink())
        found = iter(records)
        assert next(found)["n"] == 1
        with pytest.raises(DecodeError, match="removed while it was followed"):
            next(found)
    thread.join()


def test_a_closed_one_says_so(folder):
    append(cpu_file(folder, 0), page_of(1))
    (folder / "trace.txt").write_text(TEXT)
    for path in (folder, cpu_file(folder, 0), folder / "trace.txt"):
        records = tp.follow(path)
        found = iter(records)
        next(found)
        records.close()
        records.close()
        for going in (found, records.records()):
            with pytest.raises(DecodeError, match="the recording is closed"):
                list(going)


def test_a_filter_waits_for_events_of_a_text_that_have_its_field(folder):
    path, other = folder / "trace.txt", "seven-7 [000] ..... 1.000003: other: anything\n"
    path.write_text(other)
    tick = "seven-7 [001] ..... 1.000004: tick: n=1 name=a\n"
    with tp.follow(path) as records:
        thread = later(
            lambda: append(path, tick.encode()), lambda: append(path, other.encode() + tick.encode())
        )
        assert [r["name"] for r in islice(records.where("n == 1"), 2)] == ["a", "a"]
        thread.join()


@pytest.mark.parametrize(
    ("filter_", "fault"), [("nosuch == 1", "Field not found"), ("n ==", "Invalid value")]
)
def test_a_filter_that_no_event_takes_is_an_error_in_the_end(folder, filter_, fault):
    (folder / "trace.txt").write_text(TEXT)
    ends = iter([False, False, True])
    with tp.follow(folder / "trace.txt") as records:
        found = records.where(filter_).records(lambda: next(ends))
        with pytest.raises(FilterError, match=fault):
            list(found)


def run_command(*words, **more):
    code = f"import sys; sys.path.insert(0, {str(SOURCE)!r}); from tracepoint.cli.main import main; sys.exit(main())"
    return subprocess.Popen(
        [sys.executable, "-c", code, "read", "--follow", *map(str, words)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more,
    )  # fmt: skip


def test_the_command_prints_lines_as_they_come_and_ends_on_an_interrupt(folder):
    append(cpu_file(folder, 0), page_of(0))
    with run_command(folder, "--delay", "0.1") as process:
        assert process.stdout.readline().endswith(b"tick: n=0 name=a\n")
        (folder / "saved_cmdlines").write_text("7 other\n")
        time.sleep(1.1)
        append(cpu_file(folder, 0), page_of(1, lost=3))
        assert process.stdout.readline() == b"CPU:0 [LOST 3 EVENTS]\n"
        assert process.stdout.readline().split() == [
            b"other-7",
            b"[000]",
            b".....",
            b"1.001000:",
            b"tick:",
            b"n=1",
            b"name=a",
        ]
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out) == (0, b"")
        assert b"3 events were lost while recording" in err


def test_the_command_with_a_pipe_on_stdin(folder):
    with run_command("-", "demo", "--where", "n > 1", "--format", "jsonl", "--strict", "--formats", folder, stdin=subprocess.PIPE) as process:  # fmt: skip
        out, err = process.communicate(page_of(1, 2, 3) + b"cut", timeout=60)
    assert [line.partition(b'"n":')[2][:1] for line in out.splitlines()] == [b"2", b"3"]
    assert process.returncode == 3
    assert b"3 bytes are left over" in err


def test_the_command_with_a_text_on_stdin():
    with run_command("-", stdin=subprocess.PIPE) as process:
        out, err = process.communicate(TEXT.encode(), timeout=60)
    # The text of the kernel, but for its heading.
    assert out.decode() == TEXT.partition("#\n")[2]
    assert process.returncode == 0
    assert b"4 events were lost" in err


def test_the_command_ends_with_1_where_nothing_is_what_was_chosen():
    with run_command("-", "--pid", "8", stdin=subprocess.PIPE) as process:
        out, err = process.communicate(TEXT.encode(), timeout=60)
    assert (process.returncode, out) == (1, b"")
    assert b"tracepoint: no record that is chosen came\n" in err


def test_the_command_without_formats(tmp_path):
    with run_command("-", stdin=subprocess.PIPE) as process:
        _, err = process.communicate(page_of(1), timeout=60)
    assert process.returncode == 2
    assert b"no formats next to standard input: name the folder" in err


@pytest.mark.oracle
def test_pages_of_a_kernel_are_those_that_are_read_at_once():
    folder = data_file("raw")
    with tp.open_trace(folder) as trace:
        expected = list(trace.buffer.records())
    with Followed(folder, delay_s=0.2) as followed:
        chunks = followed.chunks(lambda container: container.buffers[0])
        found = []
        while len(found) < len(expected):
            found += next(chunks)[1]
        assert found == expected
        assert followed.n_late == 0


N_MEGABYTES = 60
MEASURE = """
import resource, sys
import tracepoint as tp
records, n = tp.follow(sys.argv[1]), 0
first = next(iter(records)); before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for record in records.where("n == 0"):
    n += 1
print(n, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.thorough
def test_memory_stays_bounded(folder):
    """Also with a CPU that is behind, and one that has nothing."""
    paths = fifos(folder, 3)
    block = page_of(*range(60)) * 256

    def write(cpu):
        with paths[cpu].open("wb") as file:
            for _ in range(N_MEGABYTES if cpu == 0 else N_MEGABYTES // 4):
                file.write(block)
            time.sleep(0.2)

    threads = [threading.Thread(target=write, args=(cpu,)) for cpu in range(2)]
    with subprocess.Popen(
        [sys.executable, "-c", MEASURE, folder], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(SOURCE)}
    ) as process, paths[2].open("wb") as silent:  # fmt: skip
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        silent.close()
        n_records, grown_kb = map(int, process.communicate(timeout=120)[0].split())
    assert n_records > 256 * N_MEGABYTES
    assert grown_kb < 24 << 10, f"{N_MEGABYTES} MB were followed"
    assert resource.getpagesize() == PAGE
