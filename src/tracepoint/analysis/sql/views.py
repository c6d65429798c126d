"""Tables of Perfetto's SQL library as views over the tables that analyses give, with its names and columns.

What no event says is null: `io_wait`, `blocked_function`, `waker_id`, `arg_set_id`.
"""

from __future__ import annotations

from tracepoint.analysis.sql.events import set_of

#: The analysis that gives a table, and its name there.
TABLES = {
    "sched": ("sched", "sched"),
    "thread_state_rows": ("sched", "thread_state"),
    "thread_rows": ("sched", "thread"),
    "spurious_sched_wakeup": ("sched", "spurious_sched_wakeup"),
    "cpu_idle_counters": ("power", "cpu_idle_counters"),
    "cpu_frequency_counters": ("power", "cpu_frequency_counters"),
    "linux_irqs": ("irq", "linux_irqs"),
    "linux_hard_irqs": ("irq", "linux_hard_irqs"),
    "linux_soft_irqs": ("irq", "linux_soft_irqs"),
    "softirq_wait": ("irq", "softirq_wait"),
    "work_wait": ("irq", "work_wait"),
    "syscall": ("syscalls", "syscall"),
    "page_fault": ("faults", "page_fault"),
    "trap": ("traps", "trap"),
    "signal": ("traps", "signal"),
    "reclaim": ("swap", "reclaim"),
    "block_request": ("block", "block_request"),
    "linux_active_block_io_operations_by_device": ("block", "linux_active_block_io_operations_by_device"),
    "lock_contention": ("locks", "lock_contention"),
    "allocation": ("memory", "allocation"),
}
#: Tables that are put together from those that a recording has the events of: of each the table and its SQL.
UNIONS = {
    # A thread has the track 4 utid, a CPU the tracks 4 cpu + 1 for interrupts and 4 cpu + 2 for softirqs.
    "slice_rows": (
        (
            "syscall",
            """
select s.ts, s.dur, 4 * utid as track_id, 'sys_' || s.name as name
from syscall s asof join thread_begins b on s.tid = b.tid and s.ts >= b.begin_ts""",
        ),
        (
            "linux_irqs",
            "select ts, dur, 4 * cpu + if(is_soft_irq = 1, 2, 1) as track_id, name from linux_irqs",
        ),
    ),
    # Whose record it is: of a task by the time, of an idle CPU by its number.  Without the events of
    # scheduling there are no threads.
    "event_threads": (
        (
            "event_names",
            """
select null::integer as tid, null::integer as cpu, null::integer as utid, null::bigint as begin_ts
where false""",
        ),
        (
            "thread_begins",
            """
select tid, -1 as cpu, utid, begin_ts from thread_begins
union all
select 0, try_cast(split_part(name, '/', 2) as integer), utid, -9223372036854775808
from thread_rows where is_idle = 1""",
        ),
    ),
}

_LATENCY = """
select running.id as thread_state_id, sched.id as sched_id, running.utid,
       runnable_id as runnable_latency_id, runnable_dur as latency_dur
from (select id, ts, utid, state, lag(id) over thread as runnable_id, lag(dur) over thread as runnable_dur,
             lag(flags) over thread as runnable_flags
      from thread_state window thread as (partition by utid order by id)) running
join sched on sched.utid = running.utid and sched.ts = running.ts
where running.state = 'Running' and runnable_flags & 13 = 8"""


def _cycles(key: str, source: str) -> str:
    """Return the SQL for cycles of what is in `source`, by `key`."""
    return f"""
select {key}sum(millicycles)::bigint as millicycles, (sum(millicycles) / 1000000000)::bigint as megacycles,
       sum(dur)::bigint as runtime, min(freq) as min_freq, max(freq) as max_freq,
       (sum(millicycles) * 1000 / sum(dur))::bigint as avg_freq
from {source}"""  # noqa: S608 - both are ours


#: The SQL of a view.
VIEWS = {
    "thread": """
select t.*, p.upid, coalesce(p.pid = t.tid, false) as is_main_thread, 0 as machine_id
from thread_rows t left join task_process on task_process.tid = t.tid
left join process p on p.pid = task_process.pid""",
    "process": """
select row_number() over (order by pid) as id, row_number() over (order by pid) as upid, pid,
       any_value(name) filter (tid = pid) as name, null::bigint as start_ts, null::bigint as end_ts,
       null::bigint as parent_upid, null::bigint as uid, null::varchar as cmdline,
       null::bigint as arg_set_id, 0 as machine_id
from task_process group by pid""",
    "thread_state": """
select id, ts, dur, cpu, utid, state, null::boolean as io_wait, null::varchar as blocked_function, waker_utid,
       null::bigint as waker_id, irq_context, ucpu, flags
from thread_state_rows""",
    "cpu": """
select distinct cpu::bigint as id, cpu::bigint as ucpu, cpu, null::bigint as cluster_id,
       null::varchar as processor, 0 as machine_id, null::bigint as capacity
from sched order by cpu""",
    "sched_slice": "select id, ts, dur, cpu, utid, end_state, priority, ucpu from sched",
    "sched_previous_runnable_on_thread": """
select * exclude (state) from (
  select id, state, max(case when state in ('R', 'R+') then id end) over thread as prev_runnable_id,
         max(case when state = 'R' and waker_utid is not null then id end) over thread
           as prev_wakeup_runnable_id
  from thread_state window thread as (partition by utid order by id)
) where state = 'Running'""",
    # Of rows with an end or a begin that is not known nobody can say how long the thread waited.
    "sched_latency_for_running_interval": _LATENCY,
    "sched_time_in_state_for_thread": """
select utid, total_runtime, state, time_in_state, time_in_state * 100 // total_runtime
         as percentage_in_state
from (select utid, state, sum(dur)::bigint as time_in_state,
             (sum(sum(dur)) over (partition by utid))::bigint as total_runtime
      from thread_state where dur >= 0 group by utid, state)""",
    "runnable_threads": "select ts, dur from thread_state where state = 'R'",
    "sched_runnable_thread_count": """
select ts, value as runnable_thread_count from intervals_overlap_count('runnable_threads')""",
    "active_cpus": "select ts, dur, cpu from sched join thread_rows using (utid) where is_idle = 0",
    "sched_active_cpu_count": """
select ts, value as active_cpu_count from intervals_overlap_count('active_cpus')""",
    "cpu_idle_stats": """
select cpu, idle + 1 as state, count(*) as count, sum(dur)::bigint as dur,
       (sum(dur) // count(*))::bigint as avg_dur,
       100.0 * sum(dur) / sum(sum(dur)) over (partition by cpu) as idle_percent
from cpu_idle_counters group by cpu, idle order by cpu, idle""",
    "counter": """
select row_number() over (order by ts, track_id) as id, ts, track_id, value, null::bigint as arg_set_id
from (select ts, track_id, idle::double as value from cpu_idle_counters
      union all select ts, track_id, freq::double from cpu_frequency_counters)""",
    "cpu_counter_track": """
select distinct track_id as id, 'cpuidle' as name, 'cpu_idle' as type, null::bigint as parent_id,
       0 as machine_id, null::varchar as unit, null::varchar as description, cpu
from cpu_idle_counters
union all
select distinct track_id, 'cpufreq', 'cpu_frequency', null, 0, 'kHz', null, cpu
from cpu_frequency_counters""",
    "thread_begins": """
select tid, utid, case when row_number() over (partition by tid order by utid) > 1 then start_ts end as start,
       coalesce(start, -9223372036854775808) as begin_ts
from thread_rows where not is_idle""",
    "slice": """
select row_number() over (order by ts, track_id) - 1 as id, ts, dur, track_id,
       null::varchar as category, name, 0 as depth, null::bigint as parent_id,
       null::bigint as arg_set_id, null::varchar as cat,
       row_number() over (order by ts, track_id) - 1 as slice_id
from slice_rows""",
    "thread_track": "select 4 * utid as id, name, utid from thread_rows",
    "cpu_track": """
select unnest([4 * cpu + 1, 4 * cpu + 2]) as id,
       unnest(['Irq Cpu ' || cpu, 'SoftIrq Cpu ' || cpu]) as name, cpu
from (select distinct cpu from linux_irqs)""",
    "cpu_freqs": "select ts, dur, cpu, freq from cpu_frequency_counters where dur > 0",
    "busy_cpus": """
select ts, dur, cpu, utid from sched join thread_rows using (utid) where is_idle = 0 and dur > 0""",
    "busy_processes": """
select ts, dur, upid from busy_cpus join thread using (utid) where upid is not null""",
    # A kilohertz is a millionth of a cycle in a nanosecond.
    "busy_cycles": """
select cpu, utid, dur, freq, dur::hugeint * freq / 1000 as millicycles
from span_join_by('busy_cpus', 'cpu_freqs', 'cpu')""",
    "cpu_cycles": _cycles("", "busy_cycles having count(*) > 0"),
    "cpu_cycles_per_cpu": _cycles("cpu, ", "busy_cycles group by cpu"),
    "cpu_cycles_per_thread": _cycles("utid, ", "busy_cycles group by utid"),
    "cpu_cycles_per_process": _cycles("upid, ", "busy_cycles join thread using (utid) group by upid"),
    "ftrace_event": f"""
select r.id, r.common_timestamp as ts, n.name, r.common_cpu as cpu, t.utid,
       {set_of("r.common_type", "r.event_row")} as arg_set_id,
       r.common_flags, r.common_cpu as ucpu
from (select *, row_number() over () - 1 as id,
             row_number() over (partition by common_type order by common_row) - 1 as event_row
      from (select *, row_number() over () as common_row from event_rows)) r
join event_names n on n.type = r.common_type
asof left join event_threads t on t.tid = r.common_pid and t.cpu = if(r.common_pid = 0, r.common_cpu, -1)
  and r.common_timestamp >= t.begin_ts
order by r.id""",  # noqa: S608 - ours
    # Of which process a record is, is that of the last record in which it was its own.
    "rss_values": """
select n, ts, upid, p.pid, p.name, member, size
from (select common_timestamp as ts, n, member, size,
             last_value(case when curr = 1 then common_pid end ignore nulls)
               over (partition by mm_id order by n) as tid
      from (select *, row_number() over () as n from rss_rows)) r
join task_process on task_process.tid = r.tid join process p on p.pid = task_process.pid""",
    "rss_points": """
select upid, any_value(pid) as pid, any_value(name) as process_name, ts,
       arg_max(size, n) filter (member = 1) as anon, arg_max(size, n) filter (member = 0) as file,
       arg_max(size, n) filter (member = 3) as shmem, arg_max(size, n) filter (member = 2) as swap
from rss_values group by upid, ts""",
    # A row for each record, whether it changes a size or not; of shared memory and swap most have none.
    "memory_rss_and_swap_per_process": """
with known as (
  select upid, pid, process_name, ts, last_value(anon ignore nulls) over own as anon_rss,
         last_value(file ignore nulls) over own as file_rss,
         last_value(shmem ignore nulls) over own as shmem_rss, last_value(swap ignore nulls) over own as swap
  from rss_points window own as (partition by upid order by ts)),
sums as (select *, anon_rss + file_rss + coalesce(shmem_rss, 0) as rss from known)
select ts, lead(ts, 1, (select end_ts from trace_bounds)) over (partition by upid order by ts) - ts as dur,
       upid, pid, process_name, anon_rss, file_rss, shmem_rss, rss, swap,
       anon_rss + coalesce(swap, 0) as anon_rss_and_swap, rss + coalesce(swap, 0) as rss_and_swap
from sums order by ts, upid""",
    "cpu_utilization_per_second": "from cpu_utilization_per_period(1000000000)",
}
