"""Questions to an indexed tree: its systems, events, call sites, and events without a caller."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import starmap
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from tracepoint.diagnostics import Span
from tracepoint.errors import TreeError
from tracepoint.named import NamedTuple
from tracepoint.tree.callsites.calls import CallSite, RawSite, SiteKind, make_site
from tracepoint.tree.index.rows import ClassRow, DetailRow, EventRow, LayoutRow, SyscallRow, TracepointRow
from tracepoint.tree.index.store import SYSCALLS
from tracepoint.wording import counted, tail

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tracepoint.layout.format import EventFormat
    from tracepoint.tree.index.store import IndexData

#: What fires an event, or may: a reference is passed to code that calls it.
CALLING = frozenset({SiteKind.CALL, SiteKind.REFERENCE})
_IS_NOP, _IS_CUSTOM = 1, 2


class FieldInfo(NamedTuple):
    """One member of TP_STRUCT__entry: macro without underscores, type, name, further arguments."""

    kind: str
    ctype: str
    name: str
    extra: str


class BareTracepointRow(NamedTuple):
    """A tracepoint without an event: its name, and what follows `trace_` in calls.

    `system` is that of the header; `proto` is the prototype as text.
    """

    name: str
    call_name: str
    system: str
    header: str
    line: int
    macro: str
    proto: str


class TreeEvent:
    """One event of a tree: its name, where it is declared, what it records.

    `header` is relative to the tree; `file`, `line` and `column` (from 1) are where it is, which is
    another file when the header includes it as a part; `via` are the wrapper macros that declared it;
    `class_name` is its event class.
    """

    __slots__ = (
        "_number",
        "_tree",
        "class_name",
        "column",
        "file",
        "flags",
        "header",
        "line",
        "macro",
        "name",
        "system",
        "via",
    )

    def __init__(self, tree: Tree, header: str, number: int, row: EventRow, class_name: str) -> None:
        self._tree = tree
        self._number = number
        self.header = header
        self.system = row.system
        self.name = row.name
        self.line = row.line
        self.column = row.column
        self.macro = row.macro
        self.via = tuple(row.via)
        self.flags = row.flags
        self.file = row.file or header
        self.class_name = class_name

    def __repr__(self) -> str:
        return self.full_name

    @property
    def full_name(self) -> str:
        """`system:name`, as in set_event."""
        return f"{self.system}:{self.name}"

    @property
    def span(self) -> Span:
        """Where it is declared."""
        return Span(self.file, self.line, self.column, self.line, self.column)

    @property
    def is_syscall(self) -> bool:
        """Whether a SYSCALL_DEFINE defines it."""
        return self.system == SYSCALLS and self.macro.startswith("SYSCALL_DEFINE")

    @property
    def is_nop(self) -> bool:
        """Whether no kernel has it (`TRACE_EVENT_NOP`)."""
        return bool(self.flags & _IS_NOP)

    @property
    def is_custom(self) -> bool:
        """Whether it is an additional event at a tracepoint that another one declares."""
        return bool(self.flags & _IS_CUSTOM)

    @property
    def params(self) -> tuple[tuple[str, str], ...]:
        """Type and name of each parameter of `trace_<name>()`."""
        return tuple((ctype, name) for ctype, name in self._tree.class_row(self).params)

    @property
    def proto(self) -> str:
        """The prototype as text."""
        return ", ".join(f"{t}{'' if t.endswith('*') else ' '}{n}".rstrip() for t, n in self.params) or "void"

    @property
    def fields(self) -> tuple[FieldInfo, ...]:
        """The members of the record as declared, without the common ones."""
        return tuple(FieldInfo(*row) for row in self._tree.class_row(self).fields)

    @property
    def doc(self) -> str:
        """The comment before the declaration, or before that of its class."""
        return self._tree.detail(self).doc or self._tree.class_row(self).doc

    @property
    def condition(self) -> str:
        """The expression of TP_CONDITION, empty when it always fires."""
        return self._tree.detail(self).condition

    @property
    def format(self) -> EventFormat | None:
        """The record on x86_64, None when it cannot be computed (`problem` says why)."""
        return self._tree.format_of(self)

    @property
    def problem(self) -> str:
        """Why there is no format, empty when there is one."""
        return self._tree.detail(self).problem


class Tree:
    """An indexed tree.

    `notes` are sentences about the creation of the index (rebuilt, files that could not be read).
    Use `open_tree` to get one.
    """

    def __init__(
        self,
        root: str,
        kind: str,
        load_head: Callable[[], dict[str, Any]],
        load_more: Callable[[], dict[str, Any]],
        notes: Iterable[str] = (),
    ) -> None:
        self.root = root
        self.kind = kind
        self.notes = list(notes)
        self._load_head = load_head
        self._load_more = load_more

    def __repr__(self) -> str:
        return f"<Tree {tail(self.root)}, {counted(len(self.events()), 'event')}>"

    @classmethod
    def of(cls, data: IndexData, notes: Iterable[str] = ()) -> Tree:
        """Make a tree from an index in memory."""
        return cls(data.root, data.kind, lambda: data.head, lambda: data.more, notes)

    def systems(self) -> list[str]:
        """Return the names of all systems."""
        return sorted({event.system for event in self._events})

    def events(self, pattern: str = "*") -> list[TreeEvent]:
        """Return the events that match a pattern, sorted by name.

        `pattern` is `system:event`, `system:`, or an event's name, each with `*`, `?` and `[…]`.
        """
        system, colon, name = pattern.partition(":")
        if not colon:
            system, name = "*", system
        chosen = self._by_name.get(name, ()) if name and not set(name) & set("*?[") else self._events
        return [
            event
            for event in chosen
            if fnmatchcase(event.system, system or "*") and fnmatchcase(event.name, name or "*")
        ]

    def call_sites(self, event: str | TreeEvent, kinds: Iterable[SiteKind] = CALLING) -> list[CallSite]:
        """Return where an event is mentioned, by default where it fires, sorted by place.

        `event` is a name, `system:name`, or an event of this tree; each of several events with
        one name has the sites nearest to its header.
        """
        wanted = frozenset(kinds)
        chosen = [event] if isinstance(event, TreeEvent) else self.events(event)
        found = {site: None for one in chosen for site in self._sites_of(one) if site.kind in wanted}
        return sorted(found, key=lambda s: (s.span, s.via))

    def all_sites(self, kind: SiteKind) -> Iterator[CallSite]:
        """Yield every mention of one kind, of events and of tracepoints without an event."""
        for table in self._site_tables():
            for path, rows in table.items():
                yield from (make_site(row, path) for row in starmap(RawSite, rows) if row.kind == kind)

    def count_sites(self) -> tuple[dict[SiteKind, int], int]:
        """Return how many mentions of each kind there are, and how many of the calls are made by macros."""
        tables = self._site_tables()
        plain, *hidden = (
            Counter(row.kind for rows in table.values() for row in starmap(RawSite, rows)) for table in tables
        )
        n_hidden = sum(kinds[SiteKind.CALL] for kinds in hidden)
        return {kind: sum(kinds[kind] for kinds in (plain, *hidden)) for kind in SiteKind}, n_hidden

    def unused_events(self) -> list[TreeEvent]:
        """Return the events that no C file of the tree fires.

        This excludes system calls, custom events (which use the tracepoint of another event)
        and events without a record.
        """
        if self.kind != "source":
            raise TreeError(self.root, "only a source tree has callers of events")
        return [
            event
            for event in self._events
            if not (event.is_syscall or event.is_custom or event.is_nop) and not self._is_fired(event)
        ]

    def duplicates(self) -> dict[str, list[TreeEvent]]:
        """Return the names that several headers declare, with the events."""
        return {
            name: events
            for name, events in sorted(self._by_name.items())
            if len({event.header for event in events if not event.is_custom}) > 1
        }

    def misnamed_headers(self) -> list[tuple[str, str]]:
        """Return the headers whose name is not their TRACE_SYSTEM, as `(header, system)`.

        Those need a TRACE_INCLUDE_FILE.
        """
        return [
            (path, system)
            for path, record in sorted(self._head["headers"].items())
            for system in record["systems"]
            if system and PurePosixPath(path).stem.replace("-", "_") != system.replace("-", "_")
        ]

    def headers(self) -> list[str]:
        """Return the trace headers, relative to the tree."""
        return sorted(self._head["headers"])

    def tracepoints(self, name: str = "") -> list[tuple[str, str, int]]:
        """Return the tracepoints without an event (DECLARE_TRACE), or those of a name: name, header, line."""
        return sorted(
            (row.name, path, row.line)
            for path, record in self._head["headers"].items()
            for row in starmap(TracepointRow, record["tracepoints"])
            if name in ("", row.name)
        )

    def bare_tracepoints(self) -> list[BareTracepointRow]:
        """Return the tracepoints without an event with all that is known about them, sorted by name."""
        return sorted(
            BareTracepointRow(row.name, row.call_name, record["system"], path, row.line, row.macro, row.proto)
            for path, record in self._head["headers"].items()
            for row in starmap(TracepointRow, record["tracepoints"])
        )

    def creators(self, header: str) -> list[str]:
        """Return the C files that define CREATE_TRACE_POINTS for a header."""
        return sorted(path for path, made in self._head["creators"].items() if header in made)

    def exports(self, event: str | TreeEvent) -> list[tuple[str, int, bool]]:
        """Return where a tracepoint is exported to modules: file, line, whether for GPL modules only."""
        name = event.name if isinstance(event, TreeEvent) else event.rpartition(":")[2]
        return self._exports.get(name, [])

    def _site_tables(self) -> tuple[dict[str, list[list[Any]]], ...]:
        """The mentions by file: plain ones, those that macros hide, and those with pasted names."""
        return self._head["sites"], self._head["hidden"], self._head["pasted"]

    # Details of events.

    def class_row(self, event: TreeEvent) -> ClassRow:
        """Return the stored row of an event's class."""
        if event.is_syscall:
            params = self._syscalls[event.name.removeprefix("sys_enter_").removeprefix("sys_exit_")]
            is_enter = event.name.startswith("sys_enter_")
            shown = [[*p] for p in params] if is_enter else [["long", "ret"]]
            fields = [["field", ctype, name, ""] for ctype, name in shown]
            return ClassRow(event.name, event.macro, shown, [], fields, "", event.line, "")
        row = EventRow(*self._head["headers"][event.header]["events"][event._number])  # noqa: SLF001 - our own
        return ClassRow(*self._record(event.header)["classes"][row.class_number])

    def detail(self, event: TreeEvent) -> DetailRow:
        """Return the stored row with the event's own data."""
        if event.is_syscall:
            return DetailRow(0)
        return DetailRow(*self._record(event.header)["events"][event._number])  # noqa: SLF001 - our own

    def format_of(self, event: TreeEvent) -> EventFormat | None:
        """Return the record of an event, None when it has none."""
        from tracepoint.tree.query.formats import event_format, syscall_formats  # noqa: PLC0415 - see there

        if event.is_syscall:
            name = event.name.removeprefix("sys_enter_").removeprefix("sys_exit_")
            mask, is_text = self._head["copied"].get(name, (0, 0))
            pair = syscall_formats(name, self._syscalls[name], mask, is_text=bool(is_text))
            return pair[0] if event.name.startswith("sys_enter_") else pair[1]
        number = self.detail(event).layout
        if number < 0:
            return None
        layout = LayoutRow(*self._record(event.header)["layouts"][number])
        return event_format(event.system, event.name, layout)

    def _record(self, header: str) -> dict[str, Any]:
        record: dict[str, Any] | None = self._more.get(header)
        head = self._head["headers"][header]
        if (
            record is None
            or len(record["events"]) != len(head["events"])
            or len(record["classes"]) != len(head["classes"])
        ):
            raise TreeError(self.root, f"the saved index contradicts itself ({header}): index the tree again")
        return record

    # Tables, made on first use.

    @cached_property
    def _head(self) -> dict[str, Any]:
        return self._load_head()

    @cached_property
    def _more(self) -> dict[str, Any]:
        return self._load_more()

    @cached_property
    def _events(self) -> list[TreeEvent]:
        found = [
            TreeEvent(self, path, number, row, record["classes"][row.class_number])
            for path, record in self._head["headers"].items()
            for number, row in enumerate(starmap(EventRow, record["events"]))
        ]
        found.extend(self._syscall_events())
        return sorted(found, key=lambda e: (e.system, e.name, e.header))

    def _syscall_events(self) -> Iterator[TreeEvent]:
        seen = set()
        for path, rows in _ours_first(self._head["syscalls"]):
            for name, params, line in rows:
                if name not in seen:
                    seen.add(name)
                    for way in ("enter", "exit"):
                        macro = f"SYSCALL_DEFINE{len(params)}"
                        row = EventRow(SYSCALLS, f"sys_{way}_{name}", 0, line, 1, macro, [], 0, "")
                        yield TreeEvent(self, path, 0, row, f"sys_{way}")

    @cached_property
    def _syscalls(self) -> dict[str, list[list[str]]]:
        found: dict[str, list[list[str]]] = {}
        for _, rows in _ours_first(self._head["syscalls"]):
            # Of several in one file the last is under the #else of other architectures.
            for name, params in {row.name: row.params for row in starmap(SyscallRow, rows)}.items():
                found.setdefault(name, params)
        return found

    @cached_property
    def _by_name(self) -> dict[str, list[TreeEvent]]:
        found: dict[str, list[TreeEvent]] = defaultdict(list)
        for event in self._events:
            found[event.name].append(event)
        return dict(found)

    @cached_property
    def _sites(self) -> dict[str, list[tuple[str, RawSite]]]:
        found: dict[str, list[tuple[str, RawSite]]] = defaultdict(list)
        for table in self._site_tables():
            for path, rows in table.items():
                for site in starmap(RawSite, rows):
                    found[site.event].append((path, site))
        return found

    @cached_property
    def _exports(self) -> dict[str, list[tuple[str, int, bool]]]:
        found: dict[str, list[tuple[str, int, bool]]] = defaultdict(list)
        for path, rows in sorted(self._head["exports"].items()):
            for name, line, is_gpl in rows:
                found[name].append((path, line, bool(is_gpl)))
        return found

    @cached_property
    def _used_macros(self) -> set[str]:
        return {site.via for rows in self._head["hidden"].values() for site in starmap(RawSite, rows)}

    def _sites_of(self, event: TreeEvent) -> Iterator[CallSite]:
        rivals = self._by_name[event.name]
        for path, site in self._sites.get(event.name, ()):
            if len(rivals) == 1 or event.header in _nearest(path, rivals):
                try:
                    yield make_site(site, path)
                except ValueError:
                    raise TreeError(self.root, "the saved index is damaged: index the tree again") from None

    def _is_fired(self, event: TreeEvent) -> bool:
        """Return whether something calls it, or a macro in use mentions it."""
        return any(
            site.kind in CALLING or (site.kind is SiteKind.MACRO and self._is_used(site))
            for site in self._sites_of(event)
        )

    def _is_used(self, site: CallSite) -> bool:
        # Why else would a C file define a macro; a header's may be unused.
        return site.span.path.endswith(".c") or site.function in self._used_macros


def _ours_first(table: dict[str, Any]) -> list[tuple[str, Any]]:
    """Sort files outside arch/ first, then x86, then the others."""
    return sorted(
        table.items(), key=lambda i: (i[0].startswith("arch/"), not i[0].startswith("arch/x86/"), i[0])
    )


def _nearest(path: str, rivals: Iterable[TreeEvent]) -> set[str]:
    """Return the headers of the events that share the longest path prefix with a caller.

    Of those, one directly in the shared folder takes precedence: a call in drivers/android/binder.c refers
    to binder_trace.h next to it, not to binder/rust_binder_events.h.
    """
    shared = {event.header: os.path.commonpath([path, event.header]) for event in rivals}
    longest = max(map(len, shared.values()))
    nearest = {header for header, folder in shared.items() if len(folder) == longest}
    return {header for header in nearest if header.rpartition("/")[0] == shared[header]} or nearest
