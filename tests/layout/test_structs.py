"""Sizes of structs that headers define, against the compiler of this machine."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tracepoint.errors import LayoutError
from tracepoint.layout.abi import Abi
from tracepoint.layout.compute import compute_layout
from tracepoint.layout.sizes import TypeSizes
from tracepoint.model.read import read_header_text

PLAIN = """
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long long u64;
"""
STRUCTS = """
#define __packed __attribute__((packed))
#define __aligned(x) __attribute__((aligned(x)))
#define __struct_group(TAG, NAME, ATTRS, MEMBERS...) \\
	union { struct { MEMBERS } ATTRS; struct TAG { MEMBERS } ATTRS NAME; } ATTRS
#define struct_group(NAME, MEMBERS...) __struct_group(, NAME, , MEMBERS)
#define LEN 3
#define renamed inner
#define sizeof_field(TYPE, MEMBER) sizeof((((TYPE *)0)->MEMBER))
#define offsetof(TYPE, MEMBER) __builtin_offsetof(TYPE, MEMBER)
#define __ALIGN_MASK(x, mask) (((x) + (mask)) & ~(mask))
#define ALIGN(x, a) __ALIGN_MASK(x, (__typeof__(x))(a) - 1)
#define SZ_DW(typ) (sizeof(struct ifc_##typ##_bits) / 32)
struct inner { u8 a; u32 b; };
union either { u8 c[5]; u16 d; };
typedef void (*call_t)(int);
typedef struct { u16 q; } own_t;
enum kind { ONE, TWO };
struct outer {
	struct inner i[LEN]; union either u; void (*fn)(int a, int b); call_t g; own_t z;
	unsigned int x:3, y:7; u8 w:4; unsigned long big:40;
	struct_group(grp, u8 g1; u8 g2;);
	struct { int deep; struct { u8 p, q; } more; };
	enum kind k:8; const char *name, *names[4]; u8 flex[];
};
struct pack { u8 a; u32 b; u64 c __aligned(4); } __packed __aligned(4);
struct bits { u8 a:4, b:4; u16 c:12; u32 :0; u8 d; u32 e:31, f:2; } ;
struct pbits { u8 a:4; u32 b:31; u16 c:12; } __packed;
#pragma pack(1)
struct pragma { u64 a; u8 b; };
#pragma pack()
struct renamed2 { struct renamed r; u8 tail; };
struct ifc_thing_bits { u8 a[0x20]; u8 b[0x18]; u8 c[0x8]; };
struct empty { };
"""
EXPRESSIONS = [
    *(
        f"sizeof(struct {tag})"
        for tag in ("inner", "outer", "pack", "bits", "pbits", "pragma", "renamed2", "empty")
    ),
    *("sizeof(union either)", "sizeof(own_t)", "sizeof(call_t)", "sizeof(struct renamed)"),
    *(
        f"offsetof(struct outer, {m})"
        for m in ("u", "fn", "z", "g1", "grp", "deep", "more.q", "i[1].b", "name", "flex")
    ),
    *("offsetof(struct pack, c)", "offsetof(struct bits, d)", "sizeof_field(struct outer, names)"),
    *("sizeof_field(struct outer, more.q)", "ALIGN(sizeof(struct outer), 64)", "SZ_DW(thing)"),
    *(
        "sizeof(((struct outer *)0)->i[0])",
        '(int)sizeof("text")',
        "__builtin_bswap16(0x102) + __builtin_bswap32(1)",
    ),
]


def sizes(extra: str = "", abi: Abi = Abi.X86_64) -> TypeSizes:
    header = read_header_text(f"#define TRACE_SYSTEM demo\n{STRUCTS}{extra}")
    return TypeSizes(abi, environment=header.environment)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler: apt-get install gcc")
def test_sizes_and_offsets_are_the_compilers(tmp_path: Path) -> None:
    lines = "".join(f'printf("%lld\\n", (long long)({e}));\n' for e in EXPRESSIONS)
    source = tmp_path / "a.c"
    source.write_text(f"#include <stdio.h>\n{PLAIN}{STRUCTS}int main(void) {{ {lines} return 0; }}\n")
    subprocess.run(["cc", "-w", "-o", tmp_path / "a", source], check=True)
    told = subprocess.run([tmp_path / "a"], capture_output=True, text=True, check=True).stdout.split()
    ours = sizes()
    assert {e: ours.evaluate(e) for e in EXPRESSIONS} == dict(zip(EXPRESSIONS, map(int, told), strict=True))


def test_pointers_are_as_large_as_the_abi_makes_them() -> None:
    assert sizes("struct p { char *a; u8 b; };").of("struct p").size == 16
    assert sizes("struct p { char *a; u8 b; };", Abi.ARM).of("struct p").size == 8


def test_a_record_with_a_struct_and_a_length_of_the_header() -> None:
    header = read_header_text(
        "#define TRACE_SYSTEM demo\nstruct cap { u8 a; __le32 b; } __packed;\n#define CAP_LEN sizeof(struct cap)\n"
        "TRACE_EVENT(tick, TP_PROTO(int n), TP_ARGS(n), TP_STRUCT__entry(__array(u8, raw, CAP_LEN)\n"
        '__field_struct(struct cap, cap) __field(u8, last)), TP_fast_assign(), TP_printk("x"));\n'
    )
    found = compute_layout(header["tick"], environment=header.environment)
    assert [(f.name, f.ctype, f.offset, f.size) for f in found.event_fields] == [
        ("raw", "u8[5]", 8, 5),
        ("cap", "struct cap", 13, 5),
        ("last", "u8", 18, 1),
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("struct bad { struct nowhere a; };", "struct nowhere"),
        ("struct bad { int a[UNKNOWN]; };", "UNKNOWN"),
        ("struct bad { struct bad a; };", "struct bad"),
        ("struct bad { int a:40; };", "40 bits"),
        ("struct bad { int a; } __aligned(3);", "power of two"),
        ("struct bad { MEMBERS };", "not understood"),
        ("struct bad { u8 a[1 << 20]; u8 b[1 << 20][1 << 20]; };", "larger|impossible"),
        ("struct bad { struct b2 a; }; struct b2 { struct bad b; };", "is not known"),
    ],
)
def test_what_has_no_known_size_is_an_error(text: str, reason: str) -> None:
    with pytest.raises(LayoutError, match=reason):
        sizes(text).of("struct bad", "a_field")
