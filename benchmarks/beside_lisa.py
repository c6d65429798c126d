"""The data frames that LISA's users take most, beside LISA: the same values, and what they cost.

TRACEPOINT_LISA is a Python that has LISA (docs/decisions/0037-analysis.md says which versions go together).
The recording is `big.v7.zstd.dat` of the folder TRACEPOINT_DATA.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from array import array
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import tracepoint as tp
from benchmarks.harness import MissingError, Row, environment

# LISA's stamps are float seconds, which it moves by the least step where two records have one time.
NEAR_NS = 2
# LISA's own numbers of states (lisa.analysis.tasks.TaskState): a task that runs, and one that was woken.
ACTIVE, WAKING = 0x2000, 0x200
WAKES = ("sched_wakeup", "sched_wakeup_new")
FIELDS = {
    "sched_switch": ("prev_pid", "prev_state", "next_pid", "next_prio"),
    **dict.fromkeys(("sched_waking", *WAKES), ("pid", "prio", "target_cpu")),
}
# Records of one time in the order in which they were written: a task is switched in and out within one.
STEPS = f"""create table steps as select *, coalesce(lead(ts) over own - ts, -1) as delta,
 coalesce(lead(state) over own, -1) as next_state from (
 select row, 0 as side, index as ts, __cpu as cpu, prev_pid as pid, prev_state as state from sched_switch
 union all by name
 select row, 1 as side, index as ts, __cpu as cpu, next_pid as pid, {ACTIVE} as state from sched_switch
 {{wakes}}) window own as (partition by pid order by row, side)"""
WOKEN = f"""union all by name
 select row, 0 as side, index as ts, __cpu as cpu, pid, {WAKING} as state from """
QUERIES = {
    **{f"df_event({name})": f"select * exclude (row) from {name}" for name in list(FIELDS)[:3]},
    "df_tasks_runtime": f"""select pid as index,
 sum(if(state = {ACTIVE}, if(delta < 0, last - ts, delta), 0)) as runtime
 from steps, (select max(index) as last from sched_switch) group by pid""",
    "df_tasks_wakeups": "select pid as index, count(*) as wakeups from sched_wakeup group by pid",
    "df_rt_tasks": """select distinct next_pid as index, next_prio as prio from sched_switch
 where next_prio <= 99""",
    "df_task_states": "select ts as index, cpu, state as curr_state, delta from steps where pid = {task}",
    "df_task_total_residency": f"""select cpu as index, sum(if(pid = {{task}} and state = {ACTIVE},
 greatest(delta, 0), 0)) as runtime from steps group by cpu""",
    "df_latency_wakeup": f"""select ts as index, delta as wakeup_latency, cpu from steps
 where pid = {{task}} and state = {WAKING} and next_state = {ACTIVE}""",
    "df_latency_preemption": f"""select ts as index, delta as preempt_latency, cpu from steps
 where pid = {{task}} and state = 0 and next_state = {ACTIVE}""",
    "df_activations": f"""select ts as index, coalesce(ts - lag(ts) over (order by ts), -1)
 as activation_interval from steps where pid = {{task}} and state = {WAKING}""",
}
TASK = "select pid from sched_wakeup group by pid order by count(*) desc, pid limit 1"


def frames(path: str) -> dict[str, dict[str, array[int]]]:
    """The same frames by SQL over a recording: columns of int64 by frame."""
    found = {}
    database = import_module("duckdb").connect()
    with tp.open_trace(path) as trace:
        table = trace.joined({name: fields for name, fields in FIELDS.items() if name in trace})
        number_of = {name: number for number, name in table.events.items()}
        database.register("joined", table)
        database.execute("create table records as select row_number() over () as row, * from joined")
    for name, number in number_of.items():
        own = ", ".join(f'"{table.column(name, field).name}" as {field}' for field in FIELDS[name])
        database.execute(
            f"""create view {name} as select row, common_timestamp as index, common_cpu as __cpu, {own}
 from records where common_type = {number}"""
        )
    database.execute(STEPS.format(wakes=" ".join(WOKEN + name for name in WAKES if name in number_of)))
    ((task,),) = database.execute(TASK).fetchall()
    for name, query in QUERIES.items():
        columns = database.execute(query.format(task=task)).fetchnumpy()
        found[name] = {
            column: array("q", values.astype("int64").tobytes()) for column, values in columns.items()
        }
    return found


def main() -> None:
    """Write the frames of a recording into a folder, after their CPU seconds."""
    found = frames(sys.argv[1])
    print(sum(os.times()[:4]))
    for name, columns in found.items():
        for column, values in columns.items():
            (Path(sys.argv[2]) / f"{name}.{column}").write_bytes(values)


def _cpu(command: list[str], folder: Path) -> float:
    folder.mkdir()
    done = subprocess.run(
        [*command, str(folder)], env=environment(), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise MissingError(f"{command[0]} failed: {done.stderr.strip().splitlines()[-1:]}")
    return float(done.stdout.split()[0])


def _rows(folder: Path, name: str, columns: list[str]) -> list[tuple[int, ...]]:
    found = []
    for column in columns:
        values = array("q")
        values.frombytes((folder / f"{name}.{column}").read_bytes())
        found.append(values)
    return sorted(zip(*found, strict=True))


def differences(theirs: Path, ours: Path) -> dict[str, tuple[int, int]]:
    """How many rows each frame has of LISA, and how many of either side the other does not have."""
    found = {}
    for name in QUERIES:
        columns = sorted(path.name.rpartition(".")[2] for path in ours.glob(f"{name}.*"))
        columns = ["index", *(column for column in columns if column != "index")]
        one, other = (_rows(folder, name, columns) for folder in (theirs, ours))
        n_other = sum(
            any(abs(a - b) > NEAR_NS for a, b in zip(row, own, strict=True))
            for row, own in zip(one, other, strict=False)
        )
        found[name] = len(one), n_other + abs(len(one) - len(other))
    return found


@cache
def _measured() -> tuple[float, float, dict[str, tuple[int, int]]]:
    python = os.environ.get("TRACEPOINT_LISA")
    if not python:
        raise MissingError("TRACEPOINT_LISA is not set to a Python that has LISA: pip install lisa-linux")
    data = Path(os.environ.get("TRACEPOINT_DATA", "../shared/data")) / "big.v7.zstd.dat"
    if not data.exists():
        raise MissingError("no big.v7.zstd.dat in the folder TRACEPOINT_DATA")
    if find_spec("duckdb") is None:
        raise MissingError("no duckdb: pip install duckdb")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # LISA writes beside the recording.
        path = shutil.copy(data, folder / "trace.dat")
        script = Path(__file__).with_name("lisa_frames.py")
        theirs = _cpu([python, str(script), str(path)], folder / "theirs")
        ours = _cpu([sys.executable, "-m", "benchmarks.beside_lisa", str(path)], folder / "ours")
        return theirs, ours, differences(folder / "theirs", folder / "ours")


def lisa_cpu() -> Row:
    """CPU of the frames with LISA over that with SQL, the start of both included."""
    theirs, ours, found = _measured()
    detail = f"{theirs:.1f} s / {ours:.2f} s, {len(found)} frames"
    return Row("CPU of data frames, LISA / ours", theirs / ours, "times", 50, False, detail)


def lisa_values() -> Row:
    """Rows of the frames that are not the same on both sides."""
    _, _, found = _measured()
    detail = ", ".join(f"{name} {n_other} of {n:,}" for name, (n, n_other) in found.items() if n_other)
    n_rows = sum(n for n, _ in found.values())
    n_other = sum(n_other for _, n_other in found.values())
    return Row(f"rows of {n_rows:,} other than LISA's", n_other, "rows", 0, True, detail)


ROWS = (lisa_values, lisa_cpu)

if __name__ == "__main__":
    main()
