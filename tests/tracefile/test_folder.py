"""Folders of `trace_pipe_raw`: names of files, formats beside, byte orders, what is missing."""

from __future__ import annotations

import gzip
import io
import re
import tarfile

import pytest

import tracepoint as tp
from oracles import data_file
from tracefile.making import content_of
from tracepoint.errors import DecodeError
from tracepoint.record.page import LOST_UNKNOWN
from tracepoint.tracefile.head import MAGIC
from tracepoint.tracefile.write import pack_kallsyms


def put(folder, name, data):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)


def pages_of(content, name=""):
    buffer = next(buffer for buffer in content.buffers if buffer.name == name)
    return {cpu.cpu: b"".join(bytes(block) for block in cpu.blocks) for cpu in buffer.cpus}


def tar_of(formats):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for system, text in formats:
            name = text.split("\n", 1)[0].removeprefix("name: ")
            member = tarfile.TarInfo(f"formats/events/{system}/{name}/format")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return file.getvalue()


def put_formats(folder, content):
    for system, text in content.formats:
        put(folder, f"events/{system}/{text.split(chr(10), 1)[0].removeprefix('name: ')}/format", text)


@pytest.mark.parametrize("is_big_endian", [False, True])
@pytest.mark.parametrize("name", ["per_cpu/cpu{}/trace_pipe_raw", "cpu{}.pipe_raw", "trace.dat.cpu{}"])
def test_pages_with_formats_next_to_them(tmp_path, name, is_big_endian):
    content = content_of(is_big_endian, n_records=40)
    for cpu, data in pages_of(content).items():
        put(tmp_path, name.format(cpu), data)
    put_formats(tmp_path, content)
    put(tmp_path, "events/header_page", content.header_page)
    put(tmp_path, "saved_cmdlines", "7 seven\n")
    put(tmp_path, "trace_clock", "local [mono]\n")
    with tp.open_trace(tmp_path) as trace:
        assert trace["tick"]["n"].tolist() == list(range(40))
        assert (trace.clock, trace.damage, trace.file.saved_cmdlines) == ("mono", (), "7 seven\n")
        assert trace.file.is_big_endian == is_big_endian


@pytest.mark.parametrize(
    ("name", "damage", "told"),
    [
        ("zlib", lambda data: data, ""),
        ("zlib", lambda data: data[:-9], "kallsyms.section.zlib: a section of"),
        (
            "zlib",
            lambda data: data[:8] + b"?" + data[9:],
            "kallsyms.section.zlib: compressed data is damaged",
        ),
        ("zlib", lambda _: b"", "kallsyms.section.zlib: a number of 4 bytes"),
        (
            "zlib",
            lambda data: data[:4] + b"\xff\xff\xff\xff" + data[8:],
            "a section that grows to 4294967295",
        ),
        ("lz4", lambda data: data, "kallsyms.section.lz4: compressed with 'lz4', which is not"),
    ],
)
def test_kallsyms_as_a_recording_that_was_killed_leaves_them(tmp_path, name, damage, told):
    content, kallsyms = content_of(n_records=5), "ffffffff81000000 T _text\n"
    for cpu, data in pages_of(content).items():
        put(tmp_path, f"cpu{cpu}", data)
    put_formats(tmp_path, content)
    section = pack_kallsyms(kallsyms, "zlib", is_big_endian=False)
    put(tmp_path, f"kallsyms.section.{name}", damage(section))
    with tp.open_trace(tmp_path) as trace:
        assert len(trace["tick"]) == 5
        assert trace.file.kallsyms == ("" if told else kallsyms)
        assert len(trace.damage) == bool(told)
        assert told in "".join(map(str, trace.damage))


def test_instances_compressed_files_and_a_tar_in_the_folder_above(tmp_path):
    content = content_of(n_records=20, instances=("other",))
    for name, place in (("", ""), ("other", "instances/other/")):
        for cpu, data in pages_of(content, name).items():
            put(tmp_path, f"copy/{place}per_cpu/cpu{cpu}/trace_pipe_raw.gz", gzip.compress(data))
    put(tmp_path, "formats-6.1.tar.gz", gzip.compress(tar_of(content.formats)))
    with tp.open_trace(tmp_path / "copy", instance="other") as trace:
        assert trace["demo:tick"]["n"].tolist() == list(range(20))
        assert trace.instances == ("other",)
        again = trace.file.content()
        assert [buffer.name for buffer in again.buffers] == ["", "other"]


PAGES = ["raw/cpu{}.pipe_raw", "raw/cpu{}/trace_pipe_raw", "raw/per_cpu/cpu{}/trace_pipe_raw"]


@pytest.mark.parametrize("name", PAGES)
def test_texts_beside_pages_in_a_subfolder_come_first(tmp_path, name):
    content = content_of(n_records=40)
    for cpu, data in pages_of(content).items():
        put(tmp_path, name.format(cpu), data)
    put_formats(tmp_path, content)
    put(tmp_path, "raw/saved_cmdlines", "7 seven\n")
    put(tmp_path, "raw/trace_clock", "local [mono]\n")
    put(tmp_path, "saved_cmdlines", "7 of another recording\n")
    put(tmp_path, "trace_clock", "[local] mono\n")
    put(tmp_path, "trace_options", "verbose\n")
    put(tmp_path, "kallsyms", "1000 t one\n")
    with tp.open_trace(tmp_path) as trace, tp.open_trace(tmp_path / "raw") as only:
        assert (trace.clock, trace.file.saved_cmdlines) == ("mono", "7 seven\n")
        assert trace.file.kallsyms == "1000 t one\n"
        assert trace.file.options == only.file.options == ()
        assert trace["tick"]["n"].tolist() == list(range(40))
        assert [damage.reason for damage in trace.damage] == [
            f"{tmp_path}/{text} differs from {tmp_path}/raw/{text}, which was read"
            for text in ("saved_cmdlines", "trace_clock")
        ]
        assert only.damage == ()


def test_texts_that_may_be_of_another_recording_are_reported(tmp_path, monkeypatch):
    content = content_of(n_records=40)
    for cpu, data in pages_of(content).items():
        put(tmp_path, f"copy/cpu{cpu}.pipe_raw", data)
    put_formats(tmp_path, content)
    put(tmp_path, "saved_cmdlines", "7 seven\n")
    put(tmp_path, "trace_clock", "local [mono]\n")
    (tmp_path / "copy/empty").mkdir()
    for folder in (tmp_path, tmp_path / "copy", ".", ".."):
        monkeypatch.chdir(tmp_path / ("copy/empty" if folder == ".." else "copy"))
        with tp.open_trace(folder) as trace:
            assert (trace.clock, trace.file.saved_cmdlines, len(trace["tick"])) == ("mono", "7 seven\n", 40)
            assert [damage.reason for damage in trace.damage] == [
                f"{tmp_path}/{text} is not beside the pages: it may be of another recording"
                for text in ("saved_cmdlines", "trace_clock")
            ]


def test_an_instance_can_have_a_clock_of_its_own(tmp_path):
    content = content_of(n_records=20, instances=("one", "two"))
    for name, place in (("", ""), ("one", "instances/one/"), ("two", "instances/two/")):
        for cpu, data in pages_of(content, name).items():
            put(tmp_path, f"{place}per_cpu/cpu{cpu}/trace_pipe_raw", data)
    put_formats(tmp_path, content)
    put(tmp_path, "trace_clock", "local [mono]\n")
    put(tmp_path, "instances/one/trace_clock", "[boot] mono\n")
    with tp.open_trace(tmp_path) as trace:
        assert [(b.name, b.clock) for b in trace.file.buffers] == [
            ("", "mono"),
            ("one", "boot"),
            ("two", "mono"),
        ]
        assert trace.damage == ()


SEVERAL = {
    "sub-folders with a CPU each": (["a/cpu0.pipe_raw", "b/cpu1.pipe_raw"], "a, {0}/b: open one of them"),
    "sub-folders with one CPU": (
        ["a/per_cpu/cpu0/trace_pipe_raw", "b/cpu0/trace_pipe_raw"],
        "a, {0}/b: open",
    ),
    "flat, and beside it as in tracefs": (
        ["cpu0.pipe_raw", "per_cpu/cpu0/trace_pipe_raw"],
        ", {0}/per_cpu: open one of them; for {0} itself move the others out of it",
    ),
    "in it and in a sub-folder": (["cpu0.raw", "old/cpu0.raw"], ", {0}/old: open one of them; for {0}"),
    "instances": (
        ["one/instances/i/per_cpu/cpu0/trace_pipe_raw", "two/instances/i/per_cpu/cpu1/trace_pipe_raw"],
        "one, {0}/two: open",
    ),
    "names": (["a.dat.cpu0", "b.dat.cpu1"], "a.dat.cpu*, {0}/b.dat.cpu*: open"),
}


@pytest.mark.parametrize("case", SEVERAL)
def test_pages_of_several_recordings_are_refused(tmp_path, case):
    names, places = SEVERAL[case]
    content = content_of(n_records=40)
    for name in names:
        put(tmp_path, name, pages_of(content)[0])
    put_formats(tmp_path, content)
    words = "pages of several recordings, in {0}" + ("" if places.startswith(",") else "/") + places
    with pytest.raises(DecodeError, match=re.escape(words.format(tmp_path))):
        tp.open_trace(tmp_path)
    with pytest.raises(DecodeError, match="pages of several recordings"):
        tp.follow(tmp_path)


def test_two_files_of_one_cpu_are_refused(tmp_path):
    put(tmp_path, "raw/cpu0.pipe_raw", b"x")
    put(tmp_path, "raw/cpu0.pipe_raw.gz", b"x")
    with pytest.raises(DecodeError, match=r"raw: cpu0\.pipe_raw and cpu0\.pipe_raw\.gz are both of CPU 0"):
        tp.open_trace(tmp_path)


def test_instances_of_a_copy_in_a_subfolder(tmp_path):
    content = content_of(n_records=20, instances=("other",))
    for name, place in (("", ""), ("other", "instances/other/")):
        for cpu, data in pages_of(content, name).items():
            put(tmp_path, f"copy/{place}per_cpu/cpu{cpu}/trace_pipe_raw", data)
    put_formats(tmp_path, content)
    with tp.open_trace(tmp_path) as trace:
        assert [buffer.name for buffer in trace.file.buffers] == ["", "other"]
        assert trace["tick"]["n"].tolist() == list(range(20))


def test_recordings_beside_pages_are_reported(tmp_path):
    content = content_of(n_records=40)
    for cpu, data in pages_of(content).items():
        put(tmp_path, f"mix/raw/cpu{cpu}.pipe_raw", data)
    put_formats(tmp_path / "mix", content)
    put(tmp_path, "mix/c.dat", MAGIC)
    put(tmp_path, "mix/perf.data.gz", gzip.compress(b"any"))
    put(tmp_path, "mix/other.dat", b"any")
    with tp.open_trace(tmp_path / "mix") as trace:
        assert trace["tick"]["n"].tolist() == list(range(40))
        assert [damage.reason for damage in trace.damage] == [
            f"{tmp_path}/mix/{name} is a recording of its own, which was not read: open it by its name"
            for name in ("c.dat", "perf.data.gz")
        ]


def test_pages_and_traces_far_below_are_not_of_the_folder(tmp_path):
    put(tmp_path, "a/b/cpu0.pipe_raw", pages_of(content_of(n_records=40))[0])
    put(tmp_path, "a/c/metadata", "/* CTF 1.8 */")
    with pytest.raises(
        DecodeError, match=r"no per_cpu/cpu0/trace_pipe_raw or cpu0\.pipe_raw in it or in one of"
    ):
        tp.open_trace(tmp_path)
    put(tmp_path, "x.dat", MAGIC)
    with pytest.raises(DecodeError, match=r"a folder of recordings: open one of them, such as .*/x\.dat"):
        tp.open_trace(tmp_path)


def test_what_is_missing_is_said(tmp_path):
    put(tmp_path, "cpu0.pipe_raw", b"")
    with pytest.raises(DecodeError, match="live tracefs"):
        tp.open_trace(tmp_path)
    content = content_of(n_records=10)
    put(tmp_path, "cpu0.pipe_raw", pages_of(content)[0] + b"rest")
    put(tmp_path, "header_page", "no such thing")
    put(tmp_path, "formats.tar", b"no tar" * 200)
    with tp.open_trace(tmp_path) as trace:
        assert trace.n_records == 5
        reasons = " ".join(damage.reason for damage in trace.damage)
        assert all(word in reasons for word in ("header_page", "formats.tar", "left over", "has no format"))
        assert LOST_UNKNOWN not in trace.lost.values()


@pytest.mark.oracle
def test_counts_are_those_of_the_kernel():
    folder = data_file("raw")
    stats = {cpu: (folder / f"cpu{cpu}.stats").read_text() for cpu in range(4)}
    entries = {cpu: int(text.split()[1]) for cpu, text in stats.items()}
    with tp.open_trace(folder) as trace:
        assert trace.damage == ()
        assert trace.n_records == sum(entries.values()) == 45638
        assert len(trace.file.events) == 1336
        tables = trace.tables().values()
        for cpu, n_records in entries.items():
            assert sum(table["common_cpu"].tolist().count(cpu) for table in tables) == n_records
