"""The first program in a guest: sets up the system, then answers requests in turn.

It is a shell script for busybox, so that no compiler is needed.  A request is one line
`run BYTES SECONDS`, `put BYTES PATH` or `get 0 PATH`, followed by BYTES bytes; the answer is one line
`STATUS BYTES` followed by that many bytes.  Both go through one virtio-serial port.  A request
`stream BYTES SECONDS MARK` is answered on a second port: what the script writes, as it comes, then
`MARK STATUS`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.lab.guest import initramfs

if TYPE_CHECKING:
    from collections.abc import Iterable

PORT_NAME = "tracepoint.lab"
OUTPUT_NAME = "tracepoint.output"
GREETING = b"tracepoint-guest 1\n"

# The port is looked up by name: its number depends on the machine, and writing to a wrong
# /dev/vport* quietly makes a plain file.  A read that ends without data means that the other
# side is closed; after five seconds of that the guest shuts down.  Under emulation each process costs some
# 10 ms, so folders and links come with the ram disk and `mount` is called twice: what lies in /dev needs
# another /dev first.
INIT = r"""#!/bin/busybox sh
echo "lab: the first program runs"
/bin/busybox --install -s /bin
export PATH=/lab/bin:/bin:/sbin:/usr/bin:/usr/sbin HOME=/root
mount -a
cp -a /lab/dev/. /dev
mount -a -T /lab/fstab
while read -r module; do
  insmod "$module" || echo "lab: insmod $module failed" >/dev/kmsg
done </lab/modules
ip link set lo up 2>/dev/null
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
  dd bs="$1" count=1 iflag=fullblock <&3 >/lab/run/script 2>/dev/null
  (cd / && exec setsid timeout -s KILL "$2" sh /lab/run/script) </dev/null 3>&- 5>&-
}

silent=0
pipes=0
while [ $silent -lt 50 ]; do
  if ! read -r verb size rest <&3; then
    silent=$((silent + 1))
    sleep 0.1
    continue
  fi
  silent=0
  case "$verb" in
  run)
    run_script "$size" "$rest" >/lab/run/output 2>&1
    answer $? /lab/run/output
    ;;
  stream)
    # A pipe, so that what the script left running is not waited for; held open, so that it has no early end.
    pipes=$((pipes + 1))
    mkfifo /lab/run/pipe$pipes
    exec 4<>/lab/run/pipe$pipes
    cat /lab/run/pipe$pipes >&5 3>&- 4>&- &
    run_script "$size" "${rest% *}" >&4 2>&1 4>&-
    echo "${rest#* } $?" >&4
    exec 4>&-
    ;;
  put)
    mkdir -p "$(dirname "$rest")" 2>/lab/run/error
    if [ "$size" = 0 ]; then
      : >"$rest"
    else
      dd bs="$size" count=1 iflag=fullblock <&3 2>/dev/null >/lab/run/incoming
      cat /lab/run/incoming >"$rest" 2>/lab/run/error
    fi
    status=$?
    rm -f /lab/run/incoming
    [ $status = 0 ] && : >/lab/run/error
    answer $status /lab/run/error
    ;;
  get)
    cat "$rest" >/lab/run/outgoing 2>/lab/run/error
    status=$?
    if [ $status = 0 ]; then answer 0 /lab/run/outgoing; else answer $status /lab/run/error; fi
    rm -f /lab/run/outgoing
    ;;
  *)
    echo "unknown request $verb" >/lab/run/error
    answer 255 /lab/run/error
    ;;
  esac
done
reboot -f
"""


_FOLDERS = (
    *("bin", "sbin", "usr/bin", "usr/sbin", "proc", "sys", "run", "tmp", "mnt", "root", "var"),
    *("lab/run", "lab/dev/pts", "lab/dev/shm"),
)
_LINKS = {
    "sbin/modprobe": "/bin/modprobe",
    "lab/dev/fd": "/proc/self/fd",
    "lab/dev/stdout": "fd/1",
    "lab/dev/stderr": "fd/2",
}
_MOUNTS = (("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", "/run"))
_LATER_MOUNTS = (
    ("devpts", "/dev/pts"),
    ("tmpfs", "/dev/shm"),  # noqa: S108 (in the guest)
    ("debugfs", "/sys/kernel/debug"),
    ("tracefs", "/sys/kernel/tracing"),
)


def system_entries(*, has_own_tmp: bool) -> dict[str, initramfs.ArchiveEntry]:
    """Return what `/init` needs of the ram disk; /tmp is mounted unless files are brought there."""
    mounts = (*_MOUNTS, *(() if has_own_tmp else (("tmpfs", "/tmp"),)))  # noqa: S108 (in the guest)
    return {
        "init": initramfs.regular(_init_script(), 0o755),
        "dev/console": initramfs.character_device(5, 1),
        "dev/null": initramfs.character_device(1, 3),
        "etc/fstab": initramfs.regular(_fstab(mounts)),
        "lab/fstab": initramfs.regular(_fstab(_LATER_MOUNTS)),
        **{path: initramfs.folder() for path in _FOLDERS},
        **{path: initramfs.link(target) for path, target in _LINKS.items()},
    }


def _fstab(mounts: Iterable[tuple[str, str]]) -> bytes:
    return "".join(f"{kind} {target} {kind} defaults 0 0\n" for kind, target in mounts).encode()


def _init_script() -> bytes:
    text = INIT.replace("@PORT@", PORT_NAME).replace("@OUTPUT@", OUTPUT_NAME)
    return text.replace("@GREETING@\n", GREETING.decode()).encode()
