"""Fixed texts of the control files: help, option names."""

from __future__ import annotations

# Defaults of the kernel's options; those in NO_EFFECT cannot be switched on here.
OPTIONS = {
    word.removeprefix("no"): not word.startswith("no")
    for word in (
        "print-parent nosym-offset nosym-addr noverbose noraw nohex nobin noblock trace_printk annotate "
        "nouserstacktrace nosym-userobj noprintk-msg-only context-info nolatency-format record-cmd "
        "norecord-tgid overwrite nodisable_on_free irq-info markers noevent-fork nopause-on-trace "
        "hash-ptr function-trace nofunction-fork nodisplay-graph nostacktrace notest_nop_accept "
        "notest_nop_refuse"
    ).split()
}
NO_EFFECT = frozenset({"test_nop_refuse"})
# A new instance has the options of the top but these: ZEROED_TRACE_FLAGS in kernel/trace/trace.c.
NOT_INHERITED = ("event-fork", "function-fork")

SYSTEM_FILTER = (
    "### global filter ###\n"
    "# Use this to set filters for multiple events.\n"
    "# Only events with the given fields will be affected.\n"
    "# If no events are modified, an error message will be displayed here\n"
)
SNAPSHOT_HELP = (
    "# Snapshot commands:\n"
    "# echo 0 > snapshot : Clears and frees snapshot buffer\n"
    "# echo 1 > snapshot : Allocates snapshot buffer, if not already allocated.\n"
    "#                      Takes a snapshot of the main buffer.\n"
    "# echo 2 > snapshot : Clears snapshot buffer (but does not allocate or free)\n"
    "#                      (Doesn't have to be '2' works with any number that\n"
    "#                       is not a '0' or '1')\n"
)
# That of a kernel whose rings cannot be swapped one by one, as Debian's are.
CPU_SNAPSHOT_HELP = (
    "# Snapshot commands:\n"
    "# echo 0 > snapshot : Invalid for per_cpu snapshot file.\n"
    "# echo 1 > snapshot : Not supported with this kernel.\n"
    "#                     Must use main snapshot file to allocate.\n"
    "# echo 2 > snapshot : Clears this cpu's snapshot buffer (but does not allocate)\n"
    "#                      (Doesn't have to be '2' works with any number that\n"
    "#                       is not a '0' or '1')\n"
)
NO_TRIGGER = (
    "# Available triggers:\n"
    "# traceon traceoff snapshot stacktrace enable_event disable_event enable_hist disable_hist hist\n"
)
README = """\
The trace events of one Python process, with the files of the kernel's tracefs.

  available_events            every event, system:event
  set_event                   events to record: [!]EVENT, [!]SYSTEM:EVENT; > replaces, >> adds
  set_event_pid               record only these threads
  events/enable               0, 1, or X for some
  events/SYSTEM/{enable,filter}
  events/SYSTEM/EVENT/{enable,filter,format,id,trigger,hist}
  tracing_on                  0 stops recording
  trace                       what was recorded; writing clears it
  trace_pipe                  the same, taken out while it is read
  trace_marker                text written here becomes a record
  trace_clock, trace_options, options/, buffer_size_kb, error_log
  per_cpu/cpuN                rings; every thread has one, cpuN shows those with number N modulo CPUs
  instances                   mkdir makes a set of rings with own events
  snapshot                    1 moves what was recorded here
  synthetic_events            events made by hist triggers: echo 'x u64 ns; char name[]' >> synthetic_events
  dynamic_events              the same as s:[synthetic/]NAME TYPE FIELD[; TYPE FIELD], and event probes

An event probe is an event that records fields of another one; -:[<group>/][<event>] removes it:
  e[:[<group>/][<event>]] <attached-group>.<attached-event> [<args>] [if <filter>]
  args   [<name>=]<fetch>[:<type>]
  fetch  $<field>, $comm, \\<number>, \\"<text>", +|-<bytes>(<fetch>) for what lies in the record
  type   string, symbol, u8 to u64, s8 to s64, x8 to x64, b<width>@<bit>/<size>, <type>[<count>]

A hist trigger: hist:keys=F[,F][:values=F][:sort=F][:size=N][:nohitcount]
  [:<var1>=<field|var_ref|numeric_literal>]
  handlers onmatch(system.event), onmax(var), onchange(var)
  actions  trace(<synthetic_event>,values), save(fields), snapshot()
"""
