"""An editor's conversation with the server, over stdin and stdout."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from lsp_client import Editor, talk
from tracepoint.check.engine import apply_fixes, check_text
from tracepoint.model.fmt.text import format_text
from tracepoint.model.read import read_header_text
from tracepoint.tree.query.opening import open_tree

pytestmark = pytest.mark.programs
HEADER = """#undef TRACE_SYSTEM
#define TRACE_SYSTEM demo

#if !defined(_TRACE_DEMO_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_DEMO_H

#include <linux/tracepoint.h>

TRACE_EVENT(tick,
	TP_PROTO(int n),
	TP_ARGS(n),
	TP_STRUCT__entry(
		__field(int, n)
	),
	TP_fast_assign(
		__entry->n = n;
	),
	TP_printk("n=%d", __entry->n)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE demo_trace
#include <trace/define_trace.h>
"""
ONE_LINE = "TRACE_EVENT(a,TP_PROTO(int x),TP_ARGS(x));\n"
WITH_NEWLINE = HEADER.replace('"n=%d"', '"n=%d\\n"')


async def _type_and_fix(editor: Editor) -> None:
    assert await editor.open(HEADER) == []
    wrong = HEADER.replace("__entry->n)", "__entry->m)")
    assert await editor.type(wrong) == [(d.code, d.span.line - 1) for d in check_text(wrong)]
    found = await editor.type(WITH_NEWLINE)
    assert found == [("TP305", 17)]
    here = types.Range(types.Position(17, 12), types.Position(17, 12))
    context = types.CodeActionContext([], [types.CodeActionKind.QuickFix])
    actions = await editor.client.text_document_code_action_async(
        types.CodeActionParams(editor.document, here, context)
    )
    assert [action.kind for action in actions] == [types.CodeActionKind.QuickFix]
    edit = actions[0].edit.changes[editor.uri][0]
    line = WITH_NEWLINE.splitlines()[17]
    fixed = line[: edit.range.start.character] + edit.new_text + line[edit.range.end.character :]
    assert WITH_NEWLINE.replace(line, fixed) == apply_fixes(
        check_text(WITH_NEWLINE), WITH_NEWLINE, unsafe=True
    )


async def _look(editor: Editor) -> None:
    await editor.open("/* \U0001f600 */" + HEADER)
    client, document = editor.client, editor.document
    hover = await client.text_document_hover_async(types.HoverParams(document, types.Position(8, 13)))
    assert "void trace_tick(int n)" in hover.contents.value
    hover = await client.text_document_hover_async(types.HoverParams(document, types.Position(0, 3)))
    assert hover is None
    symbols = await client.text_document_document_symbol_async(types.DocumentSymbolParams(document))
    assert [(s.name, [c.name for c in s.children]) for s in symbols] == [("tick", ["n"])]
    folds = await client.text_document_folding_range_async(types.FoldingRangeParams(document))
    assert [(f.start_line, f.end_line) for f in folds] == [(8, 18), (11, 13), (14, 16)]
    whole = types.Range(types.Position(0, 0), types.Position(99, 0))
    hints = await client.text_document_inlay_hint_async(types.InlayHintParams(document, whole))
    assert [(h.label, h.position.line, h.position.character) for h in hints] == [("at 8, size 4", 12, 17)]


async def _write(editor: Editor) -> None:
    await editor.open(HEADER)
    client, document = editor.client, editor.document
    place = types.Position(15, len("\t\t__entry->"))
    items = await client.text_document_completion_async(types.CompletionParams(document, place))
    assert [(item.label, item.detail) for item in items] == [("n", "int")]
    await editor.type(ONE_LINE)
    params = types.DocumentFormattingParams(document, types.FormattingOptions(8, insert_spaces=False))
    edits = await client.text_document_formatting_async(params)
    assert [edit.new_text for edit in edits] == [format_text(ONE_LINE).text]
    assert edits[0].range == types.Range(types.Position(0, 0), types.Position(1, 0))


async def _open_others(editor: Editor) -> None:
    assert await editor.open("int main(void) { return 0; }\n") == []
    assert await editor.type('#define TRACE_SYSTEM "\ud800\x00(') != []
    question = types.HoverParams(editor.document, types.Position(9999, 9999))
    assert await editor.client.text_document_hover_async(question) is None
    other = Editor(editor.client, editor.uri.replace(".h", ".py"))
    assert await other.open("from events import trace_sold\ntrace_sold(queue.pop())\n") == [("TP401", 1)]
    assert await other.type("def") == [(None, 0)]
    unknown = types.DocumentSymbolParams(types.TextDocumentIdentifier("untitled:nothing"))
    assert await editor.client.text_document_document_symbol_async(unknown) == []


@pytest.mark.parametrize("say", [_type_and_fix, _look, _write, _open_others])
def test_conversation(tmp_path: Path, say: Callable[[Editor], Awaitable[None]]) -> None:
    asyncio.run(talk(tmp_path / "demo_trace.h", say))


CALLER = """#include "demo_trace.h"
void f(void) { if (trace_tick_enabled()) trace_tick(1); trace_tock(2); }
"""
WRAPPED = HEADER.replace(
    "#endif",
    """DECLARE_EVENT_CLASS(pair, TP_PROTO(int a), TP_ARGS(a), TP_STRUCT__entry(__field(int, a)),
	TP_fast_assign(__entry->a = a;), TP_printk("%d", __entry->a));
#define MADE(name) DEFINE_EVENT(pair, name, TP_PROTO(int a), TP_ARGS(a))
MADE(tock);
DEFINE_EVENT(pair, tack, TP_PROTO(int a), TP_ARGS(a));
#endif""",
    1,
)


async def _go(editor: Editor, text: str, found: str, shift: int = 0) -> tuple[str, int, int] | None:
    line = next(n for n, line in enumerate(text.splitlines()) if found in line)
    place = types.Position(line, text.splitlines()[line].index(found) + shift)
    params = types.DefinitionParams(editor.document, place)
    at = await editor.client.text_document_definition_async(params)
    same = types.DeclarationParams(editor.document, place)
    assert await editor.client.text_document_declaration_async(same) == at
    return at and (Path(at.uri).name, at.range.start.line, at.range.start.character)


def _line(text: str, found: str) -> int:
    return next(n for n, line in enumerate(text.splitlines()) if found in line)


async def _go_from_header(editor: Editor) -> None:
    await editor.open(WRAPPED)
    name = "demo_trace.h"
    assert await _go(editor, WRAPPED, "__entry->n)", 9) == (name, 12, len("\t\t__field(int, "))
    declared = (name, _line(WRAPPED, "DECLARE_EVENT_CLASS"), len("DECLARE_EVENT_CLASS("))
    assert await _go(editor, WRAPPED, "DEFINE_EVENT(pair, tack", 14) == declared
    assert await _go(editor, WRAPPED, "TP_PROTO(int n", 2) is None
    # An open header counts as it is in the editor.
    caller = Editor(editor.client, editor.uri.replace("demo_trace.h", "caller.c"))
    await caller.open(CALLER)
    made = (name, _line(WRAPPED, "MADE(tock)"), 0)
    assert await _go(caller, CALLER, "trace_tock", 3) == made
    assert await _go(caller, CALLER, "trace_tick_enabled", 3) == (name, 8, len("TRACE_EVENT("))
    assert await _go(caller, CALLER, "void") is None


async def _use(editor: Editor) -> None:
    await editor.open(WRAPPED)
    client, document = editor.client, editor.document
    place = types.Position(12, len("\t\t__field(int, "))
    shown = await client.text_document_document_highlight_async(
        types.DocumentHighlightParams(document, place)
    )
    lines = [at.range.start.line for at in shown]
    assert lines == [12, 15, 17]
    context = types.ReferenceContext(include_declaration=True)
    same = await client.text_document_references_async(types.ReferenceParams(context, document, place))
    assert [at.range for at in same] == [at.range for at in shown]
    assert (
        await client.text_document_prepare_rename_async(types.PrepareRenameParams(document, place))
        == shown[0].range
    )
    edit = await client.text_document_rename_async(types.RenameParams(document, place, "count"))
    assert [(e.new_text, e.range.start.line) for e in edit.changes[editor.uri]] == [
        ("count", n) for n in lines
    ]
    with pytest.raises(JsonRpcException, match="not a valid name"):
        await client.text_document_rename_async(types.RenameParams(document, place, "3"))
    # Calls in a C file: what they take, and what the event is.
    caller = Editor(client, editor.uri.replace("demo_trace.h", "caller.c"))
    await caller.open(CALLER)
    inside = types.Position(1, CALLER.splitlines()[1].index("trace_tick(1") + len("trace_tick("))
    found = await client.text_document_signature_help_async(
        types.SignatureHelpParams(caller.document, inside)
    )
    assert (found.signatures[0].label, found.active_parameter) == ("void trace_tick(int n)", 0)
    hover = await client.text_document_hover_async(types.HoverParams(caller.document, inside))
    assert hover is None
    on_name = types.Position(1, inside.character - 3)
    hover = await client.text_document_hover_async(types.HoverParams(caller.document, on_name))
    assert "void trace_tick(int n)" in hover.contents.value


def test_uses_and_arguments(tmp_path: Path) -> None:
    (tmp_path / "demo_trace.h").write_text(HEADER)
    asyncio.run(talk(tmp_path / "demo_trace.h", _use))


def test_go_to_definition_from_a_header_and_an_open_caller(tmp_path: Path) -> None:
    (tmp_path / "demo_trace.h").write_text(HEADER)
    asyncio.run(talk(tmp_path / "demo_trace.h", _go_from_header))


@pytest.mark.parametrize("is_indexed", [False, True])
def test_go_to_definition_in_a_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_indexed: bool
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "linux"
    shutil.copytree(Path(__file__).parents[1] / "tree" / "small", root)
    if is_indexed:
        open_tree(root)
    swap = (root / "include/trace/events/swap.h").read_text()
    event = next(event for event in read_header_text(swap, "swap.h").events if not event.is_instance)
    call = f"void f(void) {{ trace_{event.name}(0); }}\n"
    text = call if is_indexed else f"#include <trace/events/swap.h>\n{call}"

    async def say(editor: Editor) -> None:
        await editor.open(text)
        found = await _go(editor, text, f"trace_{event.name}")
        assert found is not None
        assert found[:2] == ("swap.h", _line(swap, f"({event.name},"))

    asyncio.run(talk(root / "mm" / "caller.c", say))
