"""The language server: what an editor sends goes to open documents, and what they hold comes back.

Nothing here reads C; positions are converted, answers are put into the protocol's types.
"""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path

from tracepoint import __version__
from tracepoint.check.engine import apply_fixes
from tracepoint.diagnostics import Safety, Severity
from tracepoint.errors import TracepointError
from tracepoint.lsp.complete import completions_at
from tracepoint.lsp.definition import called, declaration_of, definition_in
from tracepoint.lsp.hover import describe, hover_at, offset_hints
from tracepoint.lsp.outline import declared, folds, own_fields, word_at
from tracepoint.lsp.positions import Positions
from tracepoint.lsp.session import Document
from tracepoint.lsp.signature import call_at, call_signature, macro_signature
from tracepoint.lsp.uses import field_uses, renamable, rename_field
from tracepoint.model.event import BareTracepoint, Event
from tracepoint.model.fmt.text import format_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.diagnostics import Diagnostic, Span
    from tracepoint.lsp.outline import Declared
    from tracepoint.lsp.session import OpenFiles
    from tracepoint.model.event import TraceHeader

#: Typing pauses when no change came for so long; then all of a header is checked.
PAUSE_S = 0.3
_SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.NOTE: types.DiagnosticSeverity.Information,
}


_Question: TypeAlias = (
    types.HoverParams
    | types.CompletionParams
    | types.InlayHintParams
    | types.DocumentSymbolParams
    | types.FoldingRangeParams
    | types.DocumentHighlightParams
    | types.ReferenceParams
    | types.PrepareRenameParams
    | types.RenameParams
)


class Server(LanguageServer):
    """A language server over one session; `documents` are the open files by URI."""

    def __init__(self, session: OpenFiles) -> None:
        # Clients and pygls disagree on what ends a line (form feed, U+2028): whole texts have no lines.
        super().__init__("tracepoint", __version__, types.TextDocumentSyncKind.Full)
        self.session = session
        self.documents: dict[str, Document] = {}

    def positions(self, text: str) -> Positions:
        """Return the positions of a text in the client's encoding."""
        encoding = self.server_capabilities.position_encoding
        return Positions(text, str(getattr(encoding, "value", encoding) or "utf-16"))

    def publish(self, uri: str) -> None:
        """Send the findings of a document to the client."""
        document = self.documents[uri]
        positions = self.positions(document.text)
        found = [_diagnostic(uri, document.path, finding, positions) for finding in document.findings]
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found, document.version))

    def settle_after_pause(self, uri: str, text: str) -> None:
        """Check all of a document once its text has stayed as it is for a moment."""
        asyncio.get_running_loop().call_later(PAUSE_S, self._settle_if_unchanged, uri, text)

    def _settle_if_unchanged(self, uri: str, text: str) -> None:
        document = self.documents.get(uri)
        if document is not None and document.text == text and not document.is_settled:
            document.settle()
            self.publish(uri)

    def opened(self, params: _Question) -> _Opened | None:
        """Return the document that a question is about, None if it is no header that can be read."""
        document = self.documents.get(params.text_document.uri)
        header = document.header if document is not None else None
        return None if document is None or header is None else _Opened(header, self.positions(document.text))

    def header_of(self, path: str) -> TraceHeader | None:
        """Return the header at a path: as it is open, or else as it is on the disk."""
        real = Path(path).resolve()
        mine = (d for d in self.documents.values() if Path(d.path).resolve() == real)
        document = next(mine, None)
        return document.header if document is not None else self.session.read_file(path)

    def declaring(self, document: Document, word: str) -> TraceHeader | None:
        """Return the header that declares a function `trace_x`, which may be the document itself."""
        if "trace_" not in word or document.is_python:
            return None
        own = document.header
        if own is not None and called(own, word) is not None:
            return own
        found = map(self.header_of, self.session.may_declare(document.path, document.text, word))
        return next((header for header in found if header is not None and called(header, word)), None)

    def location(self, header: TraceHeader, span: Span) -> types.Location:
        """Return a place that was found in a header, which may be in a file that it includes."""
        if header.source is not None and header.path == span.path:
            place = self.positions(header.source.text).of_span(span)
        else:
            place = _plain_range(span.line, span.column)
        return types.Location(from_fs_path(str(Path(span.path).absolute())) or span.path, place)


class _Opened(NamedTuple):
    """A header that a question is about, and the positions of its text."""

    header: TraceHeader
    positions: Positions


def make_server(session: OpenFiles) -> Server:
    """Return a server with all that it can do; `start_io` of it serves stdin and stdout."""
    server = Server(session)
    _add_documents(server)
    _add_fixes(server)
    _add_answers(server)
    _add_places(server)
    _add_uses(server)
    _add_writing(server)
    return server


def _add_documents(server: Server) -> None:
    """Keep the open documents, and publish their findings."""

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def did_open(params: types.DidOpenTextDocumentParams) -> None:
        item = params.text_document
        document = Document(server.session, _path(item.uri), _valid(item.text), item.version)
        server.documents[item.uri] = document
        document.settle()
        server.publish(item.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(params: types.DidChangeTextDocumentParams) -> None:
        uri = params.text_document.uri
        document = server.documents.get(uri)
        if document is None or not params.content_changes:
            return
        text = _valid(params.content_changes[-1].text)
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


def _add_fixes(server: Server) -> None:
    """Offer the fixes of findings."""

    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION,
        types.CodeActionOptions([types.CodeActionKind.QuickFix, types.CodeActionKind.SourceFixAll]),
    )
    def code_action(params: types.CodeActionParams) -> list[types.CodeAction]:
        uri = params.text_document.uri
        document = server.documents.get(uri)
        if document is None:
            return []
        wanted = [getattr(kind, "value", str(kind)) for kind in params.context.only or ()]
        actions = _actions(uri, document, server.positions(document.text), params.range)
        return [a for a in actions if not wanted or any(_is_kind(a, kind) for kind in wanted)]


def _is_kind(action: types.CodeAction, wanted: str) -> bool:
    kind = getattr(action.kind, "value", str(action.kind))
    return kind == wanted or kind.startswith(f"{wanted}.")


def _add_answers(server: Server) -> None:
    """Answer questions about a header."""

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None:
        document = server.documents.get(params.text_document.uri)
        if document is None:
            return None
        offset, abi = server.positions(document.text).offset(params.position), server.session.abi
        text = hover_at(document.header, offset, abi) if document.header is not None else ""
        word = word_at(document.text, offset)
        if not text and word is not None and (header := server.declaring(document, word.text)) is not None:
            thing = called(header, word.text)
            text = describe(header, thing, abi) if thing is not None else ""
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text)) if text else None

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def symbols(params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
        opened = server.opened(params)
        return [_symbol(thing, opened.positions) for thing in declared(opened.header)] if opened else []

    @server.feature(types.TEXT_DOCUMENT_FOLDING_RANGE)
    def folding(params: types.FoldingRangeParams) -> list[types.FoldingRange]:
        opened = server.opened(params)
        lines = folds(opened.header) if opened else ()
        return [types.FoldingRange(first - 1, last - 1) for first, last in lines]

    @server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
    def hints(params: types.InlayHintParams) -> list[types.InlayHint]:
        opened = server.opened(params)
        if opened is None:
            return []
        header, positions = opened
        start, end = positions.offset(params.range.start), positions.offset(params.range.end)
        found = offset_hints(header, start, end, server.session.abi)
        return [types.InlayHint(positions.at(at), text, padding_left=True) for at, text in found]


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


def _add_uses(server: Server) -> None:
    """Show where a field is used, and rename it."""

    def ranges(params: _Question, position: types.Position) -> list[types.Range]:
        opened = server.opened(params)
        if opened is None:
            return []
        uses = field_uses(opened.header, opened.positions.offset(position))
        return [opened.positions.range(use.start, use.end) for use in uses]

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
    def highlight(params: types.DocumentHighlightParams) -> list[types.DocumentHighlight]:
        return [types.DocumentHighlight(place) for place in ranges(params, params.position)]

    @server.feature(types.TEXT_DOCUMENT_REFERENCES)
    def references(params: types.ReferenceParams) -> list[types.Location]:
        return [types.Location(params.text_document.uri, place) for place in ranges(params, params.position)]

    @server.feature(types.TEXT_DOCUMENT_PREPARE_RENAME)
    def prepare(params: types.PrepareRenameParams) -> types.Range | None:
        opened = server.opened(params)
        if opened is None:
            return None
        word = renamable(opened.header, opened.positions.offset(params.position))
        return opened.positions.range(word.start, word.end) if word is not None else None

    @server.feature(types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True))
    def rename(params: types.RenameParams) -> types.WorkspaceEdit | None:
        opened = server.opened(params)
        if opened is None:
            return None
        try:
            uses = rename_field(opened.header, opened.positions.offset(params.position), params.new_name)
        except TracepointError as error:
            raise JsonRpcInvalidParams(str(error)) from None
        changes = [(use.start, use.end, params.new_name) for use in uses]
        return _edit(params.text_document.uri, opened.positions, changes)


def _signature(server: Server, document: Document, offset: int) -> types.SignatureHelp | None:
    """Return what the call around an offset takes."""
    call = call_at(document.text, offset)
    if call is None or document.is_python:
        return None
    found = macro_signature(call.name) if document.declares else None
    if found is None and (header := server.declaring(document, call.name)) is not None:
        thing = called(header, call.name)
        found = call_signature(call.name, thing) if thing is not None else None
    if found is None:
        return None
    parameters = [types.ParameterInformation(text) for text in found.parameters]
    shown = types.SignatureInformation(found.label, parameters=parameters)
    return types.SignatureHelp([shown], active_signature=0, active_parameter=call.argument)


def _add_writing(server: Server) -> None:
    """Help to write a declaration: names to complete, arguments, and formatting."""

    @server.feature(types.TEXT_DOCUMENT_SIGNATURE_HELP, types.SignatureHelpOptions(["(", ","]))
    def signature(params: types.SignatureHelpParams) -> types.SignatureHelp | None:
        document = server.documents.get(params.text_document.uri)
        if document is None:
            return None
        return _signature(server, document, server.positions(document.text).offset(params.position))

    @server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions([">", "_"]))
    def completion(params: types.CompletionParams) -> list[types.CompletionItem]:
        opened = server.opened(params)
        found = completions_at(opened.header, opened.positions.offset(params.position)) if opened else ()
        return [types.CompletionItem(name, detail=detail or None) for name, detail in found]

    @server.feature(types.TEXT_DOCUMENT_FORMATTING)
    def formatting(params: types.DocumentFormattingParams) -> list[types.TextEdit]:
        document = server.documents.get(params.text_document.uri)
        if document is None or not document.declares:
            return []
        new = format_text(document.text, document.path).text
        whole = server.positions(document.text).range(0, len(document.text))
        return [types.TextEdit(whole, new)] if new != document.text else []


def _path(uri: str) -> str:
    """Return the path of a file, or the URI of a text that is no file."""
    return to_fs_path(uri) or uri


def _valid(text: str) -> str:
    """Return a text without halves of characters, which JSON can hold and no file can."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _diagnostic(uri: str, path: str, finding: Diagnostic, positions: Positions) -> types.Diagnostic:
    """Return a finding as the protocol has it; places in other files have only lines and columns."""
    related = []
    for other in finding.related:
        is_here = other.span.path == path
        place = positions.of_span(other.span) if is_here else _plain_range(other.span.line, other.span.column)
        target = uri if is_here else from_fs_path(str(Path(other.span.path).absolute())) or uri
        related.append(types.DiagnosticRelatedInformation(types.Location(target, place), other.message))
    text = "\n".join([finding.text, *finding.help])
    return types.Diagnostic(
        positions.of_span(finding.span),
        text,
        _SEVERITIES[finding.severity],
        finding.code or None,
        source="tracepoint",
        related_information=related or None,
    )


def _plain_range(line: int, column: int) -> types.Range:
    place = types.Position(max(line - 1, 0), max(column - 1, 0))
    return types.Range(place, place)


def _actions(
    uri: str, document: Document, positions: Positions, wanted: types.Range
) -> Iterator[types.CodeAction]:
    """Yield the fixes of the findings in a range, and one that applies all that are safe."""
    start, end = positions.offset(wanted.start), positions.offset(wanted.end)
    edit = partial(_edit, uri, positions)
    for finding in document.findings:
        fix = finding.fix
        is_near = finding.span.start <= end and start <= max(finding.span.end, finding.span.start)
        if fix is None or not is_near or fix.safety is Safety.SHOWN:
            continue
        if any(part.path != document.path for part in fix.edits):
            continue
        note = "" if fix.is_safe else " (changes the record or what readers see)"
        yield types.CodeAction(
            f"{fix.message}{note}",
            types.CodeActionKind.QuickFix,
            [_diagnostic(uri, document.path, finding, positions)],
            is_preferred=fix.is_safe,
            edit=edit([(part.start, part.end, part.replacement) for part in fix.edits]),
        )
    fixed = apply_fixes(document.findings, document.text)
    if fixed != document.text:
        whole = edit([(0, len(document.text), fixed)])
        yield types.CodeAction("apply all safe fixes", types.CodeActionKind.SourceFixAll, edit=whole)


def _edit(uri: str, positions: Positions, changes: list[tuple[int, int, str]]) -> types.WorkspaceEdit:
    edits = [types.TextEdit(positions.range(start, end), text) for start, end, text in changes]
    return types.WorkspaceEdit({uri: edits})


def _symbol(thing: Declared, positions: Positions) -> types.DocumentSymbol:
    """Return a declaration in the outline, with its fields."""
    place = positions.of_span(thing.origin.span) if thing.origin else _plain_range(1, 1)
    kinds = {Event: types.SymbolKind.Event, BareTracepoint: types.SymbolKind.Function}
    children = [
        types.DocumentSymbol(field.name, types.SymbolKind.Field, at, at, field.ctype)
        for field in own_fields(thing)
        if field.origin is not None
        for at in [positions.of_span(field.origin.span)]
    ]
    kind = kinds.get(type(thing), types.SymbolKind.Class)
    return types.DocumentSymbol(thing.name, kind, place, place, thing.macro, children=children)
