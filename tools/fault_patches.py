"""Patches for the faults of docs/explanation/real-faults.md: made, checked, compiled before and after.

`fault_patches.py --update` rewrites docs/explanation/fault-patches.md.  For each kernel it needs the
source (`~/.cache/tracepoint/sources`) and headers to compile against (`tracepoint lab get`).
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tracepoint.cli.main import main
from tracepoint.errors import TracepointError
from tracepoint.lab.build.compile import compile_file
from tracepoint.lab.build.patch import apply_patches, read_patch
from tracepoint.lab.build.stub import find_create_trace_points, module_compiler
from tracepoint.source.text import decode, encode
from tracepoint.tree.cache import cache_folder
from tracepoint.tree.kbuild import Kbuild
from tracepoint.tree.makefiles import MakefileFolders

PAGE = Path(__file__).resolve().parent.parent / "docs/explanation/fault-patches.md"
KERNELS = {"6.12": "6.12.*", "7.2": "7.2.*"}
RULES = "TP010,TP201,TP202,TP207,TP305,TP319"
#: The headers whose faults were read and confirmed in the source.
HEADERS = """
    arch/x86/kvm/trace.h drivers/base/trace.h drivers/gpu/drm/lima/lima_trace.h
    drivers/gpu/drm/radeon/radeon_trace.h drivers/hv/mshv_trace.h
    drivers/infiniband/hw/irdma/trace_cm.h drivers/net/wireless/ath/ath10k/trace.h
    drivers/scsi/sd_trace.h drivers/usb/cdns3/cdnsp-trace.h
    drivers/usb/dwc3/trace.h drivers/usb/gadget/udc/trace.h fs/nfs/nfstrace.h
    include/trace/events/firewire.h include/trace/events/libata.h include/trace/events/readahead.h
    include/trace/events/spmi.h net/wireless/trace.h
""".split()
AUTHOR = "A. Reader <reader@example.org>"


@dataclass(frozen=True)
class Row:
    """One patch: what it is for, and how its tree compiles without and with it."""

    header: str
    subject: str
    faults: tuple[str, ...]
    checkpatch: str
    before: str
    after: str


def make_patches(tree: Path, folder: Path) -> list[Path]:
    """Write the patches for the faults of a tree, in the order in which they apply."""
    headers = [str(tree / name) for name in HEADERS if (tree / name).is_file()]
    words = [
        "--fix",
        "--patch",
        "--select",
        RULES,
        "--author",
        AUTHOR,
        "--date",
        "2026-01-01",
        "-o",
        str(folder),
    ]
    status = main(["check", "-q", *words, *headers])
    if status > 1:
        raise TracepointError(f"{tree}: the patches could not be made")
    return sorted(folder.glob("*.patch"))


def describe(patch: Path) -> tuple[str, str, tuple[str, ...]]:
    """Return the header, the subject and the faults that a patch names."""
    text = patch.read_text(errors="surrogateescape")
    subject = text.partition("Subject: [PATCH] ")[2].partition("\n")[0]
    body = text.partition("\n\n")[2].partition("\n\n")[0].replace("\n   ", " ")
    faults = tuple(line.removeprefix(" - ") for line in body.split("\n"))
    return read_patch(text, patch.name)[0].target, subject, faults


def checkpatch(tree: Path, patch: Path) -> str:
    """Return what checkpatch --strict says of a patch, in a word."""
    command = ["perl", str(tree / "scripts/checkpatch.pl"), "--strict", "--no-tree", "--terse", str(patch)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tree)
    lines = [line for line in done.stdout.splitlines() if line.startswith(str(patch)) or "total:" in line]
    return "clean" if not done.returncode else "; ".join(lines)


def overlay(tree: Path, folder: Path, texts: dict[str, str], others: list[str]) -> None:
    """Make a tree of links to another one, with files of its own."""
    for name in (*texts, *others):
        source, target = tree, folder
        target.mkdir(exist_ok=True)
        for part in Path(name).parent.parts:
            for entry in source.iterdir():
                if not (target / entry.name).exists():
                    (target / entry.name).symlink_to(entry)
            source, target = source / part, target / part
            if target.is_symlink():
                target.unlink()
            target.mkdir(exist_ok=True)
        for entry in source.iterdir():
            if not (target / entry.name).exists():
                (target / entry.name).symlink_to(entry)
    for name, text in texts.items():
        place = folder / name
        place.unlink(missing_ok=True)
        place.write_bytes(encode(text))


def compiles(tree: Path, headers: Path, name: str, text: str) -> str:
    """Return how the C file that creates a header's events compiles with this text of the header."""
    source = find_create_trace_points(tree / name, tree)
    if source is None:
        return "no C file creates its events"
    creator = source.relative_to(tree.resolve()).as_posix()
    with TemporaryDirectory(prefix="tracepoint-") as scratch:
        folder = Path(scratch) / "tree"
        overlay(tree, folder, {name: text}, [creator, "include/trace/define_trace.h"])
        place = folder / creator
        added = [Path(path).relative_to(tree) for path in MakefileFolders().of(str(source.parent))]
        before = [f"-I{folder}/include", f"-I{place.parent}", *(f"-I{folder / path}" for path in added)]
        before += [f"-DCONFIG_{name}=1" for name in sorted(absent_options(tree, headers, creator))]
        messages = compile_file(module_compiler(headers), place, before)
    return f"no: {messages[0].text}" if messages else f"{creator.rpartition('/')[2]} compiles"


def absent_options(tree: Path, headers: Path, creator: str) -> set[str]:
    """Return the options that a C file is built with and that the kernel of the headers does not have."""

    def read(name: str) -> str | None:
        return decode((tree / name).read_bytes()) if (tree / name).is_file() else None

    given = decode((headers / "include/generated/autoconf.h").read_bytes())
    given_names = set(re.findall(r"^#define CONFIG_(\w+?)(?:_MODULE)? ", given, re.MULTILINE))
    return {either.partition("|")[0] for either in Kbuild(read).built(creator).options} - given_names


def rows_of(tree: Path, headers: Path | None) -> list[Row]:
    """Return a row for each patch of a tree; without `headers` nothing is compiled."""
    rows = []
    texts: dict[str, str] = {}

    def read(name: str) -> str | None:
        return texts.get(name) or decode((tree / name).read_bytes())

    with TemporaryDirectory(prefix="tracepoint-") as scratch:
        for patch in make_patches(tree, Path(scratch)):
            name, subject, faults = describe(patch)
            old = read(name) or ""
            changed = apply_patches([(patch.name, decode(patch.read_bytes()))], read)
            texts |= {path: file.text for path, file in changed.items() if file is not None}
            before = compiles(tree, headers, name, old) if headers else ""
            after = compiles(tree, headers, name, texts[name]) if headers else ""
            rows.append(Row(name, subject, faults, checkpatch(tree, patch), before, after))
            print(rows[-1].subject, file=sys.stderr)
    return rows


def write_page(made: dict[str, list[Row]]) -> str:
    """Return the text of the page about the patches for each kernel."""
    lines = [
        "# Patches for real faults",
        "",
        "What `tracepoint check --fix --patch` makes of [real faults](real-faults.md): for each kernel the",
        "patches, the faults that each fixes, what `checkpatch.pl --strict` says of it, and if the C file",
        "that creates the events compiles in that tree before and after: with the flags of Debian's headers,",
        "the options that the file is built with, and this machine's compiler. Made by",
        "`python tools/fault_patches.py --update`. `Fixes:` is left to fill: these sources have no history.",
        "",
    ]
    for series, rows in made.items():
        n_faults = sum(len(row.faults) for row in rows)
        lines += [f"## Linux {series}", "", f"{len(rows)} patches for {n_faults} faults.", ""]
        lines += ["| patch | header | faults | checkpatch | before | after |", "|---|---|---|---|---|---|"]
        for row in rows:
            faults = "<br>".join(row.faults)
            lines.append(
                f"| {row.subject} | {row.header} | {faults} | {row.checkpatch} | {row.before} | {row.after} |"
            )
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def make_all() -> dict[str, list[Row]]:
    """Return the rows of each kernel, compiled against the headers that `tracepoint lab get` fetched."""
    made = {}
    for series, pattern in KERNELS.items():
        tree = cache_folder() / "sources" / f"linux-source-{series}"
        made[series] = rows_of(tree, headers_of(pattern))
    return made


def headers_of(pattern: str) -> Path | None:
    """Return the headers of a kernel that `tracepoint lab get` fetched, None without any."""
    found = sorted((cache_folder() / "headers").glob(f"{pattern}/usr/src/linux-headers-*-amd64"))
    return found[-1] if found else None


if __name__ == "__main__":
    text = write_page(make_all())
    if "--update" in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
    else:
        print(text, end="")
