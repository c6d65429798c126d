"""Several recordings as one: by time, with ids of its own, and nothing that differs mixed up."""

import re

import pytest

import tracepoint as tp
from decode.test_columns import twin
from tracefile.making import GOLDEN, content_of, written
from tracepoint.errors import DecodeError
from tracepoint.tracefile.compression import has_zstd
from tracepoint.tracefile.options import OptionId, text_option

CUT = GOLDEN / "cut.v6.dat"


def rows(trace):
    return [(r.timestamp, r.cpu, r.event, r.pid, r.fields) for r in trace.records()]


def file_of(tmp_path, name, content):
    path = tmp_path / f"{name}.dat"
    path.write_bytes(written(content, 7))
    return path


@pytest.mark.parametrize("is_quick", [True, False])
def test_two_recordings_are_one_by_time(tmp_path, is_quick):
    moved = tmp_path / "moved.dat"
    with tp.open_trace(CUT) as trace:
        first, last = trace.span
        tp.write_cut(trace.select("sched"), moved)
        expected = rows(trace) + rows(trace.select("sched"))
    with tp.open_trace([CUT, moved]) as merged:
        found = rows(merged) if is_quick else None
        if found is None:
            with twin():
                found = rows(merged)
        assert [r[0] for r in found] == sorted(r[0] for r in expected)
        assert sorted(map(str, found)) == sorted(map(str, expected))
        with tp.open_trace(CUT) as alone:
            assert len(merged["sched_switch"]) == 2 * len(alone["sched_switch"])
            assert len(merged["irq:softirq_raise"]) == len(alone["irq:softirq_raise"])
        assert merged.span == (first, last)
        assert merged.damage == ()
        assert repr(merged).startswith("<Trace cut.v6.dat + moved.dat")
        tp.write_cut(merged.between(first, (first + last) // 2), tmp_path / "both.dat")
        half = rows(merged.between(first, (first + last) // 2))
    with tp.open_trace(tmp_path / "both.dat") as again:
        assert rows(again) == half


def renumbered(content, old, new, change=("", "")):
    formats = tuple(
        (system, re.sub(rf"^ID: {old}$", f"ID: {new}", text, flags=re.MULTILINE).replace(*change))
        for system, text in content.formats
    )
    return content._replace(formats=formats)


def test_the_same_event_with_another_id_is_one_and_other_fields_keep_apart(tmp_path):
    content = content_of(n_records=20)
    first = file_of(tmp_path, "first", content)
    with tp.open_trace(first) as trace:
        (name,) = trace.events
        form = trace.format(name)
        n, field = trace.n_records, form.event_fields[0].name
    same = file_of(tmp_path, "same", content)
    other = file_of(tmp_path, "other", renumbered(content, form.id, form.id, (f" {field};", f" {field}2;")))
    with tp.open_trace([first, same, other]) as merged:
        assert merged.events == {name: 2 * n, f"{form.system}@other:{form.name}": n}
        ids = {r.event: merged.format(r.event).id for r in merged.records()}
        assert len(set(ids.values())) == 2
        assert f"{field}2" in merged[f"{form.system}@other:{form.name}"].columns
        assert merged.where(f"{field}2 >= 0 || {field}2 < 0").events == {
            f"{form.system}@other:{form.name}": n
        }
    with tp.open_trace([first, other, other]) as merged:
        assert merged.events == {name: n, f"{form.system}@other:{form.name}": 2 * n}


def test_times_are_those_of_each_file(tmp_path):
    content = content_of(n_records=5)
    later = content._replace(options=(*content.options, text_option(OptionId.OFFSET, "1000000")))
    one, two = file_of(tmp_path, "one", content), file_of(tmp_path, "two", later)
    with tp.open_trace(one) as a, tp.open_trace(two) as b, tp.open_trace([one, two]) as merged:
        expected = sorted([r.timestamp for r in a.records()] + [r.timestamp for r in b.records()])
        assert [r.timestamp for r in merged.records()] == expected
        assert merged[next(iter(merged.events))]["common_timestamp"].tolist() == expected
        tp.write_cut(merged, tmp_path / "both.dat")
    with tp.open_trace(tmp_path / "both.dat") as again:
        assert [r.timestamp for r in again.records()] == expected


def test_records_without_a_format_are_not_taken_for_others(tmp_path):
    content = content_of(n_records=7)
    bare = file_of(tmp_path, "bare", content._replace(formats=()))
    with tp.open_trace([file_of(tmp_path, "one", content), bare]) as merged:
        (known,) = [name for name in merged.events if not name.startswith("unknown")]
        with tp.open_trace(tmp_path / "one.dat") as alone:
            assert merged.events[known] == alone.n_records
        assert merged.n_records == 2 * merged.events[known]


def test_what_cannot_be_one(tmp_path):
    little = file_of(tmp_path, "little", content_of(n_records=3))
    big = file_of(tmp_path, "big", content_of(True, n_records=3))
    with pytest.raises(DecodeError, match=r"64-bit big-endian, those of .*little"):
        tp.open_trace([little, big])
    other = content_of(n_records=3)._replace(
        buffers=tuple(b._replace(clock="x86-tsc") for b in content_of(n_records=3).buffers),
    )
    with pytest.raises(DecodeError, match="its clock is x86-tsc"):
        tp.open_trace([little, file_of(tmp_path, "tsc", other)])
    with pytest.raises(FileNotFoundError):
        tp.open_trace([little, tmp_path / "missing.dat"])
    with pytest.raises(ValueError, match="no path"):
        tp.open_trace([])


def test_damage_names_its_file(tmp_path):
    whole, cut = file_of(tmp_path, "whole", content_of(n_records=50)), tmp_path / "cut.dat"
    cut.write_bytes(written(content_of(n_records=50), 6)[:-500])
    with tp.open_trace([whole, cut]) as merged:
        _ = merged.n_records
        assert merged.damage
        assert all(damage.reason.startswith("cut.dat: ") for damage in merged.damage)


def test_tasks_and_symbols_on_which_files_differ_are_left_out(tmp_path):
    content = content_of(n_records=3)
    one = content._replace(saved_cmdlines="1 init\n7 sh\n", kallsyms="ffffffff81000000 T _stext\n")
    two = content._replace(saved_cmdlines="1 init\n7 bash\n9 ls\n", kallsyms="ffffffff82000000 T _stext\n")
    with tp.open_trace([file_of(tmp_path, "one", one), file_of(tmp_path, "two", two)]) as merged:
        assert merged.file.saved_cmdlines == "1 init\n9 ls\n"
        assert merged.file.kallsyms == ""


@pytest.mark.skipif(not has_zstd(), reason="no zstd")
def test_the_command_writes_what_trace_cmd_reads(tmp_path, capsys):
    from tracepoint.cli.main import main  # noqa: PLC0415

    out = tmp_path / "both.dat"
    assert main(["merge", str(CUT), str(GOLDEN / "cut.v7.zstd.dat"), "-o", str(out), "--cpu", "0"]) == 0
    capsys.readouterr()
    with tp.open_trace(out) as merged, tp.open_trace(CUT) as alone:
        assert merged.n_records == 2 * alone.on_cpus(0).n_records
        assert merged.events == {name: 2 * n for name, n in alone.on_cpus(0).events.items()}


def test_system_calls_and_own_events_that_are_kept_apart_are_shown_as_such(tmp_path):
    """The fields of a CTF trace have other types, so its events are kept apart under another system."""
    with tp.open_trace(CUT) as trace:
        tp.write_ctf(trace, tmp_path / "part")
        expected = [r.text for r in trace.select("syscalls").records()]
    with tp.open_trace([CUT, tmp_path / "part"]) as merged:
        found = {
            system: [r.text for r in merged.select(system).records()]
            for system in ("syscalls", "syscalls@part")
        }
    assert expected
    assert found == {"syscalls": expected, "syscalls@part": expected}
