#!/bin/bash
# Run the kernel's ftracetest on the control files of stand_in.py, behind isolated.sh, with
# FOLDER PYTHON STAND_IN INCLUDE SUITE TESTS in the environment.
# ftracetest looks for a mount whose line in /proc/mounts says tracefs: the folder's name does.
set -u
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
