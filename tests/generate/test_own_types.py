"""What a header defines for itself comes along into the module that is made of it."""

from __future__ import annotations

import pytest

from generate.samples import header_of_text
from oracles import installed_headers
from tracepoint.generate import kernel_module, read_facts
from tracepoint.lab.build.module import build_modules
from tracepoint.tree.kernel_files import read_kernel_files
from tracepoint.tree.tracing_macros import FACT_FILES

RINGQ = """
#define TRACE_SYSTEM ringq
#include <linux/tracepoint.h>
#define RINGQ_NAME 16
#define ringq_full(q) ((q)->head == (q)->tail)
enum ringq_state { RINGQ_IDLE, RINGQ_BUSY = 4 };
struct unused { int n; };
struct ringq {
	char name[RINGQ_NAME]; /* its name */
	unsigned int head, tail;
	enum ringq_state state;
	union { u32 word; struct { u16 low, high; } half; } u;
	enum { RINGQ_OLD, RINGQ_NEW } age;
	int (*push)(struct ringq *q, int n);
};
struct other;
typedef u32 ringq_id;
typedef struct { int n; } ringq_pair;
typedef int (*ringq_call)(struct ringq *q);
static inline unsigned int ringq_used(const struct ringq *q)
{
	unsigned int used = 0, i;

	for (i = 0; i < 2; i++) {
		if (q->head != q->tail) {
			used++;
		} else {
			used--;
		}
	}
	return used;
}
extern int ringq_elsewhere(struct ringq *q);
TRACE_EVENT(ringq_push,
	TP_PROTO(struct ringq *q, ringq_id id, ringq_call call, ringq_pair pair, struct other *other),
	TP_ARGS(q, id, call, pair, other),
	TP_STRUCT__entry(
		__array(char, name, RINGQ_NAME)
		__field(unsigned int, used)
		__field(int, state)
		__field(ringq_id, id)
		__field(bool, full)
		__field(int, n)
	),
	TP_fast_assign(
		memcpy(__entry->name, q->name, RINGQ_NAME);
		__entry->used = ringq_used(q);
		__entry->state = q->state == RINGQ_BUSY;
		__entry->id = id + q->u.half.low + (q->age == RINGQ_OLD);
		__entry->full = ringq_full(q);
		__entry->n = pair.n;
	),
	TP_printk("name=%s used=%u", __entry->name, __entry->used)
);
"""


def test_own_definitions_are_kept_and_only_used_ones() -> None:
    text = kernel_module(header_of_text(RINGQ), name="m")["m_trace.h"]
    types = text.partition("#undef TRACE_SYSTEM")[0]
    assert (
        "struct ringq {\n\tchar name[16];\n\tunsigned int head, tail;\n\tenum ringq_state state;\n" in types
    )
    assert "struct ringq;" not in types
    assert "struct other;" in types
    assert "unused" not in types
    assert types.count("RINGQ_OLD") == 1
    assert types.index("#include <linux/tracepoint.h>") < types.index("struct ringq {")
    assert "typedef u32 ringq_id;" in types
    assert "static inline unsigned int ringq_used(const struct ringq *q)\n{\n" in types


@pytest.mark.oracle
def test_own_definitions_compile() -> None:
    folder = installed_headers()
    facts = read_facts(read_kernel_files(folder, FACT_FILES))
    files = kernel_module(header_of_text(RINGQ), name="ringq", facts=facts)
    assert [path.name for path in build_modules(files, folder)] == ["ringq.ko"]
