"""Operators on intervals as DuckDB table macros: `from span_join_by('sched', 'linux_hard_irqs', 'cpu')`.

An interval is [ts, ts + dur) in ns; one with a `dur` of 0 is a point in time.  Tables are named by strings
and have the columns `ts` and `dur`, for `interval_intersect` also `id`.  Intervals without an end (`dur` -1)
are left out; only `intervals_overlap_count` counts them.  Operators whose name ends in `_by` take the name of
a column: only rows with equal values in it meet.
"""

from __future__ import annotations

from string import Template
from typing import NamedTuple

# A point is in an interval that begins at its time or before, and ends after it.
_INTERSECT = """
select greatest(a.ts, b.ts) as ts, least(a.ts + a.dur, b.ts + b.dur) - greatest(a.ts, b.ts) as dur,
       a.id as id_0, b.id as id_1, a.$key
from $a a join $b b on a.$key = b.$key and a.ts <= b.ts + b.dur and b.ts <= a.ts + a.dur
where a.dur >= 0 and b.dur >= 0
  and (greatest(a.ts, b.ts) < least(a.ts + a.dur, b.ts + b.dur)
       or (a.dur = 0 and b.ts <= a.ts and a.ts < b.ts + greatest(b.dur, 1))
       or (b.dur = 0 and a.ts <= b.ts and b.ts < a.ts + greatest(a.dur, 1)))
order by 1, id_0, id_1
"""

# What there is of a table changes at steps: where a row begins, and where one ends and no other begins.  The
# steps of both tables cut the time into pieces, and of each piece the last step before says what is there.
_STEPS = """
${t}_steps as (
  select * exclude (dur), true as in_${t} from ${t} where dur > 0
  union all by name
  select distinct $key, ts + dur as ts, false as in_${t} from ${t} where dur > 0
  and ($key, ts + dur) not in (select ($key, ts) from ${t} where dur > 0))
"""
_POINTS = """
  select ${t}.*, true as in_${t}, ${u}.* exclude ($key, ts)
  from ${t} asof left join ${u}_steps ${u} on ${t}.$key = ${u}.$key and ${t}.ts >= ${u}.ts where ${t}.dur = 0
"""
_SPANS = """
with a as (select * from $a where dur >= 0), b as (select * from $b where dur >= 0),
$a_steps, $b_steps,
edges as (select $key, ts from a_steps union select $key, ts from b_steps
          union select $key, ts from a where dur = 0 union select $key, ts from b where dur = 0),
pieces as (select $key, ts, lead(ts) over (partition by $key order by ts) - ts as dur from edges),
spans as (
  select p.*, a.* exclude ($key, ts), b.* exclude ($key, ts)
  from pieces p asof left join a_steps a on p.$key = a.$key and p.ts >= a.ts
  asof left join b_steps b on p.$key = b.$key and p.ts >= b.ts
  where p.dur is not null
  union all by name $a_points
  union all by name $b_points)
select * exclude (in_a, in_b) from spans where $where order by $key, ts, dur
"""

_OVERLAP = """
select $key, ts, (sum(sum(step)) over (partition by $key order by ts))::bigint as value
from (select $key, ts, 1 as step from $a union all select $key, ts + dur, -1 from $a where dur >= 0)
group by $key, ts order by $key, ts
"""

_LEADING = """
select *, coalesce(lead(ts) over track, (select end_ts from trace_bounds)) - ts as dur,
       lead(value) over track as next_value, value - lag(value) over track as delta_value
from $a window track as (partition by track_id order by ts) order by ts
"""

# A row counts in each period that it is in, for its part of it.
_UTILIZATION = """
create macro $name(period$argument) as table
with parts as (select unnest(range(ts // period, (ts + dur - 1) // period + 1)) as n, ts, dur
               from $source where dur > 0$chosen),
     sums as (select n, sum(least(ts + dur, (n + 1) * period) - greatest(ts, n * period)) / period as busy
              from parts group by n)
select (n * period)::bigint as ts, busy / (select max(cpu) + 1 from sched) as utilization,
       busy as unnormalized_utilization
from sums order by ts
"""


# From each begin to the first end after it.
_CREATE = """
select s.ts, e.ts - s.ts as dur from (select ts from $a) s asof join (select ts from $b) e on s.ts < e.ts
order by s.ts
"""

# Cut where any row begins or ends: a row for each piece and each row that covers it.
_SELF = """
with covering as (select * from $a where dur > 0),
edges as (select ts from covering union select ts + dur from covering),
pieces as (select ts, lead(ts) over (order by ts) - ts as dur, row_number() over (order by ts) as group_id
           from edges)
select p.ts, p.dur, p.group_id, c.id
from pieces p join covering c on c.ts <= p.ts and p.ts < c.ts + c.dur where p.dur is not null
order by p.ts, c.id
"""


class _Operator(NamedTuple):
    sql: str
    tables: tuple[str, ...]
    where: str = ""


_OPERATORS = {
    "interval_intersect": _Operator(_INTERSECT, ("a", "b")),
    "span_join": _Operator(_SPANS, ("a", "b"), "in_a and in_b"),
    "span_left_join": _Operator(_SPANS, ("a", "b"), "in_a"),
    "span_outer_join": _Operator(_SPANS, ("a", "b"), "in_a or in_b"),
    "intervals_overlap_count": _Operator(_OVERLAP, ("a",)),
}


def _with(sql: str, **parts: str) -> str:
    """Return SQL with parts in place of `$words`; those that have none stay."""
    return Template(sql).safe_substitute(parts)


def _macro(name: str, sql: str, words: tuple[str, ...]) -> str:
    """Return the statement that makes a macro of SQL, whose `$words` are its parameters."""
    text = "'" + sql.replace("'", "''") + "'"
    parts = {word: f"' || {word} || '" for word in words}
    return f"create macro {name}({', '.join(words)}) as table from query({_with(text, **parts)})"


def _macros() -> dict[str, str]:
    found = {
        "counter_leading_intervals": _macro("counter_leading_intervals", _LEADING, ("a",)),
        "interval_create": _macro("interval_create", _CREATE, ("a", "b")),
        "interval_self_intersect": _macro("interval_self_intersect", _SELF, ("a",)),
        **{
            name: _with(_UTILIZATION, name=name, argument=argument, source=source, chosen=chosen)
            for name, argument, source, chosen in (
                ("cpu_utilization_per_period", "", "active_cpus", ""),
                ("cpu_thread_utilization_per_period", ", thread", "busy_cpus", " and utid = thread"),
                ("cpu_process_utilization_per_period", ", process", "busy_processes", " and upid = process"),
            )
        },
    }
    steps = {
        "a_steps": _with(_STEPS, t="a"),
        "b_steps": _with(_STEPS, t="b"),
        "a_points": _with(_POINTS, t="a", u="b"),
        "b_points": _with(_POINTS, t="b", u="a"),
    }
    for name, (sql, tables, where) in _OPERATORS.items():
        own = _with(_with(sql, **steps), where=where)
        found[f"{name}_by"] = _macro(f"{name}_by", own, (*tables, "key"))
        # Without a key all rows have the same one.
        sources = {table: _with("(select *, 0 as _all from $$$table)", table=table) for table in tables}
        whole = _with("select * exclude (_all) from ($own)", own=_with(own, key="_all", **sources))
        found[name] = _macro(name, whole, tables)
    return found


#: The statements that make the macros, by name.
MACROS = _macros()
