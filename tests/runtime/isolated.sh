#!/bin/bash
# Run a command where nothing of this machine's own tracing can be changed: `unshare -m --propagation private bash
# isolated.sh COMMAND...`.  Stops, saying why, unless the real tracefs is gone and /proc/sys read-only.
set -u
stop() { echo "not isolated: $1"; exit 9; }

for place in /sys/kernel/debug /sys/kernel/tracing; do
    while mountpoint -q "$place"; do umount -l "$place" || stop "$place cannot be detached"; done
done
for place in /proc/sys /sys; do
    mount --bind "$place" "$place" && mount -o remount,bind,ro "$place" || stop "$place cannot be made read-only"
done
awk '$3 == "tracefs" || $3 == "debugfs" {bad = 1} END {exit bad}' /proc/mounts || stop "there is a real tracefs"
[ -e /sys/kernel/tracing/trace ] && stop "/sys/kernel/tracing has files"
for file in /proc/sys/kernel/ftrace_enabled /proc/sys/kernel/sched_rt_runtime_us; do
    # Opening is enough to know, and changes nothing should it succeed.
    [ -e "$file" ] && (: >> "$file") 2> /dev/null && stop "$file can be written"
done
echo isolated
exec "$@"
