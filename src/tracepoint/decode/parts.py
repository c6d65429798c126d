"""One event of a large recording part by part: what was decoded is given up before the next part is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.decode.arrow import table_node
from tracepoint.decode.handing import hand_parts, hand_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.decode.arrow import ArrowNode
    from tracepoint.decode.table import Table
    from tracepoint.decode.trace import Trace


class TableParts:
    """The table of an event of a trace as several, one after the other in time; each reading decodes anew.

    A recording of less than a gigabyte is one part, which is kept.  What takes Arrow streams gets one part
    at a time.  Raises KeyError.
    """

    def __init__(self, trace: Trace, name: str) -> None:
        self._trace = trace
        self._whole = trace[name]
        self._windows = trace.windows()
        self.name = name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._whole!r}>"

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self._whole.columns

    def __iter__(self) -> Iterator[Table]:
        """Yield the tables."""
        if len(self._windows) == 1:
            yield self._whole
            return
        for window in self._windows:
            yield self._trace.between(*window)[self.name]

    def _node(self) -> ArrowNode:
        """Return what arrays of all parts are like."""
        empty = self._trace.between(0, 0)[self.name]
        return table_node([empty[column] for column in self.columns])

    def __arrow_c_schema__(self) -> object:
        return hand_schema(self._node())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        if len(self._windows) == 1:
            return self._whole.__arrow_c_stream__()
        parts = (table_node([part[column] for column in self.columns]) for part in self)
        try:
            return hand_parts(self._node(), parts)
        except NotImplementedError:
            return self._whole.__arrow_c_stream__()
