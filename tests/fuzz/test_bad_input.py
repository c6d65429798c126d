"""Bad input through the program itself: a clear error, no traceback, no hang, no huge memory.

Each case runs in a process of its own under limits of CPU time and memory.
"""

from __future__ import annotations

import gzip
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tracepoint.source.lexer import lex
from tracepoint.source.text import SourceFile

pytestmark = pytest.mark.limits

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
CPU_S = 30
MEMORY_BYTES = 2 << 30
SWAP = (EXAMPLES / "swap.h").read_text()
DEEP = 50_000


def limits() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def run(*words: str) -> subprocess.CompletedProcess[bytes]:
    done = subprocess.run(
        [sys.executable, "-m", "tracepoint", *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        preexec_fn=limits,
        timeout=CPU_S * 4,
        check=False,
    )
    assert done.returncode in (0, 1, 2, 3), (done.returncode, done.stderr[-2000:])
    assert b"Traceback" not in done.stderr
    assert b"internal error" not in done.stderr, done.stderr[-2000:]
    assert b"out of memory" not in done.stderr
    return done


def event(*, proto: str = "int n", fields: str = "__field(int, n)", printk: str = '"%d", __entry->n') -> str:
    return (
        "#undef TRACE_SYSTEM\n#define TRACE_SYSTEM bad\n"
        f"TRACE_EVENT(a, TP_PROTO({proto}), TP_ARGS(n), TP_STRUCT__entry({fields}),"
        f" TP_fast_assign(__entry->n = n;), TP_printk({printk}));\n"
    )


HEADERS: dict[str, str | bytes] = {
    "empty": "",
    "nul bytes": event().replace("int n", "int\0 n").encode(),
    "only nul": bytes(4096),
    "latin-1": b"/* Andr\xe9 */\n" + event().encode(),
    "utf-16": event().encode("utf-16"),
    "crlf": event().replace("\n", "\r\n"),
    "unbalanced open": event().replace("TP_ARGS(n)", "TP_ARGS((n)"),
    "unbalanced close": event().replace("TP_ARGS(n)", "TP_ARGS(n))"),
    "unclosed string": event(printk='"%d, __entry->n'),
    "unclosed comment": event() + "/* never",
    "unclosed conditional": "#if 1\n" + event(),
    "stray endif": event() + "#endif\n#else\n#elif 1\n",
    "unknown directive": "#frobnicate\n#define\n#include\n#if\n" + event(),
    "line of 10 MB": event(printk='"' + "x" * (10 << 20) + '"'),
    "10 MB of one comment line": "/*" + "*" * (10 << 20) + "*/\n" + event(),
    "10 MB of stars without end": "/*" + "* " * (5 << 20),
    "10 MB of backslashes": "\\\n" * (5 << 20) + event(),
    "ten million quotes": '"' * (10 << 20),
    "many names": event(fields="__field(int, n) " + "x " * 5_000_000),
    "deep parentheses": event(printk='"%d", ' + "(" * DEEP + "1" + ")" * DEEP),
    "deep parentheses, open": event(printk='"%d", ' + "(" * DEEP),
    "deep negation": event(printk='"%d", ' + "- " * DEEP + "1"),
    "deep ternary": event(printk='"%d", ' + "1 ? " * DEEP + "1" + " : 2" * DEEP),
    "deep blocks": event().replace("__entry->n = n;", "{" * DEEP + "}" * DEEP),
    "deep casts": event(printk='"%d", ' + "(int)" * DEEP + "1"),
    "deep members": event(printk='"%d", __entry' + "->n" * DEEP),
    "deep indices": event(printk='"%d", __entry->n' + "[0" * DEEP + "]" * DEEP),
    "deep pointers": event(proto="int " + "*" * DEEP + "n"),
    "deep conditionals": "#if 1\n" * DEEP + event() + "#endif\n" * DEEP,
    "long sum": event(printk='"%d", ' + "1 + " * DEEP + "1"),
    "recursive macro": "#define A B\n#define B A\n#define F(x) F(F(x))\n" + event(printk='"%d", F(A)'),
    "self-pasting macro": "#define P(x) P##x(x)\n#define PP(x) P(x)\n" + event(printk='"%d", P(P)'),
    "macro bomb": "#define M0 x x x x x x x x x x\n"
    + "".join(
        f"#define M{i} M{i - 1} M{i - 1} M{i - 1} M{i - 1} M{i - 1} M{i - 1} M{i - 1}\n" for i in range(1, 30)
    )
    + event(fields="__field(int, n) M29"),
    "argument bomb": "#define D(x) x x\n" + event(printk='"%d", ' + "D(" * 60 + "n" + ")" * 60),
    "paste bomb": "#define D(x) x##x\n#define E(x) D(x)\n"
    + event(printk='"%d", ' + "E(" * 60 + "n" + ")" * 60),
    "huge number": event(printk='"%d", ' + "9" * 100_000),
    "huge shift": event(printk='"%d", 1 << (1 << 62)'),
    "huge array": event(fields="__array(int, n, 0x7fffffffffffffff)"),
    "negative array": event(fields="__array(int, n, -1)"),
    "division by zero": event(fields="__array(int, n, 1 / 0)"),
    "huge loop": event().replace("__entry->n = n;", "for (i = 0; i < 1000000000; i++) __entry->n = i;"),
    "endless loop": event().replace("__entry->n = n;", "while (1) __entry->n = n;"),
    "huge width": event(printk='"%2147483647d %.*d", __entry->n, 2147483647, __entry->n'),
    "includes itself": '#include "bad.h"\n' + event(),
    "includes a device": '#include "/dev/zero"\n#include </dev/zero>\n' + event(),
    "no parts": "TRACE_EVENT();\nTRACE_EVENT(a);\nDEFINE_EVENT(,);\nDECLARE_TRACE(a, b);\n",
    "two thousand events": "".join(event().replace("(a,", f"(a{i},") for i in range(2000)),
}
COMMANDS = (["check"], ["try"], ["fmt", "--check"], ["show", "--as", "header"], ["show"])


@pytest.mark.parametrize("name", HEADERS)
def test_bad_headers(name: str, tmp_path: Path) -> None:
    text = HEADERS[name]
    path = tmp_path / "bad.h"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    commands = COMMANDS if path.stat().st_size < 1 << 20 else COMMANDS[:3]
    for words in commands:
        run(*words, "-q", str(path))


@pytest.mark.parametrize("step", [7, 31])
def test_truncated_headers(step: int, tmp_path: Path) -> None:
    """Cut after every so many tokens: the program says where the text ends too early, or copes."""
    tokens = lex(SourceFile("swap.h", SWAP))
    paths = []
    for number, token in enumerate(tokens[::step]):
        path = tmp_path / f"cut{number}.h"
        path.write_text(SWAP[: token.start])
        paths.append(str(path))
    for words in COMMANDS[:3]:
        run(*words, *paths)


def test_unbalanced_says_line_and_column(tmp_path: Path) -> None:
    path = tmp_path / "bad.h"
    path.write_text(event().replace("TP_ARGS(n)", "TP_ARGS((n)"))
    done = run("check", "--output-format", "concise", str(path))
    assert done.returncode == 1
    assert re.match(rb".*bad\.h:3:1: TP001 ", done.stdout)


FORMAT = (
    "name: a\nID: 7\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n"
    '\tfield:int n;\toffset:8;\tsize:4;\tsigned:1;\n\nprint fmt: "%d", REC->n\n'
)
FORMATS: dict[str, str | bytes] = {
    "cut in a field": FORMAT[:90],
    "no print fmt": FORMAT[: FORMAT.index("print fmt")],
    "id is not a number": FORMAT.replace("7", "seven"),
    "huge offset": FORMAT.replace("offset:8", "offset:99999999999999999999"),
    "negative size": FORMAT.replace("size:4", "size:-4"),
    "field twice": FORMAT.replace("common_type", "n"),
    "nul bytes": FORMAT.replace("int n", "int\0n"),
    "not utf-8": FORMAT.encode() + b"\xff\xfe",
    "ten million bytes": FORMAT + "x" * (10 << 20),
    "only its first word": "name:",
}


@pytest.mark.parametrize("name", FORMATS)
def test_bad_format_files(name: str, tmp_path: Path) -> None:
    text = FORMATS[name]
    path = tmp_path / "bad" / "a" / "format"
    path.parent.mkdir(parents=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    done = run("show", str(path))
    if done.returncode == 2:
        assert str(path).encode() in done.stderr
        assert b"line " in done.stderr


ELF = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x01\x00\x3e\x00" + bytes(44)
OBJECTS = {
    "magic only": b"\x7fELF",
    "no sections": ELF,
    "random bytes after the magic": ELF[:16] + bytes(range(256)) * 64,
    "all ones": ELF[:20] + b"\xff" * 4096,
    "gzip of nothing": b"\x1f\x8b\x08" + bytes(7),
    "cut xz": b"\xfd7zXZ\0\0\4",
    "zstd": b"\x28\xb5\x2f\xfd" + bytes(64),
    "bzip2 bomb header": b"BZh91AY&SY" + b"\xff" * 64,
}


@pytest.mark.parametrize("name", OBJECTS)
def test_corrupt_objects(name: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.ko"
    path.write_bytes(OBJECTS[name])
    done = run("show", str(path))
    if done.returncode:
        assert done.stderr.startswith(b"tracepoint: error: ")


def test_gzip_bomb(tmp_path: Path) -> None:

    path = tmp_path / "bomb.ko.gz"
    path.write_bytes(gzip.compress(bytes(64 << 20)))
    done = run("show", str(path))
    assert done.returncode == 2
    assert b"not an ELF file" in done.stderr


@pytest.mark.parametrize("word", ["/dev/null", "/", "nosuch.h", "a\nb", "\udcff.h"])
def test_odd_paths(word: str, tmp_path: Path) -> None:
    if word == "/":
        word = str(tmp_path)
    for command in ("check", "try", "fmt", "show"):
        run(command, word)
