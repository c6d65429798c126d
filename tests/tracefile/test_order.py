"""Pages that go back in time: every record is found by its time, and comes in its order, wherever its page stands."""

import random

import pytest

import tracepoint as tp
from decode.test_columns import twin
from tracefile.making import content_of, layout_of, tick, written
from tracepoint.cli.main import main
from tracepoint.decode import engine
from tracepoint.record.write import page_bytes, write_pages
from tracepoint.tracefile import order
from tracepoint.tracefile.content import CpuPages

N_PAGES, N_A_PAGE = 24, 20


def shifted(pages, numbers):
    """Pages in another order."""
    return [pages[n] for n in numbers]


def one_moved(pages):
    return shifted(pages, [*range(5), *range(6, N_PAGES), 5])


def turned(pages):
    return shifted(pages, [*range(9, N_PAGES), *range(9)])


def mixed(pages):
    return shifted(pages, random.Random(3).sample(range(N_PAGES), N_PAGES))


def with_holes(pages):
    return [page for page in turned(pages) for page in (page, bytes(len(page)))]


SHAPES = {"one moved": one_moved, "turned": turned, "mixed": mixed, "holes": with_holes}


def page_of(number, layout, shift=0):
    """The page of 20 records, 1000 ns apart."""
    numbers = range(number * N_A_PAGE, (number + 1) * N_A_PAGE)
    is_big = layout.is_big_endian
    return write_pages([(10**9 + 1000 * n + shift, tick(n, is_big_endian=is_big)) for n in numbers], layout)


def save(path, of_cpu_1, is_big_endian=False, **form):
    """A recording of two CPUs; return its number of records."""
    layout = layout_of(is_big_endian)
    cpus = [[page_of(n, layout, 300) for n in range(N_PAGES)], of_cpu_1]
    content = content_of(is_big_endian)
    pages = tuple(CpuPages(cpu, tuple(found)) for cpu, found in enumerate(cpus))
    path.write_bytes(written(content._replace(buffers=(content.buffers[0]._replace(cpus=pages),)), **form))


def shown(trace):
    return [(r.timestamp, r.cpu, r.data) for r in trace.records()]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "form", [{"version": 6}, {"compression": "zlib"}, {"is_big_endian": True}], ids=["plain", "zlib", "big"]
)
@pytest.mark.parametrize("is_quick", [True, False])
def test_every_record_of_a_window_is_found(tmp_path, shape, form, is_quick):
    layout = layout_of("is_big_endian" in form)
    # Chunks of some pages, in which a page is not at the begin.
    pages = SHAPES[shape]([page_of(n, layout) for n in range(N_PAGES)])
    save(tmp_path / "t.dat", [b"".join(pages[n : n + 5]) for n in range(0, len(pages), 5)], **form)
    with tp.open_trace(tmp_path / "t.dat") as trace:
        every = sorted(
            (10**9 + 1000 * n + shift, cpu, n)
            for n in range(N_PAGES * N_A_PAGE)
            for cpu, shift in enumerate((300, 0))
        )
        numbers = [(r.timestamp, r.cpu, r["n"]) for r in trace.records()]
        assert numbers == every
        first, last = trace.span
        # What counting saw of the order is used from here on.
        assert [(r.timestamp, r.cpu, r["n"]) for r in trace.records()] == every
        for start, stop in ((first, last), (first + 150_000, first + 260_000), (first + 9000, first + 9001)):
            some = trace.between(start, stop)
            expected = [one for one in every if start <= one[0] < stop]
            if is_quick:
                table = some["tick"]
                got = [(r.timestamp, r.cpu, r["n"]) for r in some.records()]
            else:
                with twin():
                    table = some["tick"]
                    got = [(r.timestamp, r.cpu, r["n"]) for r in some.records()]
            assert got == expected
            assert table["n"].tolist() == [n for _, _, n in expected]
        (damage,) = trace.damage
        assert damage.cpu == 1
        assert "pages go back in time, from 1.000" in damage.reason


def test_the_place_that_is_reported_is_that_of_the_page(tmp_path):
    layout = layout_of()
    save(tmp_path / "t.dat", turned([page_of(n, layout) for n in range(N_PAGES)]), version=6)
    with tp.open_trace(tmp_path / "t.dat") as trace:
        cpu = trace.buffer.cpus[1]
        (damage,) = trace.damage
        assert damage.offset == cpu.offset + 15 * layout.page_size
        assert damage.reason.endswith("from 1.000460000 to 1.000000000 s")


def test_empty_pages_do_not_go_back(tmp_path):
    """A file that was made larger before it was written ends with zeros."""
    layout = layout_of()
    pages = [page_of(n, layout) for n in range(3)]
    save(
        tmp_path / "t.dat", [*pages, bytes(layout.page_size), *[page_of(3, layout)], bytes(layout.page_size)]
    )
    with tp.open_trace(tmp_path / "t.dat") as trace:
        assert len(trace.on_cpus(1)["tick"]) == 80
        assert trace.on_cpus(1).between(10**9 + 60_000, 10**9 + 70_000).n_records == 10
        assert trace.damage == ()


def test_records_of_a_clock_that_was_set_back_come_by_time(tmp_path):
    """Pages overlap in time then, which no order of them puts right."""
    layout = layout_of()
    pages = [page_of(n, layout) for n in range(16)] + [page_of(n, layout, -70_500) for n in range(16, 24)]
    save(tmp_path / "t.dat", pages)
    with tp.open_trace(tmp_path / "t.dat") as trace:
        stamps = [r.timestamp for r in trace.on_cpus(1).records()]
        assert stamps == sorted(stamps)
        assert len(stamps) == N_PAGES * N_A_PAGE
        assert len(trace.buffer.in_order().cpus) == 3
        window = trace.on_cpus(1).between(10**9 + 250_000, 10**9 + 300_000)
        assert [r.timestamp for r in window.records()] == [
            s for s in stamps if 10**9 + 250_000 <= s < 10**9 + 300_000
        ]


def test_more_pages_at_one_time_than_can_be_merged_are_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(order, "_MAX_STRANDS", 4)
    layout = layout_of()
    save(tmp_path / "t.dat", [page_of(5, layout, -shift) for shift in range(8)])
    with tp.open_trace(tmp_path / "t.dat") as trace:
        assert trace.on_cpus(1).n_records == 160
        assert len(list(trace.on_cpus(1).records())) == 160
        assert [d.reason for d in trace.damage][1] == (
            "more than 4 pages overlap in time: records are not in its order"
        )


def test_losses_before_pages_that_moved_stay_with_them(tmp_path):
    layout = layout_of()
    numbers = range(20, 40)
    writer = [tick(n) for n in numbers]
    late = page_bytes(layout, 10**9 + 20_000, write_pages([(0, writer[0])], layout)[16:40], 7)
    save(tmp_path / "t.dat", [page_of(2, layout), late, page_of(0, layout)])
    with tp.open_trace(tmp_path / "t.dat") as trace:
        records = list(trace.on_cpus(1).records())
        assert [r.lost for r in records if r["n"] in (0, 20, 40)] == [0, 7, 0]
        assert trace.lost == {0: 0, 1: 7}


def test_a_table_is_read_in_slices_only_where_pages_are_in_order(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "_SLICE_BYTES", 2 * 4096)
    layout = layout_of()
    pages = [page_of(n, layout) for n in range(N_PAGES)]
    for of_cpu_1, is_in_order in ((pages, True), (turned(pages), False)):
        save(tmp_path / "t.dat", of_cpu_1)
        with tp.open_trace(tmp_path / "t.dat") as trace:
            assert bool(engine.time_slices(trace.buffer.cpus)) == is_in_order
            assert len(trace["tick"]) == 2 * N_PAGES * N_A_PAGE


def test_commands_show_all_records_by_time_and_say_that_pages_go_back(tmp_path, capfd):
    layout = layout_of()
    save(tmp_path / "t.dat", mixed([page_of(n, layout) for n in range(N_PAGES)]))
    save(tmp_path / "right.dat", [page_of(n, layout) for n in range(N_PAGES)])
    for words in (["read"], ["read", "--from", "1.0001", "--to", "1.0002"], ["read", "--format", "jsonl"]):
        assert main([words[0], str(tmp_path / "right.dat"), *words[1:]]) == 0
        right = capfd.readouterr()
        assert main([words[0], str(tmp_path / "t.dat"), *words[1:]]) == 0
        found = capfd.readouterr()
        assert found.out == right.out
        assert "pages go back in time" in found.err
        assert not right.err
    assert main(["read", "--strict", str(tmp_path / "t.dat")]) == 3
    assert main(["cut", str(tmp_path / "t.dat"), "-o", str(tmp_path / "cut.dat")]) == 0
    assert main(["merge", str(tmp_path / "t.dat"), "-o", str(tmp_path / "merged.dat")]) == 0
    capfd.readouterr()
    assert main(["stat", "--json", str(tmp_path / "t.dat")]) == 0
    assert "pages go back in time" in capfd.readouterr().out
    with tp.open_trace(tmp_path / "right.dat") as right:
        for name in ("cut.dat", "merged.dat"):
            with tp.open_trace(tmp_path / name) as trace:
                assert shown(trace) == shown(right)
                assert trace.damage == ()
