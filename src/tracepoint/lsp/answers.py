"""What is shown of a header: hovers, hints, outline, folds, colors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from tracepoint.errors import TracepointError
from tracepoint.lsp.coloring import KINDS, colored
from tracepoint.lsp.definition import called
from tracepoint.lsp.hover import describe, hover_at, offset_hints, tracepoint_at
from tracepoint.lsp.outline import declared, folds, own_fields, word_at
from tracepoint.lsp.project import callers_text
from tracepoint.lsp.protocol import plain_range
from tracepoint.lsp.python_events import python_event, python_outline
from tracepoint.model.event import BareTracepoint, Event, TraceHeader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.layout.abi import Abi
    from tracepoint.lsp.outline import Declared
    from tracepoint.lsp.positions import Positions
    from tracepoint.lsp.protocol import Question, Server
    from tracepoint.lsp.session import Document

LEGEND = types.SemanticTokensLegend(list(KINDS), [])


def add_answers(server: Server) -> None:
    """Answer questions about a header."""

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None:
        document = server.documents.get(params.text_document.uri)
        if document is None:
            return None
        text = _hover_text(server, document, server.positions(document.text).offset(params.position))
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text)) if text else None

    _add_outline(server)
    _add_colors(server)


def _add_outline(server: Server) -> None:
    """Show what a file declares, and the parts of it that fold."""

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def symbols(params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
        document = server.documents.get(params.text_document.uri)
        if document is not None and document.is_python:
            return [_python_symbol(*row) for row in python_outline(document.text, document.path)]
        opened = server.opened(params)
        return [_symbol(thing, opened.positions) for thing in declared(opened.header)] if opened else []

    @server.feature(types.TEXT_DOCUMENT_FOLDING_RANGE)
    def folding(params: types.FoldingRangeParams) -> list[types.FoldingRange]:
        opened = server.opened(params)
        lines = folds(opened.header) if opened else ()
        return [types.FoldingRange(first - 1, last - 1) for first, last in lines]


def _add_colors(server: Server) -> None:
    """Say what words are, and where fields are in the record."""

    @server.feature(types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, LEGEND)
    def colors(params: types.SemanticTokensParams) -> types.SemanticTokens:
        return _colors(server, params, 0, None)

    @server.feature(types.TEXT_DOCUMENT_SEMANTIC_TOKENS_RANGE, LEGEND)
    def colors_of_range(params: types.SemanticTokensRangeParams) -> types.SemanticTokens:
        return _colors(server, params, params.range.start.line, params.range.end.line)

    @server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
    def hints(params: types.InlayHintParams) -> list[types.InlayHint]:
        opened = server.opened(params)
        if opened is None:
            return []
        header, positions = opened
        start, end = positions.offset(params.range.start), positions.offset(params.range.end)
        found = offset_hints(header, start, end, server.session.abi)
        return [types.InlayHint(positions.at(at), text, padding_left=True) for at, text in found]


def _colors(server: Server, params: Question, first: int, last: int | None) -> types.SemanticTokens:
    """Return the words of a header with their kinds, each relative to the one before."""
    document = server.documents.get(params.text_document.uri)
    if document is None or not document.declares:
        return types.SemanticTokens([])
    positions, data = server.positions(document.text), list[int]()
    before = types.Position(0, 0)
    for word, kind in colored(document.text):
        at = positions.at(word.start)
        if at.line < first or (last is not None and at.line > last):
            continue
        column = at.character - (before.character if at.line == before.line else 0)
        data += [at.line - before.line, column, word.end - word.start, KINDS.index(kind), 0]
        before = at
    return types.SemanticTokens(data)


def _hover_text(server: Server, document: Document, offset: int) -> str:
    """Return what is known about a word of a header, of a C file or of a Python file, as Markdown."""
    word, abi = word_at(document.text, offset), server.session.abi
    if word is None:
        return ""
    if document.is_python:
        return _python_hover(document, word.text, abi)
    header = document.header
    text = hover_at(header, offset, abi) if header is not None else ""
    thing = tracepoint_at(header, offset) if header is not None else None
    if not text and (header := server.declaring(document, word.text)) is not None:
        thing = called(header, word.text)
        text = describe(header, thing, abi) if thing is not None else ""
    if thing is None or header is None:
        return text
    return "\n\n".join([text, *_known(server, header, thing)])


def _known(server: Server, header: TraceHeader, thing: Event | BareTracepoint) -> Iterator[str]:
    """Yield what the saved indexes know about a tracepoint."""
    tree = server.session.tree_of(header.path)
    if tree is not None:
        yield callers_text(tree, header, getattr(thing, "call_name", "") or thing.name)
    if isinstance(thing, Event) and (kernels := server.kernels.text(thing.full_name)):
        yield kernels


def _python_hover(document: Document, name: str, abi: Abi) -> str:
    """Return the event that a Python file declares, as a hover of a header shows one."""
    try:
        event = python_event(document.text, document.path, name)
    except TracepointError as error:
        return str(error)
    if event is None:
        return ""
    return describe(TraceHeader(event.system, (event,)), event, abi)


def _python_symbol(name: str, first: int, last: int) -> types.DocumentSymbol:
    place = types.Range(types.Position(first - 1, 0), types.Position(last, 0))
    return types.DocumentSymbol(name, types.SymbolKind.Event, place, place, "trace_event")


def _symbol(thing: Declared, positions: Positions) -> types.DocumentSymbol:
    """Return a declaration in the outline, with its fields."""
    place = positions.of_span(thing.origin.span) if thing.origin else plain_range(1, 1)
    kinds = {Event: types.SymbolKind.Event, BareTracepoint: types.SymbolKind.Function}
    children = [
        types.DocumentSymbol(field.name, types.SymbolKind.Field, at, at, field.ctype)
        for field in own_fields(thing)
        if field.origin is not None
        for at in [positions.of_span(field.origin.span)]
    ]
    kind = kinds.get(type(thing), types.SymbolKind.Class)
    return types.DocumentSymbol(thing.name, kind, place, place, thing.macro, children=children)
