"""An editor's conversation with the server, over stdin and stdout."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from lsprotocol import types
from pytest_lsp import LanguageClient, client_capabilities, make_test_lsp_client

from tracepoint.check.engine import apply_fixes, check_text
from tracepoint.model.fmt.text import format_text

pytestmark = pytest.mark.programs
SECONDS = 30
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


class Editor:
    """A client with one open file."""

    def __init__(self, client: LanguageClient, uri: str) -> None:
        self.client = client
        self.uri = uri
        self.document = types.TextDocumentIdentifier(uri)
        self.version = 1
        self.came: asyncio.Queue[types.PublishDiagnosticsParams] = asyncio.Queue()
        client.protocol.fm.features[types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS] = self.came.put_nowait

    async def findings(self) -> list[tuple[str | int | None, int]]:
        """Those of the text that was sent last: what came after a pause was of the one before."""
        params = await asyncio.wait_for(self.came.get(), SECONDS)
        while params.version != self.version:
            params = await asyncio.wait_for(self.came.get(), SECONDS)
        return [(d.code, d.range.start.line) for d in params.diagnostics]

    async def open(self, text: str) -> list[tuple[str | int | None, int]]:
        item = types.TextDocumentItem(self.uri, "c", self.version, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return await self.findings()

    async def type(self, text: str) -> list[tuple[str | int | None, int]]:
        self.version += 1
        whole = [types.TextDocumentContentChangeWholeDocument(text)]
        of = types.VersionedTextDocumentIdentifier(self.version, self.uri)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(of, whole))
        return await self.findings()


@asynccontextmanager
async def editing(path: Path) -> AsyncIterator[Editor]:
    client = make_test_lsp_client()
    await client.start_io(sys.executable, "-m", "tracepoint", "server")
    try:
        # With the capabilities of a real editor, what the server sends is compared to them.
        await client.initialize_session(types.InitializeParams(capabilities=client_capabilities("neovim")))
        yield Editor(client, path.as_uri())
        await client.shutdown_session()
    except BaseException:
        client._server.kill()  # a client waits for a server that was not told to end
        raise
    finally:
        await client.stop()


async def talk(path: Path, say: Callable[[Editor], Awaitable[None]]) -> None:
    async with editing(path) as editor:
        await asyncio.wait_for(say(editor), SECONDS)


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
