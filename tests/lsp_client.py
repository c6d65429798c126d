"""A client of the language server with one open file, for tests of conversations."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from lsprotocol import types
from pytest_lsp import LanguageClient, client_capabilities, make_test_lsp_client

SECONDS = 60


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


async def talk(path: Path, say: Callable[[Editor], Awaitable[None]], seconds: int = SECONDS) -> None:
    async with editing(path) as editor:
        await asyncio.wait_for(say(editor), seconds)
