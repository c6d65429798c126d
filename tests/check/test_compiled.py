"""What the rules call an error of compilation is one: judged by the compiler and the kernel's headers."""

from __future__ import annotations

import pytest

from compiled import compile_header
from oracles import installed_headers
from tracepoint.check.engine import check_text
from tracepoint.errors import LabError

pytestmark = pytest.mark.oracle
HEADER = """
#undef TRACE_SYSTEM
#define TRACE_SYSTEM judged
#if !defined(_TRACE_JUDGED_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_JUDGED_H
#include <linux/tracepoint.h>
{}
#endif
#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE judged
#include <trace/define_trace.h>
"""
EVENT = (
    "TRACE_EVENT(judged_one, TP_PROTO({}), TP_ARGS({}), TP_STRUCT__entry(__field(int, n)), "
    "TP_fast_assign(__entry->n = 1;), TP_printk({}));"
)
GOOD = "int a", "a", '"%d", __entry->n'


@pytest.mark.parametrize(
    ("declaration", "code"),
    [
        (EVENT.format(*GOOD), None),
        (EVENT.format("int a", "a", '"%s", "text"'), None),
        (EVENT.format("int a", "a", '"%*d %pS", 3, __entry->n, (void *)0'), None),
        (EVENT.format("void", "", GOOD[2]), "TP111"),
        (EVENT.format("", "", GOOD[2]), "TP111"),
        (EVENT.format("int a", "a", '"text"'), "TP322"),
        ("DECLARE_TRACE(judged_bare, TP_PROTO(void), TP_ARGS());" + EVENT.format(*GOOD), "TP111"),
    ],
)
def test_the_compiler_agrees(tmp_path, declaration, code):
    installed_headers()
    path = tmp_path / "judged.h"
    path.write_text(HEADER.format(declaration))
    found = {d.code for d in check_text(path.read_text(), select=["TP111", "TP322"])}
    assert found == ({code} if code else set())
    if code is None:
        compile_header(path)
    else:
        with pytest.raises(LabError, match="error"):
            compile_header(path)
