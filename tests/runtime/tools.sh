#!/bin/bash
# What other programs make of the control files of traced_program.py, behind isolated.sh, with FOLDER PYTHON
# PROGRAM in the environment, and LIBTRACEFS, SHIM where libtracefs.c and mounts_shim.c could be built.
#
# Without a tracefs trace-cmd mounts one: it runs without that right, and is told of the folder by the shim.
set -u
cd "$FOLDER" || exit 1
mkdir -p tracefs
"$PYTHON" "$PROGRAM" "$FOLDER/tracefs" > program.log 2>&1 & program=$!
for _ in $(seq 300); do mountpoint -q tracefs && break; sleep 0.1; done
mountpoint -q tracefs || { cat program.log; exit 1; }

drop=-sys_admin,-sys_module,-sys_boot,-sys_rawio,-sys_time
weak() { setpriv --bounding-set=$drop --inh-caps=$drop "$@"; }
weak mount -t tracefs none /mnt 2> /dev/null && { echo "not isolated: tracefs can be mounted"; umount /mnt; exit 9; }

[ -n "$LIBTRACEFS" ] && { weak "$LIBTRACEFS" "$FOLDER/tracefs" shop order_placed > libtracefs.txt 2>&1; echo $? > libtracefs.status; }
echo "none $FOLDER/tracefs tracefs rw 0 0" > mounts
if [ -n "$LIBTRACEFS" ] && [ -n "$SHIM" ]; then
    MOUNTS=$FOLDER/mounts LD_PRELOAD=$SHIM weak "$LIBTRACEFS" shop order_placed > probe.txt 2>&1
    echo $? > probe.status
fi
if [ -n "$SHIM" ] && command -v trace-cmd > /dev/null; then
    # trace-cmd writes to these settings of the machine, and gives up when it cannot.
    for name in ftrace_enabled kptr_restrict; do
        echo 1 > "$name"
        [ -e "/proc/sys/kernel/$name" ] && mount --bind "$name" "/proc/sys/kernel/$name"
    done
    cmd() { MOUNTS=$FOLDER/mounts LD_PRELOAD=$SHIM weak trace-cmd "$@"; }
    cmd list -e '^shop' > list.txt 2>&1
    cmd list -e '^shop:order_placed$' -F > fields.txt 2>&1
    cmd record --nosplice -e shop -o record.dat sleep 1 > record.txt 2>&1
    cmd start -e shop > start.txt 2>&1
    sleep 0.5
    cmd stop >> start.txt 2>&1
    cat tracefs/trace > trace.txt
    cmd show > show.txt 2>&1
    cmd extract -o extract.dat > extract.txt 2>&1
    cmd reset > reset.txt 2>&1
    cat tracefs/set_event > left.txt
    for name in record extract; do cmd report -i $name.dat > $name.report 2> $name.errors; done
fi
kill $program
wait $program
