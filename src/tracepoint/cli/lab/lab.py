"""`tracepoint lab`: kernels from Debian packages, and guests that run commands in them."""

from __future__ import annotations

import argparse
import codecs
import json
import os
import shlex
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracepoint.cli import numbers
from tracepoint.cli.files import read_bytes
from tracepoint.cli.lab import build as lab_build
from tracepoint.cli.lab import suites
from tracepoint.cli.output import add_output_arguments, example_text
from tracepoint.cli.status import EXIT_DONE, EXIT_TOOL_FAILED
from tracepoint.errors import LabError
from tracepoint.lab.build.module import disk_errors
from tracepoint.lab.guest import machine as lab_guest
from tracepoint.lab.guest.terminal import run_shell
from tracepoint.lab.guest.workloads import WORKLOADS, workload_files
from tracepoint.lab.kernels import packages
from tracepoint.lab.kernels.headers import fetch_headers, find_headers
from tracepoint.lab.kernels.modules import module_name
from tracepoint.lab.kernels.suites import apt_options
from tracepoint.lab.kernels.supported import ANY_KERNEL, KERNELS, find_kernel
from tracepoint.layout.compressed import MODULE_ENDS
from tracepoint.tree.cache import cache_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracepoint.cli.output import Output

SCHEMA = "tracepoint.lab.kernels.supported/1"
_DEFAULT = "6.1"
_SECONDS = 60
_ANY = (b"",)  # a guest takes any file
_FLAVOURS = {"cloud": "few drivers, small to download", "full": "nearly all modules"}


@dataclass(frozen=True, slots=True)
class Verb:
    """One subcommand of `lab`: a line of help, a full description, and examples, which the tests run."""

    summary: str
    description: str
    examples: tuple[str, ...]


VERBS = {
    "kernels": Verb(
        "list the kernels, and which of them are downloaded",
        "List the kernels that guests can boot: supported ones, those in the cache, those built from source.",
        ("tracepoint lab kernels", "tracepoint lab kernels --json"),
    ),
    "get": Verb(
        "download and unpack a kernel and its headers, without root",
        "Download Debian's packages of kernels and their headers; unpack them in the cache, without root.\n"
        "Prints release, version and image of each, then the folder of its headers, for building modules.",
        ("tracepoint lab get 6.1 6.12", "tracepoint lab get 6.12 --no-headers"),
    ),
    "run": Verb(
        "run modules, a script or a command in a guest, and return its status",
        "Boot a kernel in QEMU, load modules, run a script or a shell command as root, and end the guest.\n"
        "This machine is not changed. Output is shown as it comes; the exit status is the command's.\n"
        "Options end at the first WORD: what follows belongs to the command.",
        (
            "tracepoint lab run uname -a",
            "tracepoint lab run --kernel 6.12 'grep -c . /sys/kernel/tracing/available_events'",
            "tracepoint lab run --modprobe xfs ls /sys/kernel/tracing/events/xfs",
        ),
    ),
    "build": Verb(
        "build a kernel from source, with patches, for guests",
        "Build a kernel with a small configuration for guests: Debian's source of a series, or your own\n"
        "tree, with patches. The tree stays as it is. The first build takes minutes, later ones build only\n"
        "what changed. `lab run --kernel built:NAME` boots the result.",
        (
            "tracepoint lab build --kernel 6.12 --patch swap.patch",
            "tracepoint lab build --kernel ./linux --config DEBUG_LIST=y --jobs 4",
        ),
    ),
    "shell": Verb(
        "open a shell in a guest on this terminal; Ctrl-A X ends it",
        "Boot a kernel in QEMU with a root shell on this terminal. `exit`, or Ctrl-A X, ends the guest.",
        ("tracepoint lab shell --modprobe xfs", "tracepoint lab shell --workload hog --memory 80"),
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands and their arguments."""
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    parsers = {
        name: verbs.add_parser(
            name,
            help=verb.summary,
            description=verb.description,
            epilog=example_text(verb.examples),
            allow_abbrev=False,
        )
        for name, verb in VERBS.items()
    }
    parsers["kernels"].add_argument("--json", action="store_true", help=f"print JSON ({SCHEMA})")
    suites.add_argument(parsers["kernels"])
    get = parsers["get"]
    get.add_argument("kernels", nargs="+", metavar="KERNEL", help="such as 6.1, or a linux-image package")
    get.add_argument(
        "--no-headers", action="store_true", help="only the kernel: no modules can be built for it"
    )
    suites.add_argument(get)
    _add_run(parsers["run"])
    lab_build.add_arguments(parsers["build"], _DEFAULT)
    _add_machine(parsers["shell"])
    for one in parsers.values():
        add_output_arguments(one)


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s [OPTION ...] [WORD ...]"
    _add_machine(parser)
    parser.add_argument(
        "--timeout",
        type=numbers.whole(1, 86_400),
        metavar="S",
        help=f"time limit of the command in seconds ({_SECONDS}, more on a slow machine)",
    )
    parser.add_argument(
        "words",
        nargs=argparse.REMAINDER,
        metavar="WORD",
        help="modules (FILE.ko, also compressed), then a script or a shell command with its arguments",
    )


def _add_machine(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--kernel", default=_DEFAULT, metavar="KERNEL", help=f"or built:NAME; default: {_DEFAULT}"
    )
    parser.add_argument("--image", type=Path, metavar="FILE", help="boot this bzImage or vmlinux instead")
    suites.add_argument(parser)
    parser.add_argument(
        "--memory", type=numbers.whole(64, 1 << 20), default=512, metavar="MB", help="default: 512"
    )
    parser.add_argument("--cpus", type=numbers.whole(1, 255), default=2, metavar="N", help="default: 2")
    parser.add_argument(
        "--modprobe",
        action="append",
        default=[],
        metavar="MODULE",
        help="load a module of the kernel's package",
    )
    parser.add_argument(
        "--file",
        action="append",
        default=[],
        metavar="HERE:THERE",
        help="put a file into the guest; repeatable",
    )
    parser.add_argument(
        "--workload",
        action="append",
        default=[],
        choices=[workload.name for workload in WORKLOADS],
        help="copy a program of this machine into the guest, and run it when no WORD is given; repeatable",
    )


def run(args: argparse.Namespace, out: Output) -> int:
    """Run the subcommand; raises LabError for what the lab cannot do."""
    with disk_errors(cache_folder()):
        match args.verb:
            case "kernels":
                return _kernels(args, out)
            case "get":
                return _get(args, out)
            case "build":
                return lab_build.run(args, out, _DEFAULT)
            case "run":
                return _run(args, out)
            case _:
                return _shell(args, out)


def _kernels(args: argparse.Namespace, out: Output) -> int:
    rows = _listing() + _offered(args, out)
    if args.json:
        out.line(json.dumps({"schema": SCHEMA, "kernels": rows}, indent=1))
        return EXIT_DONE
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        headers = "with headers" if row["has_headers"] else "no headers"
        here = f"{row['release']} ({row['version']}), {headers}" if row["release"] else "not here"
        out.line(f"{out.style(row['name'].ljust(width), 'bold')}  {row['what']:<30}  {here}")
    out.say(f"kept in {cache_folder()}; `tracepoint lab get KERNEL` fetches one")
    return EXIT_DONE


def _listing() -> list[dict[str, Any]]:
    """Return the supported kernels, the newest of each in the cache, then others in the cache."""
    rows = []
    shown = set()
    for kernel in KERNELS:
        images = packages.cached_kernels(kernel)
        shown |= {image.package for image in images}
        rows.append(_row(kernel.name, _FLAVOURS[kernel.flavour], images[-1] if images else None))
    for done in sorted((cache_folder() / "kernels").glob("linux-image-*/.complete")):
        package = done.parent.name.rpartition("_")[0]
        if package not in shown:
            image = packages.cached_kernels(find_kernel(package))[-1]
            rows.append(_row(package, "by its package name", image))
    built = {image.package: image for image in packages.built_kernels()}
    rows += [_row(name, "built from source", image) for name, image in sorted(built.items())]
    return rows


def _offered(args: argparse.Namespace, out: Output) -> list[dict[str, Any]]:
    """Return the kernels of the requested suites, the newest of each suite first."""
    rows = []
    for suite in args.suite:
        for package in packages.candidates(ANY_KERNEL, apt_options([suite], out.say)):
            images = packages.cached_kernels(find_kernel(package))
            rows.append(_row(package, f"in {suite}", images[-1] if images else None))
    return rows


def _row(name: str, what: str, image: packages.KernelImage | None) -> dict[str, Any]:
    return {
        "name": name,
        "what": what,
        "package": image.package if image else "",
        "version": image.version if image else "",
        "release": image.release if image else "",
        "image": str(image.image) if image else "",
        "has_headers": image is not None and find_headers(image) is not None,
    }


def _get(args: argparse.Namespace, out: Output) -> int:
    apt = apt_options(args.suite, out.say)
    for name in args.kernels:
        out.say(f"looking for kernel {name}")
        image = packages.fetch_kernel(name, apt)
        out.line(f"{image.release} {image.version} {image.image}")
        if not args.no_headers:
            out.line(f"headers {fetch_headers(image, out.say, apt)}")
    return EXIT_DONE


def _run(args: argparse.Namespace, out: Output) -> int:
    words = args.words[1:] if args.words[:1] == ["--"] else args.words
    modules, rest = _split(words or [" && ".join(args.workload)])
    script, command = _command(rest)
    if not command and not modules:
        raise LabError("nothing to run: name a module, a script, a command or a --workload")
    files = _files(args.file) | script | workload_files(args.workload)
    out.detail(f"booting kernel {args.image or args.kernel}")
    image = _image(args, out)
    plan = lab_guest.GuestPlan(image, args.memory, args.cpus, files, tuple(args.modprobe))
    with lab_guest.boot_plan(plan, out.warn) as guest:
        out.detail(f"booted {guest.image.release} in {guest.boot_seconds:.1f} s")
        for module in modules:
            if guest.run(f"[ -e /sys/module/{shlex.quote(module_name(module))} ]", check=False).status == 0:
                raise LabError(f"{module}: the kernel already has a module {module_name(module)}")
            guest.insmod(module)
        return _run_command(guest, command, args, out) if command else EXIT_DONE


def _run_command(guest: lab_guest.Guest, command: str, args: argparse.Namespace, out: Output) -> int:
    """Run a shell command, show its output as it comes, and return its status."""
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")

    def show(data: bytes) -> None:
        out.write(decoder.decode(data))
        out.flush()

    seconds = args.timeout or guest.limit(_SECONDS)
    begin = time.monotonic()
    status = guest.stream(command, show, seconds)
    out.write(decoder.decode(b"", final=True))
    if status == 137 and (words := guest.killed_for_memory):
        out.error(f"the command was killed: {args.memory} MB of memory are not enough (--memory)\n{words}")
    elif status == 137:
        is_late = time.monotonic() - begin >= 0.9 * seconds
        why = f"it may take {seconds} s (--timeout)" if is_late else "by SIGKILL"
        out.error(f"the command was killed{': ' if is_late else ' '}{why}")
    if status:
        out.say(f"status {status}; the guest's console: {guest.log_path}")
    return status


def _image(args: argparse.Namespace, out: Output) -> packages.KernelImage:
    if args.image is not None:
        return packages.image_file(args.image)
    return packages.fetch_kernel(args.kernel, apt_options(args.suite, out.say))


def _split(words: Sequence[str]) -> tuple[list[Path], list[str]]:
    """Split the words into the leading modules and the rest; LabError when a module is missing."""
    modules = []
    rest = list(words)
    while rest and rest[0].endswith(MODULE_ENDS):
        path = Path(rest.pop(0))
        if not path.is_file():
            raise LabError(f"{path}: no such module")
        modules.append(path)
    return modules, rest


def _command(words: Sequence[str]) -> tuple[dict[str, bytes], str]:
    """Return the files that a command needs in the guest, and its shell text."""
    if not words:
        return {}, ""
    path = Path(words[0])
    if words[0].startswith(("./", "../")) and not path.exists() and len(words[0].split()) == 1:
        raise LabError(f"{words[0]}: no such script")
    if path.is_file() and (os.sep in words[0] or path.suffix == ".sh"):
        place = f"/lab/bin/{path.name}"
        data = read_bytes(path, _ANY)
        start = "" if data.startswith((b"#!", b"\x7fELF")) else "sh "
        return {place: data}, start + shlex.join([place, *words[1:]])
    return {}, words[0] if len(words) == 1 else shlex.join(words)


def _files(given: Sequence[str]) -> dict[str, bytes]:
    """Read the files of `--file`; raises LabError for a word that is not a pair of paths."""
    files = {}
    for word in given:
        here, _, there = word.rpartition(":")
        if not here or not there.startswith("/") or ".." in there.split("/"):
            raise LabError(f"--file {word}: write HERE:THERE, THERE being a full path in the guest")
        files["/" + "/".join(part for part in there.split("/") if part)] = read_bytes(Path(here), _ANY)
    return files


def _shell(args: argparse.Namespace, out: Output) -> int:
    if not sys.stdin.isatty():
        raise LabError("stdin is not a terminal: `tracepoint lab run 'COMMANDS'` works without one")
    image = _image(args, out)
    out.say(f"booting {image.release}; Ctrl-A X ends the guest")
    status = run_shell(
        image,
        memory_mb=args.memory,
        cpus=args.cpus,
        modules=args.modprobe,
        files=_files(args.file) | workload_files(args.workload),
        terminal=os.environ.get("TERM", "linux"),
        say=out.warn,
    )
    return EXIT_TOOL_FAILED if status else EXIT_DONE
