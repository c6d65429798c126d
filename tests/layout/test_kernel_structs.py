"""The list of the kernel's structs: every one can be laid out, and its bytes are those of the user ABI."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tracepoint.layout.abi import Abi
from tracepoint.layout.kernel_structs import STRUCTS, kernel_layout
from tracepoint.layout.sizes import TypeSizes
from tracepoint.source.ctype import CType

if TYPE_CHECKING:
    from pathlib import Path

HEADERS = ("netinet/in.h", "linux/errqueue.h", "linux/time_types.h")
#: Structs that a C compiler's headers have, under the kernel's names.
COMPILED = (
    "struct in_addr",
    "struct in6_addr",
    "struct sockaddr",
    "struct sockaddr_in",
    "struct sockaddr_in6",
    "struct sockaddr_storage",
    "struct sock_extended_err",
    "struct __kernel_timespec",
)


def shown(name: str) -> list[tuple[str, int]]:
    """Return the members of a struct that headers of user space name alike."""
    layout = kernel_layout(name)
    assert layout is not None
    left_out = ("__pad", "__data", "__align", "in6_u")
    return [(key, placed.offset) for key, placed in layout.members.items() if key not in left_out]


@pytest.mark.parametrize("long_size", [4, 8])
@pytest.mark.parametrize("name", STRUCTS)
def test_each_can_be_laid_out_and_layout_gives_it_the_same_size(name: str, long_size: int) -> None:
    layout = kernel_layout(name, long_size)
    assert layout is not None
    assert all(placed.offset < layout.size for placed in layout.members.values())
    sizes = TypeSizes(Abi.X86_64 if long_size == 8 else Abi.ARM)
    assert sizes.size_and_align(CType(name)) == (layout.size, layout.align)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler: apt-get install gcc")
def test_sizes_and_offsets_are_the_compilers(tmp_path: Path) -> None:
    wanted = [f"sizeof({name})" for name in COMPILED]
    wanted += [f"offsetof({name}, {key})" for name in COMPILED for key, _ in shown(name)]
    lines = "".join(f'printf("%zu\\n", {text});\n' for text in wanted)
    includes = "".join(f"#include <{header}>\n" for header in ("stddef.h", "stdio.h", *HEADERS))
    source = tmp_path / "a.c"
    macro = "#define s6_addr16 __in6_u.__u6_addr16\n#define s6_addr32 __in6_u.__u6_addr32\n"
    source.write_text(f"#define _GNU_SOURCE\n{includes}{macro}int main(void) {{ {lines} return 0; }}\n")
    subprocess.run(["cc", "-w", "-o", tmp_path / "a", source], check=True)
    printed = subprocess.run([tmp_path / "a"], capture_output=True, text=True, check=True).stdout.split()
    layouts = [kernel_layout(name) for name in COMPILED]
    ours = [layout.size for layout in layouts if layout is not None]
    ours += [offset for name in COMPILED for _, offset in shown(name)]
    assert dict(zip(wanted, ours, strict=True)) == dict(zip(wanted, map(int, printed), strict=True))


def test_page_table_entries_are_known_where_a_long_has_8_bytes() -> None:
    layout = kernel_layout("pte_t")
    assert layout is not None
    assert layout.size == 8
    assert kernel_layout("pte_t", 4) is None
