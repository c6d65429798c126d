"""Operators on intervals as DuckDB table macros: `from span_join_by('sched', 'linux_hard_irqs', 'cpu')`.

An interval is [ts, ts + dur) in ns; one with a `dur` of 0 is a point in time.  Tables are named by strings
and have the columns `ts` and `dur`, for `interval_intersect` also `id`.  Intervals without an end (`dur` -1)
are left out; only `intervals_overlap_count` counts them.  Operators whose name ends in `_by` take the name of
a column: only rows with equal values in it meet.
"""

from __future__ import annotations

from string import Template

from tracepoint.named import NamedTuple

# A point is in an interval that begins at its time or before, and ends after it.
_INTERSECT = """
select greatest(a.ts, b.ts) as ts, least(a.ts + a.dur, b.ts + b.dur) - greatest(a.ts, b.ts) as dur,
       $ids, b.id as id_$n, a.$key
from ($rows) a join $table b on a.$key = b.$key and a.ts <= b.ts + b.dur and b.ts <= a.ts + a.dur
where a.dur >= 0 and b.dur >= 0
  and (greatest(a.ts, b.ts) < least(a.ts + a.dur, b.ts + b.dur)
       or (a.dur = 0 and b.ts <= a.ts and a.ts < b.ts + greatest(b.dur, 1))
       or (b.dur = 0 and a.ts <= b.ts and b.ts < a.ts + greatest(a.dur, 1)))
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


# The value of a field as what it is, a number or a text.  The columns have other names than those that a
# query may name here.
_EXTRACT = """
create macro extract_arg(arg_set, arg_key) as (
  select coalesce(own_int::variant, own_string::variant, own_real::variant) from (
    select arg_set_id as own_set, key as own_key, int_value as own_int, string_value as own_string,
           real_value as own_real
    from args)
  where own_set = arg_set and own_key = arg_key)
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


# Between the rows of a key, before the first and after the last nothing is known but the key.
_GAPS = """
with present as (select * from $a where dur > 0),
ends as (
  select $key, max(ts + dur) over (partition by $key order by ts rows unbounded preceding) as ts,
         lead(ts) over (partition by $key order by ts) as stop
  from present),
gaps as (
  select $key, (select start_ts from trace_bounds) as ts, min(ts) as stop from present group by $key
  union all select $key, ts, coalesce(stop, (select end_ts from trace_bounds)) from ends
  union all
  select distinct a.$key, start_ts, end_ts from $a a, trace_bounds
  where not exists (select 1 from present where present.$key is not distinct from a.$key))
select * from present
union all by name select $key, ts, stop - ts as dur from gaps where stop > ts
order by $key, ts
"""


class _Operator(NamedTuple):
    sql: str
    tables: tuple[str, ...]


def _intersect(tables: tuple[str, ...]) -> str:
    """Return the SQL for the common parts of some tables."""
    rows = "select ts, dur, id as id_0, $key from $a"
    for n, table in enumerate(tables[1:], 1):
        ids = ", ".join(f"a.id_{m}" for m in range(n))
        rows = _with(_INTERSECT, rows=rows, ids=ids, n=str(n), table=f"${table}")
    # The id of the second table comes before that of the first.
    return f"{rows} order by ts, id_1, {', '.join(f'id_{n}' for n in range(len(tables)))}"


def _steps(where: str) -> str:
    """Return the SQL for the pieces into which the rows of two tables cut the time."""
    parts = {
        "a_steps": _with(_STEPS, t="a"),
        "b_steps": _with(_STEPS, t="b"),
        "a_points": _with(_POINTS, t="a", u="b"),
        "b_points": _with(_POINTS, t="b", u="a"),
    }
    return _with(_with(_SPANS, **parts), where=where)


def _with(sql: str, **parts: str) -> str:
    """Return SQL with parts in place of `$words`; those that have none stay."""
    return Template(sql).safe_substitute(parts)


# `interval_intersect` takes two tables or more.
_TABLES = "abcdefgh"


def _operators() -> dict[str, list[_Operator]]:
    """Return the operators that there are with and without a key, each for the numbers of tables it takes."""
    several = [tuple(_TABLES[:n]) for n in range(2, len(_TABLES) + 1)]
    return {
        "interval_intersect": [_Operator(_intersect(tables), tables) for tables in several],
        "span_join": [_Operator(_steps("in_a and in_b"), ("a", "b"))],
        "span_left_join": [_Operator(_steps("in_a"), ("a", "b"))],
        "span_outer_join": [_Operator(_steps("in_a or in_b"), ("a", "b"))],
        "intervals_overlap_count": [_Operator(_OVERLAP, ("a",))],
        "intervals_fill_gaps": [_Operator(_GAPS, ("a",))],
    }


def _form(sql: str, words: tuple[str, ...]) -> str:
    """Return a form of a macro: SQL whose `$words` are its parameters."""
    text = "'" + sql.replace("'", "''") + "'"
    parts = {word: f"' || {word} || '" for word in words}
    return f"({', '.join(words)}) as table (from query({_with(text, **parts)}))"


def _macro(name: str, *forms: str) -> str:
    return f"create macro {name}{', '.join(forms)}"


def _without_key(operator: _Operator) -> str:
    """Return the form of an operator without a key: all rows have the same one."""
    sources = {table: _with("(select *, 0 as _all from $$$table)", table=table) for table in operator.tables}
    own = _with(operator.sql, key="_all", **sources)
    return _form(_with("select * exclude (_all) from ($own)", own=own), operator.tables)


def _macros() -> dict[str, str]:
    found = {
        "counter_leading_intervals": _macro("counter_leading_intervals", _form(_LEADING, ("a",))),
        "interval_create": _macro("interval_create", _form(_CREATE, ("a", "b"))),
        "interval_self_intersect": _macro("interval_self_intersect", _form(_SELF, ("a",))),
        "extract_arg": _EXTRACT,
        **{
            name: _with(_UTILIZATION, name=name, argument=argument, source=source, chosen=chosen)
            for name, argument, source, chosen in (
                ("cpu_utilization_per_period", "", "active_cpus", ""),
                ("cpu_thread_utilization_per_period", ", thread", "busy_cpus", " and utid = thread"),
                ("cpu_process_utilization_per_period", ", process", "busy_processes", " and upid = process"),
            )
        },
    }
    for name, operators in _operators().items():
        with_key = [_form(one.sql, (*one.tables, "key")) for one in operators]
        found[f"{name}_by"] = _macro(f"{name}_by", *with_key)
        found[name] = _macro(name, *(_without_key(one) for one in operators))
    return found


#: The statements that make the macros, by name.
MACROS = _macros()
