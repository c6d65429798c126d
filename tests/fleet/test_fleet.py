"""Many recordings: which there are, what cannot be read, and that each engine gives the same figures."""

import json
import os
import random
import shutil
from importlib import import_module
from pathlib import Path
from time import process_time

import pytest

from fleet.making import host_data, make_fleet
from tracepoint import open_trace
from tracepoint.analysis import summarise, summarise_by
from tracepoint.errors import TracepointError
from tracepoint.fleet import FleetResult, open_fleet
from tracepoint.fleet.batches import BATCH_BYTES, cut_batches
from tracepoint.fleet.inputs import find_inputs
from tracepoint.fleet.result import BLOCK, merge_results

N_HOSTS = 64


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_fleet(tmp_path_factory.mktemp("fleet") / "made", N_HOSTS, 60)


@pytest.fixture(scope="module")
def here(folder):
    """What this process finds, by analysis and keys."""
    return {job: open_fleet(folder).run(*job) for job in (("sched", ("host", "comm")), ("events", ()))}


def test_a_fleet_has_the_figures_of_its_recordings(folder, here):
    paths = sorted(folder.iterdir())
    result = here["sched", ("host", "comm")]
    assert (result.n_read, result.unread) == (N_HOSTS, [])
    for number in (0, 7, 63):
        with open_trace(paths[number]) as trace:
            alone = summarise_by(trace, "sched", ["host", "comm"])
        assert alone
        assert {key: result.groups[key] for key in alone} == alone
    whole = here["events", ()].summary
    with open_trace(paths[0]) as first, open_trace(paths[1]) as second:
        two = summarise(first, "events").merge(summarise(second, "events"))
    assert open_fleet(paths[:2]).run("events").summary == two
    assert whole["traces"].low == N_HOSTS
    assert whole["records"].low == sum(
        summary["records"].low for summary in open_fleet(folder).run("events", ["host"]).groups.values()
    )


@pytest.mark.thorough
@pytest.mark.parametrize("job", [("sched", ("host", "comm")), ("events", ())])
def test_threads_give_the_same(folder, here, job):
    assert open_fleet(folder, "threads").run(*job) == here[job]


@pytest.mark.programs
def test_a_local_dask_cluster_gives_the_same(folder, here, dask_client):
    fleet = open_fleet(folder, "dask", dask_client)
    assert {job: fleet.run(*job) for job in here} == here
    # The cluster is the caller's: it goes on.
    assert dask_client.submit(len, "ab").result() == 2


@pytest.mark.parametrize(("n_workers", "n_small"), [(1, 12), (2, 18), (3, 24), (50, 96)])
def test_small_recordings_are_read_together_and_large_ones_alone(tmp_path, n_workers, n_small):
    rng = random.Random(n_workers)
    sizes = [rng.choice([1, 1000, BATCH_BYTES // 3, BATCH_BYTES + 1]) for _ in range(rng.randint(1, 150))]
    paths = [str(tmp_path / f"{at}.dat") for at in range(len(sizes))]
    for path, size in zip(paths, sizes, strict=True):
        Path(path).touch()
        os.truncate(path, size)
    batches = cut_batches(paths, n_workers)
    assert [path for batch in batches for path in batch.paths] == paths
    for batch in batches:
        own = sizes[batch.at : batch.at + len(batch.paths)]
        assert len(own) == 1 or sum(own) <= BATCH_BYTES
        assert {at // BLOCK for at in range(batch.at, batch.at + len(own))} == {batch.block}
        assert batch.is_block == (len(own) == len(paths[batch.block * BLOCK :][:BLOCK]))
    (tmp_path / "small.dat").write_bytes(b"x")
    assert len(cut_batches([str(tmp_path / "small.dat")] * 96, n_workers)) == n_small


def test_a_recording_of_unknown_size_is_read_alone(tmp_path):
    paths = ["s3://a/b.dat", str(tmp_path), str(tmp_path / "none.dat")] * 20
    assert {len(batch.paths) for batch in cut_batches(paths, 1)} == {1}


def test_recordings_that_cannot_be_read_are_reported_and_the_rest_is_read(tmp_path):
    good = tmp_path / "good.dat"
    good.write_bytes(host_data(1))
    (tmp_path / "text.dat").write_text("not a recording")
    (tmp_path / "cut.dat").write_bytes(good.read_bytes()[:100])
    (tmp_path / "empty.dat").write_bytes(b"")
    result = open_fleet([tmp_path, tmp_path / "none.dat"]).run("sched")
    assert result.n_read == 1
    assert [unread.path.rsplit("/", 1)[1] for unread in result.unread] == [
        "cut.dat",
        "empty.dat",
        "text.dat",
        "none.dat",
    ]
    assert all(unread.reason for unread in result.unread)
    with open_trace(good) as trace:
        assert result.summary == summarise(trace, "sched")


def test_nothing_that_can_be_read_is_an_empty_result(tmp_path):
    result = open_fleet(tmp_path / "none.dat").run("sched", ["host"])
    assert (result.n_read, result.groups, len(result.unread)) == (0, {}, 1)


def test_a_folder_of_the_path_names_the_host_before_the_recording_does(tmp_path):
    for name in ("host=a", "host=b%2F1", "plain"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "boot.dat").write_bytes(host_data(3))
    assert set(open_fleet(tmp_path).run("sched", ["host"]).groups) == {("a",), ("b/1",), ("web3",)}


def test_patterns_folders_and_names_are_each_recording_once_in_order(tmp_path):
    make_fleet(tmp_path / "x", 3, 20)
    names = [str(path) for path in sorted((tmp_path / "x").iterdir())]
    assert find_inputs([tmp_path / "x" / "0000[12].dat", tmp_path]) == [names[1], names[2], names[0]]
    assert find_inputs([f"{tmp_path}/**/*.dat"]) == names
    shutil.copytree(tmp_path / "x", tmp_path / "x[1]")
    assert find_inputs([tmp_path / "x[1]" / "00000.dat"]) == [f"{tmp_path}/x[1]/00000.dat"]
    with pytest.raises(TracepointError, match="no recordings match"):
        find_inputs([f"{tmp_path}/*.gz"])


def test_object_stores_are_read_by_fsspec(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    store = fsspec.filesystem("memory")
    for number in range(3):
        store.pipe(f"/fleet-test/host=h{number}/boot.dat", host_data(number))
    store.pipe("/fleet-test/notes.txt", b"x")
    try:
        by_prefix = open_fleet("memory://fleet-test").run("sched", ["host"])
        by_pattern = open_fleet("memory://fleet-test/*/boot.dat").run("sched", ["host"])
        missing = open_fleet("memory://fleet-test/none.dat").run("sched")
    finally:
        store.rm("/fleet-test", recursive=True)
    assert by_prefix == by_pattern
    assert (by_prefix.n_read, set(by_prefix.groups)) == (3, {("h0",), ("h1",), ("h2",)})
    assert len(missing.unread) == 1


def test_json_holds_all_of_a_result(here):
    for result in here.values():
        assert FleetResult.from_facts(json.loads(json.dumps(result.facts()))) == result
    with pytest.raises(TracepointError, match="fleet/0"):
        FleetResult.from_facts({"schema": "tracepoint.fleet/0"})
    with pytest.raises(TracepointError, match="not a result"):
        FleetResult.from_facts({"schema": "tracepoint.fleet/1"})


@pytest.mark.thorough
def test_what_cannot_be_asked_is_refused_at_once(folder, here):
    with pytest.raises(KeyError, match="did you mean 'dask'"):
        open_fleet(folder, "dsk")
    with pytest.raises(KeyError, match="did you mean 'host'"):
        open_fleet(folder).run("sched", ["hots"])
    with pytest.raises(ValueError, match="no path"):
        open_fleet([])
    with pytest.raises(KeyError, match="host, comm"):
        _ = here["sched", ("host", "comm")].summary
    a, b = (FleetResult("sched", by) for by in ((), ("host",)))
    with pytest.raises(ValueError, match="add up"):
        merge_results([a, b])


@pytest.fixture(scope="module")
def dask_client():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.run(import_module, "tracepoint.fleet")
        yield client


def cpu_s(client):
    """CPU of this process, where the scheduler is, and of the workers."""
    return process_time() + sum(client.run(process_time).values())


@pytest.mark.slow
def test_a_thousand_hosts(tmp_path, dask_client):
    """The cost of each is that of one: so of 1,000 as of 250, within what a busy machine adds."""
    make_fleet(tmp_path / "all", 1000, 60)
    paths = sorted((tmp_path / "all").iterdir())
    seconds, results = [], []
    for engine in (None, "dask"):
        for n in (250, 1000):
            begin = cpu_s(dask_client)
            result = open_fleet(paths[:n], engine, engine and dask_client).run("sched", ["host"])
            seconds.append((cpu_s(dask_client) - begin) / n)
            assert (result.n_read, len(result.groups), result.unread) == (n, n, [])
            print(f"{engine or 'this process'}: {n:5,} hosts, {seconds[-1] * 1000:.2f} ms of CPU for each")  # noqa: T201
        assert seconds[-1] / seconds[-2] < 1.5, seconds
        results.append(result)
    assert results[0] == results[1]
