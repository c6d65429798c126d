"""Requests, and what their threads did, as tables."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from tracepoint.analysis.service.lanes import NO_TASK, TimeKind
from tracepoint.analysis.spans import OPEN
from tracepoint.decode.column import names_column, number_column
from tracepoint.decode.table import ColumnTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracepoint.analysis.service.build import ServiceRequest
    from tracepoint.decode.column import Column

_NUMBERS = {"ts": "q", "dur": "q", "cpu": "i", "tid": "i", "end_tid": "i"}


def request_table(requests: Sequence[ServiceRequest]) -> ColumnTable:
    """Return the table `service_request`: a row for each, with its time by what it was."""

    def columns() -> list[Column]:
        plain = (
            number_column(name, map(attrgetter(name), requests), code, OPEN if name == "end_tid" else None)
            for name, code in _NUMBERS.items()
        )
        parts = (
            number_column(kind.name.lower(), (request.parts[kind] for request in requests), "q")
            for kind in TimeKind
        )
        return [
            number_column("id", range(len(requests)), "q"),
            *plain,
            names_column("key", [request.key for request in requests]),
            *parts,
            number_column("is_cut", (request.is_cut for request in requests), "b"),
        ]

    return ColumnTable("service_request", columns)


def part_table(requests: Sequence[ServiceRequest]) -> ColumnTable:
    """Return the table `service_part`: what the thread of each request did, one thing after the other."""

    def columns() -> list[Column]:
        rows = [(at, piece) for at, request in enumerate(requests) for piece in request.pieces]
        causes = [piece.cause for _, piece in rows]
        return [
            number_column("id", range(len(rows)), "q"),
            number_column("request_id", (at for at, _ in rows), "q"),
            number_column("ts", (piece.start for _, piece in rows), "q"),
            number_column("dur", (piece.stop - piece.start for _, piece in rows), "q"),
            number_column("tid", (requests[at].tid for at, _ in rows), "i"),
            names_column("kind", [piece.kind.name.lower() for _, piece in rows]),
            names_column("state", [cause.state for cause in causes]),
            names_column("blocked_in", [cause.call for cause in causes]),
            names_column("woken_by", [cause.by for cause in causes]),
            number_column("waker_tid", (cause.waker for cause in causes), "i", NO_TASK),
        ]

    return ColumnTable("service_part", columns)
