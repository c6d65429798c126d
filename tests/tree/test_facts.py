"""What the files of a kernel tell a renderer: constants, sizes, HZ, and which kernel they are of."""

import gzip
import lzma
import os
import struct

import pytest

from layout.btf_builder import BtfBuilder
from tracefile.making import GOLDEN, content_of, written
from tracepoint.cli.main import main
from tracepoint.errors import TreeError
from tracepoint.tracefile.options import OptionId, text_option
from tracepoint.tree.kernel_facts import KernelKnowledge, find_kernel_files, given_kernel_files

RELEASE = "9.9.0-1-amd64"
HEADER = """\
#undef TRACE_SYSTEM
#define TRACE_SYSTEM demo
#include <linux/demo.h>
/* {names} */
"""


def btf(**sizes):
    builder = BtfBuilder()
    builder.struct("task_struct", 64, [])
    for name, size in sizes.items():
        builder.struct(name, size, [])
    builder.enum("", {"ONLY_IN_BTF": 7, "DEMO_READ": 100, "UNLIKE": 1})
    builder.enum("other", {"UNLIKE": 2})
    return builder.build()


def boot_image(kernel):
    """An x86 boot image with a kernel in it."""
    packed = lzma.compress(kernel) + struct.pack("<I", len(kernel))
    head = bytearray(1024)
    head[0x1F1] = 1
    head[0x202:0x206] = b"HdrS"
    struct.pack_into("<II", head, 0x248, 32, len(packed))
    return bytes(head) + bytes(32) + packed


def put(root, files):
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


@pytest.fixture
def system(tmp_path):
    """A system with Debian's two halves of headers, a configuration and a boot image of one kernel."""
    root = tmp_path / "root"
    common = "usr/src/linux-headers-9.9.0-1-common"
    put(
        root,
        {
            f"{common}/include/linux/tracepoint.h": "",
            f"{common}/include/linux/demo.h": "enum { DEMO_READ, DEMO_WRITE };\n#define HIGH 3\n",
            f"{common}/include/trace/events/demo.h": HEADER.format(names="DEMO_READ DEMO_WRITE"),
            f"usr/src/linux-headers-{RELEASE}/Makefile": f"include {root}/{common}/Makefile\n",
            f"boot/config-{RELEASE}": "CONFIG_HZ_300=y\nCONFIG_HZ=300\n",
            f"boot/vmlinuz-{RELEASE}": boot_image(b"before" + btf(page=64)),
        },
    )
    return root


def test_what_is_installed_of_a_release(system):
    known = KernelKnowledge(find_kernel_files(RELEASE, roots=[system]))
    assert known.hz == 300
    # As the trace header sees it, before BTF, where another enum may have the name.
    assert (known.constant("DEMO_READ"), known.constant("DEMO_WRITE")) == (0, 1)
    assert (known.constant("ONLY_IN_BTF"), known.constant("UNLIKE"), known.constant("NOWHERE")) == (
        7,
        None,
        None,
    )
    assert (known.sizeof("struct page"), known.sizeof("struct nothing")) == (64, None)
    assert known.notes == []


@pytest.mark.parametrize("release", ["9.9.0-2-amd64", "9.9.0-1", "", "../x"])
def test_files_of_another_release_do_not_count(system, release):
    files = find_kernel_files(release, roots=[system])
    assert not files
    known = KernelKnowledge(files)
    assert (known.hz, known.constant("DEMO_READ"), known.sizeof("struct page")) == (None, None, None)


def test_headers_that_do_not_agree_tell_nothing(system):
    common = system / "usr/src/linux-headers-9.9.0-1-common"
    put(common, {"include/trace/events/other.h": "enum { DEMO_READ = 5 };\n"})
    known = KernelKnowledge(find_kernel_files(RELEASE, roots=[system]))
    assert (known.constant("DEMO_READ"), known.constant("DEMO_WRITE")) == (None, 1)


def test_packages_that_keep_the_image_with_the_modules(tmp_path):
    files = {"vmlinuz": boot_image(btf(page=64)), "config": "CONFIG_HZ=1000\n"}
    put(tmp_path, {f"usr/lib/modules/{RELEASE}/{name}": content for name, content in files.items()})
    for found in (find_kernel_files(RELEASE, roots=[tmp_path]), given_kernel_files(tmp_path)):
        known = KernelKnowledge(found)
        assert (known.hz, known.sizeof("struct page")) == (1000, 64)


def test_the_running_kernel_tells_only_about_its_own_release():
    running = os.uname().release
    other = find_kernel_files(running + "-x")
    assert not any(str(path).startswith(("/sys", "/proc")) for path in (*other.images, *other.configs))


def test_sources_of_the_version_that_was_recorded(tmp_path):
    put(
        tmp_path / "src",
        {"Makefile": "VERSION = 9\nPATCHLEVEL = 9\nSUBLEVEL = 4\n", "include/linux/tracepoint.h": ""},
    )
    found = [
        bool(find_kernel_files(release, version, [], [tmp_path / "src"]))
        for release, version in (
            ("9.9.4", ""),
            ("9.9.0-1", "#1 SMP Debian 9.9.4-2 (2026)"),
            ("9.9.0-1", "9.9.40"),
        )
    ]
    assert found == [True, True, False]


def test_an_image_that_cannot_be_used_is_noted(system):
    image = system / f"boot/vmlinuz-{RELEASE}"
    whole = image.read_bytes()
    for content, reason in ((whole[:-200], "cut off"), (whole.replace(b"7zXZ", b"7zXY"), "no BTF in it")):
        image.write_bytes(content)
        known = KernelKnowledge(find_kernel_files(RELEASE, roots=[system]))
        assert known.sizeof("struct page") is None
        assert reason in known.notes[0]


def test_what_is_given_need_not_be_installed(system, tmp_path):
    put(
        tmp_path,
        {"btf": btf(page=56), "config.gz": gzip.compress(b"CONFIG_HZ=100\n"), "config": "CONFIG_HZ=100\n"},
    )
    assert KernelKnowledge(given_kernel_files(tmp_path / "btf")).sizeof("struct page") == 56
    assert KernelKnowledge(given_kernel_files(tmp_path / "config")).hz == 100
    assert KernelKnowledge(given_kernel_files(tmp_path / "config.gz")).hz == 100
    known = KernelKnowledge(given_kernel_files(system))
    assert (known.hz, known.sizeof("struct page")) == (300, 64)
    headers = given_kernel_files(system / f"usr/src/linux-headers-{RELEASE}")
    assert KernelKnowledge(headers).constant("DEMO_WRITE") == 1
    os.mkfifo(tmp_path / "fifo")
    with (tmp_path / "sparse").open("wb") as file:
        file.write(b"\x9f\xeb")
        file.truncate(2 << 30)
    for wrong in (tmp_path / "nothing", system / "usr", tmp_path / "fifo"):
        with pytest.raises(TreeError):
            given_kernel_files(wrong)
    sparse = KernelKnowledge(given_kernel_files(tmp_path / "sparse"))
    assert sparse.sizeof("struct page") is None
    assert "more than 1024 MiB" in sparse.notes[0]


FORMAT = """\
name: look
ID: 401
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:u32 n;\toffset:8;\tsize:4;\tsigned:0;

print fmt: "%s size=%zu ms=%u", __print_symbolic(REC->n, {{ DEMO_WRITE, "write" }}), sizeof(struct page), {last}
"""


@pytest.fixture
def recorded(tmp_path):
    """A recording whose one event needs a constant, a size, HZ, and (with `jiffies`) what nobody knows."""

    def make(last="jiffies_to_msecs(REC->n)", release=RELEASE, kallsyms="ffffffff81000000 T _stext\n"):
        content = content_of(n_records=2, n_cpus=1)
        text = FORMAT.format(last=last).replace("ID: 401", "ID: 400")
        options = (*content.options[:1], text_option(OptionId.UNAME, f"Linux host {release} x86_64"))
        path = tmp_path / "some.dat"
        path.write_bytes(
            written(content._replace(formats=(("demo", text),), kallsyms=kallsyms, options=options))
        )
        return str(path)

    return make


def test_lines_are_the_kernels_with_facts(recorded, system, capsys):
    assert main(["read", recorded(), "--kernel-facts", str(system)]) == 0
    said = capsys.readouterr()
    assert [line.partition(": look: ")[2] for line in said.out.splitlines()[-2:]] == [
        "0x0 size=64 ms=0",
        "write size=64 ms=4",
    ]
    assert said.err == ""


def test_facts_of_the_same_release_are_found(recorded, system, capsys, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(system.parent / "cache"))
    (system.parent / "cache/tracepoint/kernels").mkdir(parents=True)
    system.rename(system.parent / "cache/tracepoint/kernels/linux-image_9.9")
    # Debian's Makefile names the other half by its path, which has moved; the rest is enough here.
    assert main(["read", recorded()]) == 0
    assert "size=64 ms=4" not in capsys.readouterr().out
    for path in (system.parent / "cache/tracepoint/kernels").rglob("Makefile"):
        path.write_text(f"include {path.parent.parent}/linux-headers-9.9.0-1-common/Makefile\n")
    assert main(["read", recorded()]) == 0
    assert capsys.readouterr().out.endswith("look: write size=64 ms=4\n")
    for other in ({"release": "9.9.0-2-amd64"}, {"kallsyms": ""}):
        assert main(["read", recorded(**other)]) == 0
        assert "write size" not in capsys.readouterr().out


def test_what_the_kernel_read_when_it_printed_is_named(recorded, system, capsys):
    assert main(["read", recorded(last="(jiffies - REC->n)"), "--kernel-facts", str(system), "-v"]) == 0
    said = capsys.readouterr()
    assert said.out.endswith("look: n=1\n")
    assert "demo:look" in said.err
    assert "jiffies, a variable of the kernel that was read when the line was printed" in said.err


def test_facts_that_are_not_there(capsys, tmp_path):
    assert main(["read", str(GOLDEN / "cut.v6.dat"), "--kernel-facts", str(tmp_path / "nothing")]) == 2
    assert "nothing: no such file or folder" in capsys.readouterr().err
