"""Losses of a selection: those of its CPUs and its range of times, shown only before the record they came before."""

import pytest

import tracepoint as tp
from decode.test_columns import twin
from tracefile.making import content_of, layout_of, tick, written
from tracepoint.cli.main import main
from tracepoint.record.write import PageWriter
from tracepoint.tracefile.content import BufferContent, CpuPages
from tracepoint.tracefile.options import OptionId, text_option

# Records of CPU 0 at these times; before those with a number, so many events were lost.
TIMES = {1000: 0, 2000: 5, 3000: 0, 4000: 7, 5000: 0}


@pytest.fixture
def path(tmp_path):
    found = []
    for cpu, (losses, shift) in enumerate(((TIMES, 0), ({1000: 0, 2000: 90}, 10))):
        writer = PageWriter(layout_of())
        for stamp, lost in losses.items():
            if lost:
                writer.lose(lost)
            writer.add(stamp + shift, tick(stamp // 1000))
        found.append(CpuPages(cpu, (writer.pages(),)))
    content = content_of()
    stats = text_option(OptionId.CPUSTAT, "CPU: 0\noverrun: 12\nCPU: 1\noverrun: 90\n")
    options = (*content.options, stats)
    made = content._replace(buffers=(BufferContent(tuple(found), "", "mono"),), options=options)
    (tmp_path / "t.dat").write_bytes(written(made))
    return tmp_path / "t.dat"


def losses(trace):
    return {r.timestamp: r.lost for r in trace.records() if r.lost}


@pytest.mark.parametrize("is_quick", [True, False])
def test_a_loss_is_before_its_record_or_before_none(path, is_quick):
    with tp.open_trace(path) as trace:
        cases = {
            "all": (trace, {0: 12, 1: 90}, {2000: 5, 4000: 7, 2010: 90}),
            "before the window": (trace.between(2500, 3500), {0: 0, 1: 0}, {}),
            "in the window": (trace.between(2000, 4000), {0: 5, 1: 90}, {2000: 5, 2010: 90}),
            "hidden": (trace.where("n == 3 || n == 5"), {0: 12, 1: 90}, {}),
            "one hidden": (trace.where("n > 2").between(0, 4500), {0: 12, 1: 90}, {4000: 7}),
            "CPU 0": (trace.on_cpus(0), {0: 12}, {2000: 5, 4000: 7}),
            "CPU 1": (trace.on_cpus(1).where("n == 1"), {1: 90}, {}),
            "no event": (trace.select("nosuch"), {0: 12, 1: 90}, {}),
        }
        for name, (chosen, lost, shown) in cases.items():
            if is_quick:
                assert (chosen.lost, losses(chosen)) == (lost, shown), name
            else:
                with twin():
                    assert (chosen.lost, losses(chosen)) == (lost, shown), name
        assert trace.where("n == 3").losses(0) == [(2000, 5), (4000, 7)]
        assert trace.on_cpus(1).losses(0) == []


def test_the_text_and_its_warning(path, capfd):
    def run(*words):
        status = main(["read", "--strict", str(path), *words])
        found = capfd.readouterr()
        return status, found.out.count("LOST"), found.err

    assert run()[:2] == (3, 3)
    assert "102 events were lost" in run()[2]
    assert run("--where", "n == 5") == (3, 0, "tracepoint: warning: 102 events were lost while recording\n")
    assert "12 events were lost" in run("--cpu", "0")[2]
    assert run("--from", "0.0000025", "--to", "0.0000035") == (0, 0, "")


def test_a_part_on_its_own_has_the_losses_at_their_places(path, tmp_path, capfd):
    out = tmp_path / "cut.dat"
    with tp.open_trace(path) as trace:
        for words, chosen in (
            (["--where", "n == 3 || n == 5"], trace.where("n == 3 || n == 5")),
            (["--cpu", "1", "--where", "n == 1"], trace.on_cpus(1).where("n == 1")),
            (["--from", "0.000002", "--to", "0.000004"], trace.between(2000, 4000)),
        ):
            assert main(["cut", str(path), "-o", str(out), *words]) == 0
            with tp.open_trace(out) as cut:
                assert {cpu: n for cpu, n in cut.lost.items() if n} == {
                    c: n for c, n in chosen.lost.items() if n
                }
                assert losses(cut) == losses(chosen)
                for cpu in chosen.lost:
                    assert cut.losses(cpu) == chosen.losses(cpu)
