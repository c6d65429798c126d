"""Headers compiled as they are written: what no kernel compiles is refused in the compiler's words."""

from __future__ import annotations

from pathlib import Path

import pytest

from oracles import installed_headers
from tracepoint.lab.build.as_written import compile_as_written
from tracepoint.lab.build.module import BuildError
from tracepoint.lab.kernels.headers import read_texts

pytestmark = pytest.mark.oracle
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TEXT = """\
#undef TRACE_SYSTEM
#define TRACE_SYSTEM bad
#if !defined(_TRACE_BAD_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_BAD_H
#include <linux/sched.h>
#include <linux/tracepoint.h>
TRACE_EVENT(bad,
	TP_PROTO(struct task_struct *t, const char *s, struct ringq *q),
	TP_ARGS(t, s, q),
	TP_STRUCT__entry(
		__field(int, n)
		__string(s, s)
	),
	TP_fast_assign(
		@ASSIGN@
		__assign_str(@DST@);
	),
	TP_printk("n=%d %s", __entry->n, __get_str(s))
);
#endif
#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE bad
#include <trace/define_trace.h>
"""


@pytest.fixture(scope="module")
def headers() -> Path:
    return installed_headers()


@pytest.fixture(scope="module")
def arguments(headers: Path) -> tuple[str, str]:
    """The arguments of __assign_str that this kernel takes, and others."""
    stages = "include/trace/stages/stage6_event_callback.h"
    has_one = "__assign_str(dst)" in "".join(read_texts(headers, [stages]).values())
    return ("s", "s, s") if has_one else ("s, s", "s")


def compiled(folder: Path, headers: Path, assign: str, dst: str) -> tuple[str, ...]:
    path = folder / "bad.h"
    path.write_text(TEXT.replace("@ASSIGN@", assign).replace("@DST@", dst))
    return compile_as_written(path, headers, path="drivers/bad.h")


@pytest.mark.parametrize(
    ("assign", "said"),
    [
        (
            "__entry->n = t->no_such_member;",
            "15:31: 'struct task_struct' has no member named 'no_such_member'",
        ),
        ("__entry->n = no_such_function(t);", "15:30: implicit declaration of function 'no_such_function'"),
        ("__entry->n = q->n + t->gone;", "15:38: 'struct task_struct' has no member named 'gone'"),
    ],
)
def test_what_does_not_compile(assign: str, said: str, tmp_path: Path, headers: Path, arguments) -> None:
    with pytest.raises(BuildError, match=r"do not compile for this kernel, as bad\.h is written") as caught:
        compiled(tmp_path, headers, assign, arguments[0])
    assert f"drivers/bad.h:{said}" in str(caught.value)


def test_assign_str_of_another_kernel(tmp_path: Path, headers: Path, arguments) -> None:
    with pytest.raises(BuildError, match=r"bad.h:\d+:\d+: macro \"__assign_str\""):
        compiled(tmp_path, headers, "__entry->n = t->pid;", arguments[1])


def test_what_compiles(tmp_path: Path, headers: Path, arguments) -> None:
    assert compiled(tmp_path, headers, "WARN_ON_ONCE(!t); __entry->n = t->pid;", arguments[0]) == ()


def test_a_struct_of_the_traced_code_is_named(tmp_path: Path, headers: Path, arguments) -> None:
    assert compiled(tmp_path, headers, "__entry->n = q->n;", arguments[0]) == ("struct ringq",)


@pytest.mark.parametrize("name", ["swap", "traps", "sched_switch"])
def test_examples_compile(name: str, headers: Path) -> None:
    assert compile_as_written(EXAMPLES / f"{name}.h", headers) == ()
