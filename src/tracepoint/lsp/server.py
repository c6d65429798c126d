"""The language server: what an editor sends goes to open documents, and what they hold comes back.

Nothing here reads C; positions are converted, answers are put into the protocol's types.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

from lsprotocol import types

from tracepoint.lsp.answers import add_answers
from tracepoint.lsp.editing import add_editing
from tracepoint.lsp.naming import add_naming
from tracepoint.lsp.protocol import Server, path_of, valid_text
from tracepoint.lsp.session import Document

if TYPE_CHECKING:
    from tracepoint.lsp.session import OpenFiles

_NEVER = 1 << 30


def make_server(session: OpenFiles) -> Server:
    """Return a server with all that it can do; `start_io` of it serves stdin and stdout."""
    server = Server(session)
    # A search of all objects takes longer than a key may: it is done in pauses (`collect_garbage`), and never
    # among what has been imported.
    gc.freeze()
    gc.set_threshold(*gc.get_threshold()[:2], _NEVER)
    _add_documents(server)
    add_answers(server)
    add_naming(server)
    add_editing(server)
    return server


def _add_documents(server: Server) -> None:
    """Keep the open documents, and publish their findings."""

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def did_open(params: types.DidOpenTextDocumentParams) -> None:
        item = params.text_document
        document = Document(server.session, path_of(item.uri), valid_text(item.text), item.version)
        server.documents[item.uri] = document
        document.settle()
        server.publish(item.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(params: types.DidChangeTextDocumentParams) -> None:
        uri = params.text_document.uri
        document = server.documents.get(uri)
        if document is None or not params.content_changes:
            return
        text = valid_text(params.content_changes[-1].text)
        document.version = params.text_document.version
        document.change(text)
        server.publish(uri)
        server.settle_after_pause(uri, text)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def did_save(_params: types.DidSaveTextDocumentParams) -> None:
        server.session.forget()
        for uri, document in server.documents.items():
            document.settle()
            server.publish(uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(params: types.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        if server.documents.pop(uri, None) is not None:
            server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))
