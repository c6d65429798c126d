"""Which kernel generated modules are for, and what is said when they do not compile for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from oracles import installed_headers
from tracepoint.cli.declare import generate_kernel
from tracepoint.cli.main import main
from tracepoint.errors import LabError
from tracepoint.lab.build.module import CompilerMessage, build_modules
from tracepoint.lab.kernels.definers import missing_names

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SWAP = str(EXAMPLES / "swap.h")
TEXT = """
#define TRACE_SYSTEM target
#include <linux/tracepoint.h>
TRACE_EVENT(bus_setup,
	TP_PROTO(struct spi_device *spi, int status),
	TP_ARGS(spi, status),
	TP_STRUCT__entry(__field(int, bus) __field(u32, mode) __field(int, status)),
	TP_fast_assign(
		__entry->bus = spi->controller->bus_num;
		__entry->mode = spi->mode & SPI_CPOL;
		__entry->status = status;
	),
	TP_printk("bus=%d mode=%x status=%d", __entry->bus, __entry->mode, __entry->status)
);
@MORE@
"""
PRIVATE = """
TRACE_EVENT(ring_push,
	TP_PROTO(struct ringq_of_nobody *q, int n),
	TP_ARGS(q, n),
	TP_STRUCT__entry(__field(int, n)),
	TP_fast_assign(__entry->n = q->n + n;),
	TP_printk("n=%d", __entry->n)
);
"""


@pytest.fixture
def headers() -> Path:
    return installed_headers()


def folder_with(arity: int, folder: Path) -> Path:
    """A folder that is a kernel's headers as far as its tracing macros go."""
    (folder / "include/linux").mkdir(parents=True)
    (folder / "include/trace/stages").mkdir(parents=True)
    (folder / "include/linux/tracepoint.h").write_text("#define TRACE_EVENT(x)\n")
    parameters = "dst, src" if arity == 2 else "dst"
    (folder / "include/trace/stages/stage6_event_callback.h").write_text(
        f"#define __assign_str({parameters})\n#define __string(a, b)\n#define __get_str(a)\n"
    )
    return folder


@pytest.mark.parametrize("arity", [1, 2])
def test_the_headers_of_the_running_kernel_decide(arity: int, tmp_path: Path, monkeypatch, capsys) -> None:
    folder = folder_with(arity, tmp_path / "lib/modules/6.0/build")
    monkeypatch.setattr(generate_kernel, "find_kernel_headers", lambda: folder)
    monkeypatch.setattr(generate_kernel, "_RUNNING", tmp_path / "lib/modules")
    (tmp_path / "s.h").write_text(
        "#define TRACE_SYSTEM s\nTRACE_EVENT(e, TP_PROTO(const char *name), TP_ARGS(name),"
        " TP_STRUCT__entry(__string(name, name)), TP_fast_assign(__assign_str(name);),"
        ' TP_printk("%s", __get_str(name)));\n'
    )
    assert main(["generate", "module", str(tmp_path / "s.h"), "--no-compile"]) == 0
    said = capsys.readouterr()
    assert ("__assign_str(name, name);" if arity == 2 else "__assign_str(name);") in said.out
    assert said.err.splitlines()[-1] == f"note: written for the kernel whose headers are in {folder}"


def test_what_is_said_without_headers(monkeypatch, capsys) -> None:
    def none_here() -> Path:
        raise LabError("none")

    monkeypatch.setattr(generate_kernel, "find_kernel_headers", none_here)
    assert main(["generate", "header", SWAP]) == 0
    assert "no kernel headers are installed: written for the newest kernel" in capsys.readouterr().err
    assert main(["generate", "module", SWAP, "--kernel-headers", "none"]) == 0
    assert "written for the newest kernel, as --kernel-headers none asks" in capsys.readouterr().err


def test_a_headers_folder_that_cannot_compile_is_said(tmp_path: Path, capsys) -> None:
    folder = folder_with(1, tmp_path / "headers")
    words = ["generate", "probe", f"{SWAP}:mm_page_swap_in", "--by-name", "--kernel-headers", str(folder)]
    assert main(words) == 0
    said = capsys.readouterr()
    assert "probe_hit" in said.out
    assert "note: not compiled: " in said.err


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("invalid use of undefined type 'struct pool'", "struct pool"),
        ("dereferencing pointer to incomplete type 'const struct pool'", "struct pool"),
        ("array type has incomplete element type 'struct pool'", "struct pool"),
        ("unknown type name 'pool_t'; did you mean 'bool'?", "pool_t"),
        ("'POOL_MAX' undeclared (first use in this function)", "POOL_MAX"),
        ("implicit declaration of function 'pool_id' [-Werror=implicit-function-declaration]", "pool_id()"),
        ("parameter 2 ('kind') has incomplete type", "enum pool_kind"),
        ("expected ')' before 'pool_t'", "pool_t"),
    ],
)
def test_missing_names(text: str, name: str) -> None:
    message = CompilerMessage("m.c", 1, 1, text)
    assert missing_names([message], {"kind": "enum pool_kind"}) == [(name, message)]


def test_other_errors_miss_no_name() -> None:
    message = CompilerMessage("m.c", 1, 1, "'struct pool' has no member named 'id'")
    assert missing_names([message], {}) == []


@pytest.mark.oracle
def test_what_is_needed_is_included(headers: Path, tmp_path: Path, capsys) -> None:
    (tmp_path / "t.h").write_text(TEXT.replace("@MORE@", ""))
    out = tmp_path / "out"
    words = ["generate", "module", str(tmp_path / "t.h"), "--kernel-headers", str(headers)]
    assert main([*words, "-o", str(out)]) == 0
    assert "note: <linux/spi/spi.h> is included for struct spi_device" in capsys.readouterr().err
    files = {path.name: path.read_text() for path in out.iterdir() if path.name != "Makefile"}
    assert [path.name for path in build_modules(files, headers)] == ["t_events.ko"]


@pytest.mark.oracle
def test_a_private_type_is_named_with_its_event(headers: Path, tmp_path: Path, capsys) -> None:
    (tmp_path / "t.h").write_text(TEXT.replace("@MORE@", PRIVATE + PRIVATE.replace("ring_push", "ring_pop")))
    out = tmp_path / "out"
    words = ["generate", "module", str(tmp_path / "t.h"), "--kernel-headers", str(headers), "-o", str(out)]
    assert main(words) == 2
    said = capsys.readouterr().err
    assert "ring_push needs struct ringq_of_nobody\n" in said
    assert "ring_pop needs struct ringq_of_nobody\n" in said
    assert "bus_setup needs" not in said
    assert not out.exists()
    (tmp_path / "private.h").write_text("struct ringq_of_nobody { int n; };\n")
    assert main([*words, "--with", '"private.h"']) == 0


@pytest.mark.oracle
def test_other_errors_are_the_compilers_words(headers: Path, tmp_path: Path, capsys) -> None:
    text = TEXT.replace("@MORE@", "").replace("spi->mode & SPI_CPOL", "spi->no_such_member")
    (tmp_path / "t.h").write_text(text)
    words = ["generate", "module", str(tmp_path / "t.h"), "--kernel-headers", str(headers)]
    assert main(words) == 5
    assert "'struct spi_device' has no member named 'no_such_member'" in capsys.readouterr().err
    assert main([*words, "--no-compile"]) == 0
