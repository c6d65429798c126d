#!/bin/bash
# Run the kernel's ftracetest on the control files of stand_in.py, where nothing of this machine can be changed.
#
# Started by `unshare -m --propagation private`, with FOLDER PYTHON STAND_IN INCLUDE SUITE TESTS in the
# environment.  ftracetest looks for a mount whose line in /proc/mounts says tracefs: the folder's name does.
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

mkdir -p "$FOLDER/tracefs" "$FOLDER/bin" "$FOLDER/logs"
command -v ping > /dev/null || ln -s "$(command -v busybox)" "$FOLDER/bin/ping"
export PATH="$FOLDER/bin:$PATH"
cd "$FOLDER" || exit 1
"$PYTHON" "$STAND_IN" "$INCLUDE" "$FOLDER/tracefs" > program.log 2>&1 & program=$!
for _ in $(seq 600); do
    grep -q ready program.log && break
    kill -0 $program || break
    sleep 0.1
done
cat program.log
# Without the right to mount, to load modules, or to set clocks the tests cannot undo the above.
drop=-sys_admin,-sys_module,-sys_boot,-sys_rawio,-sys_time
[ -n "$TESTS" ] && setpriv --bounding-set=$drop --inh-caps=$drop sh "$SUITE/ftracetest" -k -l "$FOLDER/logs" $TESTS
kill $program
wait $program
