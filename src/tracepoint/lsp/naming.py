"""Names: where they are declared and used, and their other names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from tracepoint.errors import TracepointError
from tracepoint.lsp.definition import declaration_of, definition_in
from tracepoint.lsp.outline import word_at
from tracepoint.lsp.targets import (
    NamingText,
    is_declaration,
    known_texts,
    renamed_texts,
    target_at,
    words_of,
)
from tracepoint.lsp.uses import field_uses, renamable, rename_field
from tracepoint.tree.callsites.calls import SiteKind, classify

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.lsp.mentions import DeclaredName
    from tracepoint.lsp.outline import Word
    from tracepoint.lsp.protocol import Server
    from tracepoint.lsp.session import Document


def add_naming(server: Server) -> None:
    """Go to declarations, find uses, rename."""
    _add_places(server)
    _add_uses(server)


def _add_places(server: Server) -> None:
    """Go to what declares a name; the definition of a trace event is its declaration."""

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    @server.feature(types.TEXT_DOCUMENT_DECLARATION)
    def declaration(params: types.DefinitionParams | types.DeclarationParams) -> types.Location | None:
        document = server.documents.get(params.text_document.uri)
        if document is None or document.is_python:
            return None
        offset = server.positions(document.text).offset(params.position)
        own = document.header
        span = definition_in(own, offset) if own is not None else None
        if own is not None and span is not None:
            return server.location(own, span)
        word = word_at(document.text, offset)
        header = server.declaring(document, word.text) if word is not None else None
        place = declaration_of(header, word.text) if header is not None and word is not None else None
        return server.location(header, place) if header is not None and place is not None else None

    @server.feature(types.TEXT_DOCUMENT_IMPLEMENTATION)
    def callers(params: types.ImplementationParams) -> list[types.Location]:
        document = server.documents.get(params.text_document.uri)
        target = target_at(server, document, params.position) if document is not None else None
        if target is None or not target.named.is_called:
            return []
        found = known_texts(server, target)
        return [place for one in found for place in _calls(server, one, target.named)]


def _calls(server: Server, found: NamingText, named: DeclaredName) -> Iterator[types.Location]:
    """Yield the places of a text that fire an event."""
    positions, uri = server.positions(found.text), server.uri_of(found.path)
    for word in found.words:
        function = word_at(found.text, word.start)
        kind = classify(function.text, {named.call_name}) if function is not None else None
        if function is not None and "trace_" in function.text and kind and kind[0] is SiteKind.CALL:
            yield types.Location(uri, positions.range(function.start, function.end))


def _add_uses(server: Server) -> None:
    """Show where a field, an event or a class is used, and rename it."""

    def fields(document: Document, position: types.Position) -> list[Word]:
        header = document.header
        offset = server.positions(document.text).offset(position)
        return field_uses(header, offset) if header is not None else []

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
    def highlight(params: types.DocumentHighlightParams) -> list[types.DocumentHighlight]:
        document = server.documents.get(params.text_document.uri)
        if document is None:
            return []
        words = fields(document, params.position)
        target = target_at(server, document, params.position) if not words else None
        if target is not None:
            words = words_of(server, target, document.path).words
        positions = server.positions(document.text)
        return [types.DocumentHighlight(positions.range(word.start, word.end)) for word in words]

    @server.feature(types.TEXT_DOCUMENT_REFERENCES)
    def references(params: types.ReferenceParams) -> list[types.Location]:
        document = server.documents.get(params.text_document.uri)
        if document is None:
            return []
        words = fields(document, params.position)
        target = target_at(server, document, params.position) if not words else None
        own = [NamingText(document.path, document.text, words)]
        return [
            types.Location(server.uri_of(one.path), server.positions(one.text).range(word.start, word.end))
            for one in (own if target is None else known_texts(server, target))
            for word in one.words
            if params.context.include_declaration or not is_declaration(target, one, word)
        ]

    _add_renaming(server)


def _add_renaming(server: Server) -> None:
    """Give a field, an event or a class another name, wherever it is named."""

    @server.feature(types.TEXT_DOCUMENT_PREPARE_RENAME)
    def prepare(params: types.PrepareRenameParams) -> types.Range | None:
        document = server.documents.get(params.text_document.uri)
        if document is None:
            return None
        positions, header = server.positions(document.text), document.header
        offset = positions.offset(params.position)
        word = renamable(header, offset) if header is not None else None
        target = target_at(server, document, params.position) if word is None else None
        if target is not None:
            words = words_of(server, target, document.path).words
            word = next((w for w in words if w.start <= offset <= w.end), None)
        return positions.range(word.start, word.end) if word is not None else None

    @server.feature(types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True))
    def rename(params: types.RenameParams) -> types.WorkspaceEdit | None:
        document = server.documents.get(params.text_document.uri)
        if document is None:
            return None
        target = target_at(server, document, params.position)
        try:
            if target is not None:
                return _renamed(server, renamed_texts(server, target, params.new_name), params.new_name)
            if (header := document.header) is None:
                return None
            offset = server.positions(document.text).offset(params.position)
            uses = rename_field(header, offset, params.new_name)
        except TracepointError as error:
            raise JsonRpcInvalidParams(str(error)) from None
        return _renamed(server, [NamingText(document.path, document.text, uses)], params.new_name)


def _renamed(server: Server, found: list[NamingText], name: str) -> types.WorkspaceEdit:
    changes = {}
    for one in found:
        positions = server.positions(one.text)
        edits = [types.TextEdit(positions.range(word.start, word.end), name) for word in one.words]
        changes[server.uri_of(one.path)] = edits
    return types.WorkspaceEdit(changes)
