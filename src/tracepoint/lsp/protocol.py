"""The server's state and the protocol's types: documents by URI, positions, places, findings."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path

from tracepoint import __version__
from tracepoint.diagnostics import Severity
from tracepoint.lsp.definition import called
from tracepoint.lsp.positions import Positions
from tracepoint.lsp.project import KnownKernels
from tracepoint.named import NamedTuple
from tracepoint.source.text import decode

if TYPE_CHECKING:
    from tracepoint.diagnostics import Diagnostic, Span
    from tracepoint.lsp.session import Document, OpenFiles
    from tracepoint.model.event import TraceHeader

#: Typing pauses when no change came for so long; then all of a header is checked.
PAUSE_S = 0.3
_SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.NOTE: types.DiagnosticSeverity.Information,
}


Question: TypeAlias = (
    types.HoverParams
    | types.CompletionParams
    | types.InlayHintParams
    | types.DocumentSymbolParams
    | types.FoldingRangeParams
    | types.DocumentHighlightParams
    | types.ReferenceParams
    | types.PrepareRenameParams
    | types.RenameParams
    | types.SemanticTokensParams
    | types.SemanticTokensRangeParams
)


class Server(LanguageServer):
    """A language server over one session; `documents` are the open files by URI."""

    def __init__(self, session: OpenFiles) -> None:
        # Clients and pygls disagree on what ends a line (form feed, U+2028): whole texts have no lines.
        super().__init__("tracepoint", __version__, types.TextDocumentSyncKind.Full)
        self.session = session
        self.documents: dict[str, Document] = {}
        self.kernels = KnownKernels()

    def positions(self, text: str) -> Positions:
        """Return the positions of a text in the client's encoding."""
        encoding = self.server_capabilities.position_encoding
        return Positions(text, str(getattr(encoding, "value", encoding) or "utf-16"))

    def publish(self, uri: str) -> None:
        """Send the findings of a document to the client."""
        document = self.documents[uri]
        positions = self.positions(document.text)
        found = [shown_diagnostic(uri, document.path, finding, positions) for finding in document.findings]
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found, document.version))

    def settle_after_pause(self, uri: str, text: str) -> None:
        """Check all of a document once its text has stayed as it is for a moment."""
        asyncio.get_running_loop().call_later(PAUSE_S, self._settle_if_unchanged, uri, text)

    def _settle_if_unchanged(self, uri: str, text: str) -> None:
        document = self.documents.get(uri)
        if document is not None and document.text == text and not document.is_settled:
            document.settle()
            self.publish(uri)

    def opened(self, params: Question) -> Opened | None:
        """Return the document that a question is about, None if it is no header that can be read."""
        document = self.documents.get(params.text_document.uri)
        header = document.header if document is not None else None
        return None if document is None or header is None else Opened(header, self.positions(document.text))

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

    def text_of(self, path: str) -> str:
        """Return the text of a file: as it is open, or else as on the disk; empty if it cannot be read."""
        real = Path(path).resolve()
        for document in self.documents.values():
            if Path(document.path).resolve() == real:
                return document.text
        try:
            return decode(real.read_bytes())
        except OSError:
            return ""

    def uri_of(self, path: str) -> str:
        """Return the URI of a file, as the client wrote it where it has the file open."""
        real = Path(path).resolve()
        mine = (uri for uri, d in self.documents.items() if Path(d.path).resolve() == real)
        return next(mine, None) or from_fs_path(str(real)) or path

    def location(self, header: TraceHeader, span: Span) -> types.Location:
        """Return a place that was found in a header, which may be in a file that it includes."""
        if header.source is not None and header.path == span.path:
            place = self.positions(header.source.text).of_span(span)
        else:
            place = plain_range(span.line, span.column)
        return types.Location(self.uri_of(span.path), place)


class Opened(NamedTuple):
    """A header that a question is about, and the positions of its text."""

    header: TraceHeader
    positions: Positions


def path_of(uri: str) -> str:
    """Return the path of a file, or the URI of a text that is no file."""
    return to_fs_path(uri) or uri


def valid_text(text: str) -> str:
    """Return a text without halves of characters, which JSON can hold and no file can."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def shown_diagnostic(uri: str, path: str, finding: Diagnostic, positions: Positions) -> types.Diagnostic:
    """Return a finding as the protocol has it; places in other files have only lines and columns."""
    related = []
    for other in finding.related:
        is_here = other.span.path == path
        place = positions.of_span(other.span) if is_here else plain_range(other.span.line, other.span.column)
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


def plain_range(line: int, column: int) -> types.Range:
    """Return the place of a line and column from 1."""
    place = types.Position(max(line - 1, 0), max(column - 1, 0))
    return types.Range(place, place)


def workspace_edit(
    uri: str, positions: Positions, changes: list[tuple[int, int, str]]
) -> types.WorkspaceEdit:
    """Return edits of one text: from an offset, to an offset, what stands there then."""
    edits = [types.TextEdit(positions.range(start, end), text) for start, end, text in changes]
    return types.WorkspaceEdit({uri: edits})
