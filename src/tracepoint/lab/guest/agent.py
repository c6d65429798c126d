"""The first program in a guest: sets up the system, then answers requests in turn.

It is a shell script for busybox, so that no compiler is needed.  A request is one line
`run BYTES SECONDS`, `put BYTES PATH` or `get 0 PATH`, followed by BYTES bytes; the answer is one line
`STATUS BYTES` followed by that many bytes.  Both go through one virtio-serial port.  A request
`stream BYTES SECONDS MARK` is answered on a second port: what the script writes, as it comes, then
`MARK STATUS`.
"""

from __future__ import annotations

PORT_NAME = "tracepoint.lab"
OUTPUT_NAME = "tracepoint.output"
GREETING = b"tracepoint-guest 1\n"

# The port is looked up by name: its number depends on the machine, and writing to a wrong
# /dev/vport* quietly makes a plain file.  A read that ends without data means that the other
# side is closed; after five seconds of that the guest shuts down. Files for /tmp must not be hidden by a
# mount.
INIT = r"""#!/bin/busybox sh
echo "lab: the first program runs"
/bin/busybox mkdir -p /bin /sbin /usr/bin /usr/sbin /proc /sys /dev /run /tmp /mnt /root /etc /var
/bin/busybox --install -s /bin
export PATH=/lab/bin:/bin:/sbin:/usr/bin:/usr/sbin HOME=/root
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts pts /dev/pts
mount -t tmpfs shm /dev/shm
mount -t tmpfs run /run
[ "$(ls -A /tmp)" ] || mount -t tmpfs tmp /tmp
mkdir -p /run/lab
mount -t debugfs debug /sys/kernel/debug 2>/dev/null
mount -t tracefs trace /sys/kernel/tracing
for module in $(cat /lab/modules); do
  insmod "$module" || echo "lab: insmod $module failed" >/dev/kmsg
done
ip link set lo up 2>/dev/null
ln -s /proc/self/fd /dev/fd
ln -s fd/1 /dev/stdout
ln -s fd/2 /dev/stderr
[ -f /sbin/modprobe ] || ln -s /bin/modprobe /sbin/modprobe
while read -r kind source target options; do
  mkdir -p "$target"
  mount -t "$kind" -o "$options" "$source" "$target" || echo "lab: mount $target failed" >/dev/kmsg
done </lab/mounts

port=
output=
tries=0
while [ -z "$port" ] || [ -z "$output" ]; do
  for file in /sys/class/virtio-ports/*/name; do
    [ -f "$file" ] || continue
    read -r name <"$file"
    file=${file%/name}
    case "$name" in
    @PORT@) port=/dev/${file##*/} ;;
    @OUTPUT@) output=/dev/${file##*/} ;;
    esac
  done
  if [ $tries = 100 ]; then
    echo "lab: no virtio ports named @PORT@ and @OUTPUT@" >/dev/kmsg
    reboot -f
  fi
  tries=$((tries + 1))
  [ -n "$output" ] || sleep 0.1
done
exec 3<>"$port" 5<>"$output"
printf '%s' '@GREETING@
' >&3

answer() {
  size=$(stat -c %s "$2")
  { echo "$1 $size"; cat "$2"; } >&3
}

run_script() {
  dd bs="$1" count=1 iflag=fullblock <&3 >/run/lab/script 2>/dev/null
  (cd / && exec setsid timeout -s KILL "$2" sh /run/lab/script) </dev/null 3>&- 5>&-
}

silent=0
while [ $silent -lt 50 ]; do
  if ! read -r verb size rest <&3; then
    silent=$((silent + 1))
    sleep 0.1
    continue
  fi
  silent=0
  case "$verb" in
  run)
    run_script "$size" "$rest" >/run/lab/output 2>&1
    answer $? /run/lab/output
    ;;
  stream)
    # A pipe, so that what the script left running is not waited for; held open, so that it has no early end.
    rm -f /run/lab/pipe
    mkfifo /run/lab/pipe
    exec 4<>/run/lab/pipe
    cat /run/lab/pipe >&5 3>&- 4>&- &
    run_script "$size" "${rest% *}" >&4 2>&1 4>&-
    echo "${rest#* } $?" >&4
    exec 4>&-
    ;;
  put)
    mkdir -p "$(dirname "$rest")" 2>/run/lab/error
    if [ "$size" = 0 ]; then
      : >"$rest"
    else
      dd bs="$size" count=1 iflag=fullblock <&3 2>/dev/null >/run/lab/incoming
      cat /run/lab/incoming >"$rest" 2>/run/lab/error
    fi
    status=$?
    rm -f /run/lab/incoming
    [ $status = 0 ] && : >/run/lab/error
    answer $status /run/lab/error
    ;;
  get)
    cat "$rest" >/run/lab/outgoing 2>/run/lab/error
    status=$?
    if [ $status = 0 ]; then answer 0 /run/lab/outgoing; else answer $status /run/lab/error; fi
    rm -f /run/lab/outgoing
    ;;
  *)
    echo "unknown request $verb" >/run/lab/error
    answer 255 /run/lab/error
    ;;
  esac
done
reboot -f
"""


def init_script() -> bytes:
    """Return the text of `/init`."""
    text = INIT.replace("@PORT@", PORT_NAME).replace("@OUTPUT@", OUTPUT_NAME)
    return text.replace("@GREETING@\n", GREETING.decode()).encode()
