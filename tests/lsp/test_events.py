"""Events and classes in an indexed tree: callers, references, another name, hovers, colors, Python."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from lsp_client import Editor, talk
from oracles import kernel_source
from tracepoint.lsp.coloring import KINDS
from tracepoint.tree.query.opening import open_tree

pytestmark = pytest.mark.programs
HEADER = """#undef TRACE_SYSTEM
#define TRACE_SYSTEM demo
#if !defined(_TRACE_DEMO_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_DEMO_H
#include <linux/tracepoint.h>
DECLARE_EVENT_CLASS(pair, TP_PROTO(int a), TP_ARGS(a), TP_STRUCT__entry(__field(int, a)),
	TP_fast_assign(__entry->a = a;), TP_printk("%d", __entry->a));
DEFINE_EVENT(pair, tick, TP_PROTO(int a), TP_ARGS(a));
DEFINE_EVENT(pair, tick_tock, TP_PROTO(int a), TP_ARGS(a));
#define MADE(name) DEFINE_EVENT(pair, made_##name, TP_PROTO(int a), TP_ARGS(a))
MADE(up);
#endif
#include <trace/define_trace.h>
"""
CALLER = """#define CREATE_TRACE_POINTS
#include <trace/events/demo.h>
EXPORT_TRACEPOINT_SYMBOL_GPL(tick);
void f(void)
{
	/* trace_tick(0); */
	if (trace_tick_enabled())
		trace_tick(1);
	trace_tick_tock(2);
	trace_made_up(3);
}
"""
OTHER = """#include <trace/events/demo.h>
static void g(void *data, int a) {}
void h(void)
{
	register_trace_tick(g, NULL);
	trace_tick(2);
}
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small tree with an index."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "linux"
    shutil.copytree(Path(__file__).parents[1] / "tree" / "small", root)
    (root / "include/trace/events/demo.h").write_text(HEADER)
    (root / "mm/demo.c").write_text(CALLER)
    (root / "mm/other.c").write_text(OTHER)
    open_tree(root)
    return root


def at(text: str, found: str, shift: int = 0) -> types.Position:
    offset = text.index(found) + shift
    line = text.count("\n", 0, offset)
    return types.Position(line, offset - (text.rfind("\n", 0, offset) + 1))


async def references(editor: Editor, place: types.Position, *, declaration: bool = True) -> list[str]:
    context = types.ReferenceContext(include_declaration=declaration)
    params = types.ReferenceParams(context, editor.document, place)
    found = await editor.client.text_document_references_async(params)
    return sorted(f"{Path(p.uri).name}:{p.range.start.line}:{p.range.start.character}" for p in found)


def applied(text: str, edits: list[types.TextEdit]) -> str:
    lines = text.splitlines(keepends=True)
    for edit in sorted(edits, key=lambda e: (e.range.start.line, e.range.start.character), reverse=True):
        line = lines[edit.range.start.line]
        before, after = line[: edit.range.start.character], line[edit.range.end.character :]
        lines[edit.range.start.line] = before + edit.new_text + after
    return "".join(lines)


USES = ["demo.c:2:29", "demo.c:6:11", "demo.c:7:8", "demo.h:7:19", "other.c:4:16", "other.c:5:7"]


async def _find(editor: Editor) -> None:
    await editor.open(HEADER)
    place = at(HEADER, "tick,")
    assert await references(editor, place) == USES
    assert await references(editor, place, declaration=False) == [u for u in USES if "demo.h" not in u]
    assert await references(editor, at(HEADER, "(pair, TP_PROTO", 2)) == [
        "demo.h:5:20",
        "demo.h:7:13",
        "demo.h:8:13",
        "demo.h:9:32",
    ]
    params = types.ImplementationParams(editor.document, place)
    calls = await editor.client.text_document_implementation_async(params)
    assert sorted((Path(c.uri).name, c.range.start.line) for c in calls) == [("demo.c", 7), ("other.c", 5)]
    hover = await editor.client.text_document_hover_async(types.HoverParams(editor.document, place))
    assert "called in 2 places:\n\n- `f` mm/demo.c:8\n- `h` mm/other.c:6" in hover.contents.value
    assert "\n\nin linux" in hover.contents.value
    # From a call, and with a file that was changed after it was indexed.
    caller = Editor(editor.client, editor.uri.replace("include/trace/events/demo.h", "mm/demo.c"))
    await caller.open(CALLER.replace("trace_tick(1)", "trace_tick(11), trace_tick(12)"))
    assert await references(caller, at(CALLER, "trace_tick_enabled", 3)) == sorted([*USES, "demo.c:7:24"])


async def _rename(editor: Editor) -> None:
    await editor.open(HEADER)
    client, place = editor.client, at(HEADER, "tick,", 2)
    root = Path(editor.uri.removeprefix("file://")).parents[3]
    (root / "mm/third.c").write_text("#include <trace/events/demo.h>\nvoid k(void) { trace_tick(3); }\n")
    shown = await client.text_document_prepare_rename_async(types.PrepareRenameParams(editor.document, place))
    assert shown == types.Range(at(HEADER, "tick,"), at(HEADER, "tick,", 4))
    edit = await client.text_document_rename_async(types.RenameParams(editor.document, place, "beat"))
    changed = {Path(uri).name: edits for uri, edits in edit.changes.items()}
    assert set(changed) == {"demo.h", "demo.c", "other.c", "third.c"}
    assert applied(HEADER, changed["demo.h"]) == HEADER.replace("pair, tick,", "pair, beat,")
    new = CALLER.replace("GPL(tick)", "GPL(beat)").replace("trace_tick_enabled", "trace_beat_enabled")
    assert applied(CALLER, changed["demo.c"]) == new.replace("trace_tick(1)", "trace_beat(1)")
    assert "register_trace_beat(g" in applied(OTHER, changed["other.c"])
    edit = await client.text_document_rename_async(
        types.RenameParams(editor.document, at(HEADER, "pair, tick"), "couple")
    )
    assert applied(HEADER, edit.changes[editor.uri]) == HEADER.replace("pair,", "couple,")
    for name, words in (("3x", "not a valid event name"), ("tick_tock", "declares tick_tock already")):
        with pytest.raises(JsonRpcException, match=words):
            await client.text_document_rename_async(types.RenameParams(editor.document, place, name))
    caller = Editor(client, editor.uri.replace("include/trace/events/demo.h", "mm/demo.c"))
    await caller.open(CALLER)
    made = types.RenameParams(caller.document, at(CALLER, "trace_made_up", 7), "other")
    with pytest.raises(JsonRpcException, match="a macro makes the name made_up"):
        await client.text_document_rename_async(made)


async def _color_and_format(editor: Editor) -> None:
    await editor.open(HEADER)
    client = editor.client
    tokens = await client.text_document_semantic_tokens_full_async(
        types.SemanticTokensParams(editor.document)
    )
    line = column = 0
    found = set()
    for start in range(0, len(tokens.data), 5):
        lines, columns, length, kind, _ = tokens.data[start : start + 5]
        line, column = line + lines, columns + (0 if lines else column)
        found.add((HEADER.splitlines()[line][column : column + length], KINDS[kind]))
    assert {("DEFINE_EVENT", "macro"), ("tick", "event"), ("pair", "class"), ("a", "property")} <= found
    span = types.Range(at(HEADER, "DEFINE_EVENT"), at(HEADER, "DEFINE_EVENT", 3))
    part = await client.text_document_semantic_tokens_range_async(
        types.SemanticTokensRangeParams(editor.document, span)
    )
    assert list(part.data[:5]) == [7, 0, len("DEFINE_EVENT"), KINDS.index("macro"), 0]
    one = "TRACE_EVENT(a,TP_PROTO(int x),TP_ARGS(x));\n"
    await editor.type(one + one)
    span = types.Range(types.Position(1, 3), types.Position(1, 3))
    edits = await client.text_document_range_formatting_async(
        types.DocumentRangeFormattingParams(
            editor.document, span, types.FormattingOptions(8, insert_spaces=False)
        )
    )
    assert [(edit.range.start.line, edit.range.end.line) for edit in edits] == [(1, 1)]
    assert edits[0].new_text.startswith("TRACE_EVENT(a,\n")
    # Completion while brackets are open: the text ends where it is written.
    written = HEADER[: HEADER.index("a = a;")]
    await editor.type(written)
    place = types.CompletionParams(editor.document, at(written + "$", "$"))
    items = await client.text_document_completion_async(place)
    assert [item.label for item in items] == ["a"]


@pytest.mark.parametrize("say", [_find, _rename, _color_and_format])
def test_events_in_a_tree(root: Path, say: Callable[[Editor], Awaitable[None]]) -> None:
    asyncio.run(talk(root / "include/trace/events/demo.h", say))


def test_without_an_index_a_rename_says_what_is_missing(tmp_path: Path, root: Path) -> None:
    shutil.rmtree(tmp_path / "cache")

    async def say(editor: Editor) -> None:
        await editor.open(HEADER)
        params = types.RenameParams(editor.document, at(HEADER, "tick,"), "beat")
        with pytest.raises(JsonRpcException, match="run `tracepoint index"):
            await editor.client.text_document_rename_async(params)
        assert await references(editor, at(HEADER, "tick,")) == ["demo.h:7:19"]

    asyncio.run(talk(root / "include/trace/events/demo.h", say))


PYTHON = """import tracepoint as tp
@tp.trace_event(system="shop", printk=\'"order=%llu by %s", order, name\')
def order_seen(order: tp.u64, name: str) -> None: ...
order_seen(7, "ada")

class ParcelSent(tp.TraceEvent, system="shop"):
    weight_g: tp.u32
    to: str
    printk = '"%u g to %s", weight_g, to'

    def assign(self, parcel: Parcel, grams: int) -> None:
        self.weight_g = grams
        self.to = parcel.to
"""


def test_python_events_have_hovers_and_an_outline(tmp_path: Path) -> None:
    async def say(editor: Editor) -> None:
        assert await editor.open(PYTHON) == []
        params = types.HoverParams(editor.document, at(PYTHON, "order_seen(7"))
        hover = await editor.client.text_document_hover_async(params)
        assert "**shop:order_seen**" in hover.contents.value
        assert "     8     8  u64 order" in hover.contents.value
        assert "order_seen: order=" in hover.contents.value
        outline = types.DocumentSymbolParams(editor.document)
        found = await editor.client.text_document_document_symbol_async(outline)
        assert [one.name for one in found] == ["order_seen", "ParcelSent"]
        params = types.HoverParams(editor.document, at(PYTHON, "ParcelSent(tp"))
        hover = await editor.client.text_document_hover_async(params)
        assert "**shop:parcel_sent**" in hover.contents.value
        assert "     8     4  u32 weight_g" in hover.contents.value
        assert "trace_parcel_sent(struct Parcel *parcel, s64 grams)" in hover.contents.value

    asyncio.run(talk(tmp_path / "shop.py", say))


@pytest.mark.oracle
def test_hovers_and_outlines_of_every_shared_header_of_a_kernel() -> None:
    """Each event of the kernel's own headers has a hover, and a record wherever `compute` knows one."""
    folder = kernel_source() / "include/trace/events"

    async def say(editor: Editor) -> None:
        n_records = 0
        for path in sorted(folder.glob("[e-j]*.h")):
            one = Editor(editor.client, path.as_uri())
            text = path.read_text()
            await one.open(text)
            symbols = await editor.client.text_document_document_symbol_async(
                types.DocumentSymbolParams(one.document)
            )
            for symbol in symbols[:6]:
                params = types.HoverParams(one.document, symbol.range.start)
                hover = await editor.client.text_document_hover_async(params)
                assert symbol.name in hover.contents.value, (path, symbol.name)
                n_records += "offset  size  field" in hover.contents.value
        assert n_records > 50

    asyncio.run(talk(folder / "ext4.h", say, seconds=300))
