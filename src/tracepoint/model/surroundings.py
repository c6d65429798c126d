"""The surroundings of a trace header decide which of its events exist: macros of other files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tracepoint.diagnostics import Diagnostic, Severity
from tracepoint.model.vocabulary import PROTECTED
from tracepoint.source.closure import IncludeClosure
from tracepoint.source.environment import Environment

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tracepoint.source.closure import SharedFiles
    from tracepoint.source.config import Config
    from tracepoint.source.preprocess import Loader, Preprocessed
    from tracepoint.source.text import SourceFile

#: A call that declares an event, at the beginning of a line.
DECLARES = re.compile(r"^[ \t]*(?:TRACE|DECLARE|DEFINE)_EVENT\w*[ \t]*\(", re.MULTILINE)
_DEFINED = re.compile(r"^[ \t]*#[ \t]*define[ \t]+([A-Za-z_]\w*)", re.MULTILINE)
_INCLUDED = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)
#: Names with which the tracing code drives a header; what other files define there does not count.
_OF_TRACING = re.compile(r"TRACE_|CREATE_|UNDEF_TRACE_|NOTRACE$|TRACEPOINTS_ENABLED$")


class Surroundings:
    """What the files around a header define: its includes, and the C files that create its events."""

    def __init__(
        self,
        file: SourceFile,
        loader: Loader | None,
        config: Config,
        extra_includes: Iterable[tuple[str, bool, str]],
        shared: SharedFiles | None,
    ) -> None:
        self._file = file
        self._loader = loader
        self._config = config
        self._extra = extra_includes
        self._shared = shared
        self._own_names: frozenset[str] | None = None
        self._environment: Environment | None = None
        self._has_creator = False

    def defines(self, name: str) -> bool | None:
        """Return whether a macro is defined around the header; None if there is no C file to decide it."""
        if self._own_names is None:
            self._own_names = frozenset(_DEFINED.findall(self._file.text))
        if name in self._own_names or name in PROTECTED or _OF_TRACING.match(name):
            return False
        if self._loader is None:
            return None
        if self._environment is None:
            extra = list(self._extra)
            self._has_creator = any(included.endswith(".c") for included, _, _ in extra)
            own = ((n, quote == '"', self._file.path) for quote, n in _INCLUDED.findall(self._file.text))
            closure = IncludeClosure(self._loader, own, self._shared, more=extra)
            self._environment = Environment(
                config=self._config, closure=closure, protected=PROTECTED, shared=self._shared
            )
        if self._environment.macro(name) is not None:
            return True
        return False if self._has_creator else None


def undecided_findings(read: Preprocessed) -> Iterator[Diagnostic]:
    """Yield a finding for every part with events that was left out because nothing defines a macro."""
    for undecided in read.undecided:
        n_events = len(DECLARES.findall(read.file.text, undecided.condition.end, undecided.end))
        if n_events:
            yield Diagnostic(
                "TP019",
                "condition-not-decided",
                f"no file at hand defines {undecided.name}, nor is the C file at hand that creates the "
                f"events: {n_events} declaration{'s' if n_events > 1 else ''} below this line "
                f"{'are' if n_events > 1 else 'is'} not read",
                undecided.condition.root.span,
                Severity.NOTE,
            )
