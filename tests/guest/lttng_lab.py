"""LTTng in a guest: Debian's tools unpacked without root, its modules built for one kernel, a session recorded.

All that takes long is kept below the cache: the unpacked packages (once a version), the tracer's own
modules (once a version and kernel). A session needs neither the network nor root.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import debian_packages
from tracepoint.errors import LabError
from tracepoint.lab.guest import machine as lab_guest
from tracepoint.lab.kernels import packages
from tracepoint.lab.kernels.headers import fetch_headers
from tracepoint.tree.cache import cache_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracepoint.generate import FileSet
    from tracepoint.lab.kernels.packages import KernelImage

SOURCE = "lttng-modules-dkms"
TOOLS = tuple(
    "lttng-tools liblttng-ctl0 liblttng-ust-ctl5 liblttng-ust-common1 liburcu8 libpopt0 libkmod2 libxml2 "
    "libicu72 libnuma1 zlib1g liblzma5 libzstd1 libssl3 libc6 libgcc-s1 libstdc++6 "
    "babeltrace2 libbabeltrace2-0 libglib2.0-0 libpcre2-8-0 libelf1 libdw1 libbz2-1.0".split()
)
# All that LTTng's own build would make beside the tracer fails where a stable kernel changed a
# prototype; the tracer itself needs these three only.
BASE_KBUILD = """TOP_LTTNG_MODULES_DIR := $(shell dirname $(lastword $(MAKEFILE_LIST)))/../..
include $(TOP_LTTNG_MODULES_DIR)/src/Kbuild.common
ccflags-y += -I$(TOP_LTTNG_MODULES_DIR)/include
"""
BASE_PROBES = ("lttng-kprobes", "lttng-uprobes", "lttng-kretprobes")
LIBRARIES = "usr/lib/x86_64-linux-gnu"
SCRIPT = r"""
mkdir -p /lib64 /usr/lib /lib /var
ln -sf /run /var/run
ln -sf /lttng/lib64/ld-linux-x86-64.so.2 /lib64/
ln -sfn /lttng/usr/lib/x86_64-linux-gnu /usr/lib/x86_64-linux-gnu
ln -sfn /lttng/lib/x86_64-linux-gnu /lib/x86_64-linux-gnu
ln -sfn /lttng/usr/share /usr/share
mkdir -p /lib/modules
ln -sfn /modules/lib/modules/$(uname -r) /lib/modules/$(uname -r)
echo 'root:x:0:0:root:/root:/bin/sh' >/etc/passwd
echo 'root:x:0:' >/etc/group
ip link set lo up
export LTTNG_UST_REGISTER_TIMEOUT=0
PATH=/lttng/usr/bin:$PATH
set -e
lttng-sessiond --background --kmod-probes=@PROBES@ >/tmp/sessiond.log 2>&1 || { cat /tmp/sessiond.log; exit 1; }
lttng --no-sessiond create lab --output=/tmp/recorded
lttng --no-sessiond enable-event --kernel '@EVENTS@'
lttng --no-sessiond start
@FIRE@
lttng --no-sessiond destroy
tar -C /tmp -cf /tmp/recorded.tar recorded
"""


def unpack(names: Sequence[str], label: str) -> Path:
    """Return Debian packages unpacked in the cache; raises LabError when apt cannot give them."""
    return debian_packages.unpack(names, f"lttng/{label}")


def make(headers: Path, folder: Path, *variables: str) -> str:
    """Build the modules below a folder with warnings as errors; raises LabError with the last lines."""
    command = ["nice", "make", "-C", str(headers), f"M={folder}", "-j2", *variables, "modules"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = (done.stdout + done.stderr).splitlines()
        errors = [line for line in lines if "error: " in line]
        tail = "\n".join(errors[:12] or lines[-12:])
        raise LabError("modules do not build", " ".join(command), done.returncode, tail)
    return done.stdout


def source_tree() -> Path:
    """Return the unpacked source of lttng-modules."""
    return next((unpack([SOURCE], "source") / "usr/src").glob("lttng-modules-*"))


def tracer(image: KernelImage) -> Path:
    """Return a tree of lttng-modules in which the tracer is built for a kernel (75 CPU seconds, once)."""
    source = source_tree()
    folder = cache_folder() / "lttng" / f"{source.name}-{image.release}"
    if not folder.exists():
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            tree = Path(scratch) / "tree"
            shutil.copytree(source, tree)
            lines = [f"obj-$(CONFIG_LTTNG) += {name}.o\n" for name in BASE_PROBES]
            (tree / "src/probes/Kbuild").write_text(BASE_KBUILD + "".join(lines))
            make(fetch_headers(image), tree / "src", "CONFIG_LTTNG=m")
            debian_packages.keep(tree, folder)
    return folder


def build_probes(image: KernelImage, files: Sequence[FileSet], folder: Path, extra: Path) -> list[Path]:
    """Build generated probes beside a copy of LTTng's headers; `extra` has the kernel module they are for.

    The sources of LTTng are untouched, so that several builds may go on at once.
    """
    built = tracer(image)
    for part in ("include", "scripts"):
        shutil.copytree(source_tree() / part, folder / part, dirs_exist_ok=True)
    for one in files:
        one.write(folder, overwrite=True)
    probes = folder / "src/probes"
    shutil.copy(source_tree() / "src/Kbuild.common", folder / "src")
    lines = [path.read_text() for path in sorted(probes.glob("Kbuild.*"))]
    (probes / "Kbuild").write_text(BASE_KBUILD + f"ccflags-y += -I{extra}\n" + "".join(lines))
    symbols = f"KBUILD_EXTRA_SYMBOLS={built / 'src/Module.symvers'} {extra / 'Module.symvers'}"
    make(fetch_headers(image), probes, "CONFIG_LTTNG=m", symbols, "KCFLAGS=-Werror")
    return sorted(probes.glob("*.ko"))


def module_folder(image: KernelImage, extra: Sequence[Path], folder: Path) -> Path:
    """Lay out lib/modules/RELEASE with LTTng's modules and `extra`, as libkmod wants it."""
    target = folder / "lib/modules" / image.release
    (target / "extra").mkdir(parents=True)
    for path in (*(tracer(image) / "src").rglob("*.ko"), *extra):
        shutil.copy(path, target / "extra")
    for name in ("modules.order", "modules.builtin", "modules.builtin.modinfo"):
        (target / name).write_text("")
    packages.run_tool([shutil.which("depmod") or "/sbin/depmod", "-b", str(folder), image.release], 60)
    return folder


def record(
    image: KernelImage,
    kernel_modules: Sequence[Path],
    probes: Sequence[Path],
    fire: str,
    folder: Path,
    events: Sequence[str] = (),
) -> Path:
    """Record a session while the guest runs `fire`; return the folder with the CTF trace."""
    tools = unpack(TOOLS, "tools")
    names = ",".join(path.stem.removeprefix("lttng-probe-") for path in probes)
    script = SCRIPT.replace("@PROBES@", names).replace("@FIRE@", fire)
    script = script.replace("@EVENTS@", ",".join(events) or "--all --tracepoint")
    shares = {"/lttng": tools, "/modules": module_folder(image, probes, folder / "modules")}
    with lab_guest.boot(image.package, memory_mb=1024, shares=shares) as guest:
        for path in kernel_modules:
            guest.insmod(path)
        guest.run(script, timeout=120)
        # A lockup says that this machine is busy: the processors of the guest did not run.
        said = "dmesg | grep -v 'BUG: soft lockup' | grep -iE 'BUG|WARNING|lttng.*(error|fail)' || true"
        words = guest.run(said).text
        if words.strip():
            raise LabError("the kernel complained while LTTng recorded", log_tail=words)
        data = guest.get("/tmp/recorded.tar")
    with tarfile.open(fileobj=BytesIO(data)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "recorded"


def babeltrace(trace: Path) -> list[tuple[str, str]]:
    """Return the events of a trace as (name, payload text)."""
    tools = unpack(TOOLS, "tools")
    program = shutil.which("babeltrace2")
    env = dict(os.environ)
    if program is None:
        program = str(tools / "usr/bin/babeltrace2")
        env["LD_LIBRARY_PATH"] = f"{tools / LIBRARIES}"
        env["BABELTRACE_PLUGIN_PATH"] = str(tools / LIBRARIES / "babeltrace2/plugins")
        env["LIBBABELTRACE2_PLUGIN_PROVIDER_DIR"] = str(tools / LIBRARIES / "babeltrace2/plugin-providers")
    done = subprocess.run([program, str(trace)], capture_output=True, text=True, check=False, env=env)
    if done.returncode:
        raise LabError("babeltrace2 refuses the trace", program, done.returncode, done.stderr[-2000:])
    pattern = re.compile(r"^\[[^]]*\] \([^)]*\) (?:\S+ )?(\w+): (?:\{ cpu_id = \d+ \}, )?(.*)$")
    return [(m[1], m[2]) for line in done.stdout.splitlines() if (m := pattern.match(line))]
