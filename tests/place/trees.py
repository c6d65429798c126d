"""Small kernel trees for the tests of `place`, made of texts."""

from __future__ import annotations

from pathlib import Path

from tracepoint.cli.tree.tree_files import tree_reader
from tracepoint.place.kernel import KernelTree
from tracepoint.tree.facts import read_facts
from tracepoint.tree.index.build import build_index
from tracepoint.tree.query.tree import Tree

POND = """\
/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM pond

#if !defined(_TRACE_POND_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_POND_H

#include <linux/tracepoint.h>

struct duck;

DECLARE_EVENT_CLASS(pond_duck,

	TP_PROTO(struct duck *duck, int depth),

	TP_ARGS(duck, depth),

	TP_STRUCT__entry(
		__field(	int,	weight	)
		__field(	int,	depth	)
	),

	TP_fast_assign(
		__entry->weight	= duck->weight;
		__entry->depth	= depth;
	),

	TP_printk("weight=%d depth=%d", __entry->weight, __entry->depth)
);

DEFINE_EVENT(pond_duck, pond_dive,
	TP_PROTO(struct duck *duck, int depth),
	TP_ARGS(duck, depth)
);

#ifdef CONFIG_POND_FROGS
TRACE_EVENT(pond_frog,
	TP_PROTO(int n),
	TP_ARGS(n),
	TP_STRUCT__entry(__field(int, n)),
	TP_fast_assign(__entry->n = n;),
	TP_printk("n=%d", __entry->n)
);
#endif
#endif /* _TRACE_POND_H */

/* This part must be outside protection */
#include <trace/define_trace.h>
"""

POND_C = """\
// SPDX-License-Identifier: GPL-2.0
#include <linux/kernel.h>
#include <linux/pond.h>

#ifdef CONFIG_POND_FROGS
#include <linux/frogs.h>
#endif

#define CREATE_TRACE_POINTS
#include <trace/events/pond.h>

int pond_dive(struct duck *duck, int depth)
{
	if (depth < 0)
		return -EINVAL;
	trace_pond_dive(duck, depth);
	duck->depth = depth;
	return 0;
}
"""

SHORE_C = """\
// SPDX-License-Identifier: GPL-2.0
/*
 * The shore of the pond.
 */
#include <linux/kernel.h>
#include <linux/pond.h>
#include "shore.h"

static int n_visits;

int shore_visit(struct duck *duck, int n)
{
	int depth = n;

	n_visits++;
	depth += duck->depth;
	if (depth > 10)
		return depth;
	duck->depth = depth;
	return 0;
}
"""

REED_C = """\
// SPDX-License-Identifier: GPL-2.0
#include <linux/module.h>
#include <linux/pond.h>

int reed_hide(struct duck *duck)
{
	duck->depth = 0;
	return 0;
}
"""

FILES = {
    "include/linux/tracepoint.h": "#define TRACE_EVENT(name, ...)\n",
    "include/linux/pond.h": "struct duck { int weight; int depth; };\n",
    "include/trace/define_trace.h": "",
    "include/trace/stages/stage6_event_callback.h": "#define __assign_str(dst) strcpy(dst, src)\n",
    "include/trace/events/pond.h": POND,
    "water/pond.c": POND_C,
    "water/shore.c": SHORE_C,
    "water/Makefile": "obj-y := pond.o \\\n\tshore.o\n",
    "garden/reed.c": REED_C,
    "garden/Makefile": "obj-$(CONFIG_REED) += green.o\ngreen-y := reed.o\n",
    "garden/Kconfig": 'config REED\n\ttristate "Reed"\n\thelp\n\t  Reed.\n',
}

EVENT = """\
TRACE_EVENT(pond_splash,
	TP_PROTO(struct duck *duck, int n),
	TP_ARGS(duck, n),
	TP_STRUCT__entry(
		__field(int, n)
	),
	TP_fast_assign(
		__entry->n = n;
	),
	TP_printk("n=%d", __entry->n)
);
"""


def make_tree(root: Path, changed: dict[str, str] | None = None) -> Path:
    """Write the small tree, with some files different, and return its root."""
    for name, text in {**FILES, **(changed or {})}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, newline="")
    return root


def open_kernel(root: Path) -> KernelTree:
    """Open a tree without saving its index."""
    data, _ = build_index(str(root), jobs=1)
    return KernelTree(Tree.of(data), tree_reader(root), read_facts(root).assign_str_arity)


def header_of(*declarations: str, system: str = "pond", guard: str = "_TRACE_POND_H") -> str:
    """Return a trace header of declarations."""
    body = "\n".join(declarations)
    return (
        f"#undef TRACE_SYSTEM\n#define TRACE_SYSTEM {system}\n\n"
        f"#if !defined({guard}) || defined(TRACE_HEADER_MULTI_READ)\n#define {guard}\n\n"
        f"#include <linux/tracepoint.h>\n\n{body}\n#endif /* {guard} */\n\n#include <trace/define_trace.h>\n"
    )
