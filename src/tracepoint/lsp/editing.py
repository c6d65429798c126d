"""What changes a text: fixes of findings, names to complete, arguments of calls, formatting."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from lsprotocol import types

from tracepoint.check.engine import apply_fixes
from tracepoint.diagnostics import Safety
from tracepoint.lsp.complete import completions_at
from tracepoint.lsp.definition import called
from tracepoint.lsp.protocol import shown_diagnostic, workspace_edit
from tracepoint.lsp.ranges import format_range
from tracepoint.lsp.signature import call_at, call_signature, macro_signature
from tracepoint.model.fmt.text import format_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.lsp.positions import Positions
    from tracepoint.lsp.protocol import Server
    from tracepoint.lsp.session import Document


def add_editing(server: Server) -> None:
    """Offer fixes, completion, signatures and formatting."""
    _add_fixes(server)
    _add_writing(server)


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

    @server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions([">", "_", "p", "("]))
    def completion(params: types.CompletionParams) -> list[types.CompletionItem]:
        document = server.documents.get(params.text_document.uri)
        if document is None or not document.declares:
            return []
        offset = server.positions(document.text).offset(params.position)
        found = document.header and completions_at(document.header, offset)
        if not found and (header := document.read_closed(offset)) is not None:
            found = completions_at(header, offset)
        found = found or []
        return [types.CompletionItem(name, detail=detail or None) for name, detail in found if name]

    @server.feature(types.TEXT_DOCUMENT_FORMATTING)
    def formatting(params: types.DocumentFormattingParams) -> list[types.TextEdit]:
        document = server.documents.get(params.text_document.uri)
        if document is None or not document.declares:
            return []
        new = format_text(document.text, document.path).text
        whole = server.positions(document.text).range(0, len(document.text))
        return [types.TextEdit(whole, new)] if new != document.text else []

    @server.feature(types.TEXT_DOCUMENT_RANGE_FORMATTING)
    def formatting_of_range(params: types.DocumentRangeFormattingParams) -> list[types.TextEdit]:
        document = server.documents.get(params.text_document.uri)
        if document is None or not document.declares:
            return []
        positions = server.positions(document.text)
        start, end = positions.offset(params.range.start), positions.offset(params.range.end)
        found = format_range(document.text, document.path, start, end)
        return [types.TextEdit(positions.range(old, old_end), new) for old, old_end, new in found]


def _actions(
    uri: str, document: Document, positions: Positions, wanted: types.Range
) -> Iterator[types.CodeAction]:
    """Yield the fixes of the findings in a range, and one that applies all that are safe."""
    start, end = positions.offset(wanted.start), positions.offset(wanted.end)
    edit = partial(workspace_edit, uri, positions)
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
            [shown_diagnostic(uri, document.path, finding, positions)],
            is_preferred=fix.is_safe,
            edit=edit([(part.start, part.end, part.replacement) for part in fix.edits]),
        )
    fixed = apply_fixes(document.findings, document.text)
    if fixed != document.text:
        whole = edit([(0, len(document.text), fixed)])
        yield types.CodeAction("apply all safe fixes", types.CodeActionKind.SourceFixAll, edit=whole)
