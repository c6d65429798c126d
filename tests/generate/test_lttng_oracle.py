"""LTTng probes judged by checkpatch.pl, and by the compiler against the kernel's own trace headers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import tracepoint
from guest import lttng_lab
from oracles import installed_headers, kernel_source
from tracepoint.errors import LabError
from tracepoint.generate.lttng.probe import lttng_probe
from tracepoint.tree.loader import source_folders

pytestmark = pytest.mark.oracle
ROOT = Path(__file__).parents[2]
HEADERS = [ROOT / f"examples/{name}.h" for name in ("swap", "traps", "every_field", "block_class")]
HEADERS += [ROOT / "tests/guest/lttng/kinds.h"]

#: Headers of the kernel whose probes need code, classes, enums, flags, strings, marks for perf.
BUILT = {
    "irq": "<linux/interrupt.h>",
    "oom": "<linux/mm.h>",
    "rcu": "<linux/sched.h>",
    "sched": "<linux/sched.h>",
    "signal": "<linux/sched/signal.h>",
    "skb": "<linux/skbuff.h>",
    "net": "<linux/netdevice.h>",
}


def check_patch(folder: Path, names: list[str]) -> str:
    script = kernel_source() / "scripts/checkpatch.pl"
    if shutil.which("perl") is None or not script.is_file():
        pytest.skip("checkpatch.pl or perl is missing")
    # Statements of an assignment may be long; fields stand after each other without commas or semicolons.
    ignored = "LONG_LINE,OPEN_ENDED_LINE,PARENTHESIS_ALIGNMENT,SPACING"
    options = ["--no-tree", "--strict", "--terse", "--no-summary", "--ignore", ignored, "-f"]
    done = subprocess.run(
        ["perl", script, *options, *names], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


@pytest.mark.parametrize("path", HEADERS, ids=lambda path: path.stem)
def test_probes_are_clean(path: Path, tmp_path: Path) -> None:
    files = lttng_probe(tracepoint.read_header(path))
    files.write(tmp_path)
    assert check_patch(tmp_path, [name for name in files if name.endswith((".c", ".h"))]) == ""


def test_checkpatch_would_find_something(tmp_path: Path) -> None:
    (tmp_path / "bad.c").write_text("int f(void) {\n  return (1);\n}\n")
    assert check_patch(tmp_path, ["bad.c"]) != ""


def test_probes_of_the_kernels_own_headers_build_without_warnings(tmp_path: Path) -> None:
    headers = installed_headers()
    try:
        source = lttng_lab.source_tree()
    except LabError as error:
        pytest.skip(str(error))
    tree = next((f for f in source_folders(headers) if (f / "include/trace/events/sched.h").exists()), None)
    if tree is None:
        pytest.skip(f"{headers} have no include/trace/events")
    for part in ("include", "scripts"):
        shutil.copytree(source / part, tmp_path / part)
    for name, include in BUILT.items():
        header = tracepoint.read_header(tree / f"include/trace/events/{name}.h")
        lttng_probe(header, includes=[include]).write(tmp_path, overwrite=True)
    shutil.copy(source / "src/Kbuild.common", tmp_path / "src")
    lines = [f"obj-$(CONFIG_LTTNG) += lttng-probe-{name}.o\n" for name in BUILT]
    (tmp_path / "src/probes/Kbuild").write_text(lttng_lab.BASE_KBUILD + "".join(lines))
    lttng_lab.make(
        headers, tmp_path / "src/probes", "CONFIG_LTTNG=m", "KCFLAGS=-Werror", "KBUILD_MODPOST_WARN=1"
    )
    built = sorted(path.stem.removeprefix("lttng-probe-") for path in (tmp_path / "src/probes").glob("*.ko"))
    assert built == sorted(BUILT)
