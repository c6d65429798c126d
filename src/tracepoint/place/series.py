"""From a plan to patches: all changes, split by subsystem, in an order that builds."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from tracepoint.errors import PlaceError
from tracepoint.model.read import read_header_text
from tracepoint.place.choice import choose_creator, needs_export, warn_missing
from tracepoint.place.creators import add_exports, add_include, create
from tracepoint.place.declare import Declaration, declare
from tracepoint.place.fragment import merge_texts
from tracepoint.place.insert import EventCall, place_call, place_calls
from tracepoint.place.loader import KernelLoader
from tracepoint.place.message import (
    Fired,
    Message,
    check_why,
    make_subject,
    names_of,
    write_message,
)
from tracepoint.place.patch import FileChange, change_file, new_file
from tracepoint.place.plan import shown
from tracepoint.place.structs import Structs
from tracepoint.place.subsystem import group_files, prefix_of, subsystem_of
from tracepoint.place.types import unmet_types
from tracepoint.tree.kbuild import Kbuild

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tracepoint.diagnostics import Edit
    from tracepoint.place.insert import InsertionPoint, Placement
    from tracepoint.place.kernel import KernelTree
    from tracepoint.place.plan import CallAt, Plan
    from tracepoint.source.text import SourceFile


@dataclass(frozen=True, slots=True)
class Patch:
    """One patch: its message and its changes."""

    message: Message
    changes: tuple[FileChange, ...]


@dataclass(frozen=True, slots=True)
class Series:
    """Patches in their order, the message of the cover letter, and notes about decisions.

    `files` are the texts after the last patch.
    """

    patches: tuple[Patch, ...]
    cover: Message
    files: dict[str, str]
    notes: tuple[str, ...]

    @property
    def changes(self) -> tuple[FileChange, ...]:
        """What all patches together change, file by file; regions are those of the single patches."""
        found: dict[str, list[FileChange]] = defaultdict(list)
        for patch in self.patches:
            for change in patch.changes:
                found[change.path].append(change)
        return tuple(
            replace(c[0], new=c[-1].new, regions=tuple(r for one in c for r in one.regions))
            for c in found.values()
        )


@dataclass(slots=True)
class _Step:
    """The parts of one patch."""

    folder: str
    edits: dict[str, list[Edit]] = field(default_factory=lambda: defaultdict(list))
    new: dict[str, str] = field(default_factory=dict)
    declared: list[Declaration] = field(default_factory=list)
    fired: list[Fired] = field(default_factory=list)


def make_series(kernel: KernelTree, plan: Plan, *, is_split: bool = True) -> Series:
    """Return the patches that implement a plan.

    With `is_split` false there is one patch, whatever it touches.  Raises PlaceError with the reason
    when something cannot be done.
    """
    if not plan.calls:
        raise PlaceError("no place is named for a call (FILE:FUNCTION)")
    why = check_why(plan.why)
    for call in plan.calls:
        # A missing file is refused before the tree is searched for the events.
        kernel.source(call.path)
    maker = _Maker(kernel, plan, is_split=is_split)
    maker.run()
    patches = list(_patches(kernel, maker.steps, plan, why))
    files = {change.path: change.new for patch in patches for change in patch.changes}
    events = [event for step in maker.steps for made in step.declared for event in made.events]
    names = names_of(events) or list(dict.fromkeys(call.event for call in maker.calls))
    subject = plan.subject or make_subject("tracing", names, are_new=bool(events))
    cover = write_message(subject, why, (), ())
    return Series(tuple(patches), cover, files, tuple(dict.fromkeys(maker.notes)))


class _Maker:
    """Collects the edits of a plan by step."""

    def __init__(self, kernel: KernelTree, plan: Plan, *, is_split: bool) -> None:
        self._kernel = kernel
        self._plan = plan
        self.notes: list[str] = []
        self.declared = [declare(kernel, given) for given in merge_texts(plan.events)]
        self._check_declared()
        self._new_names = {event.name for made in self.declared for event in made.events}
        self._exported: set[str] = set()
        self.calls = [self._named(call) for call in plan.calls]
        groups = (
            group_files((c.path for c in self.calls), kernel.text("MAINTAINERS") or "") if is_split else {}
        )
        self._groups = groups
        folders = [groups.get(call.path, "") for call in self.calls]
        self.steps = [_Step(folder) for folder in dict.fromkeys(folders)]
        self._of = {step.folder: step for step in self.steps}
        self._folders = folders
        self._included: set[tuple[str, str]] = set()
        self._placed: dict[str, list[tuple[InsertionPoint, EventCall]]] = defaultdict(list)
        self._uses: dict[tuple[str, str], list[int]] = defaultdict(list)
        self._kbuild = Kbuild(kernel.text)
        self._structs: dict[str, Structs] = {}

    def run(self) -> None:
        for made in self.declared:
            self._declare(made)
        for call, folder in zip(self.calls, self._folders, strict=True):
            self._call(call, self._of[folder])
        for (path, header), uses in self._uses.items():
            self._include(path, header, uses)
        for path, requests in self._placed.items():
            step = self._of[self._groups.get(path, "")]
            step.edits[path] += place_calls(self._kernel.source(path), requests, self._structs[path])

    def _check_declared(self) -> None:
        seen: dict[str, str] = {}
        for made in self.declared:
            self.notes += made.notes
            for event in made.events:
                if event.name in seen:
                    raise PlaceError(f"{event.name} is declared twice in the plan")
                seen[event.name] = made.header
            if made.new_text and sum(other.header == made.header for other in self.declared) > 1:
                raise PlaceError(f"{made.header} would be created twice: give its events in one text")

    def _named(self, call: CallAt) -> CallAt:
        """The call with its event, which may be omitted when only one is declared."""
        if call.event:
            return call
        names = [event.name for made in self.declared for event in made.events]
        if len(names) != 1:
            raise PlaceError(
                f"{call.path}:{call.places[0].function}: name the event to call there"
                + (f": {', '.join(names)}" if names else "")
            )
        return replace(call, event=names[0])

    def _users(self, made: Declaration) -> list[CallAt]:
        names = {event.name for event in made.events}
        return [call for call in self.calls if call.event in names]

    def _declare(self, made: Declaration) -> None:
        users = self._users(made)
        if not users:
            raise PlaceError(f"nothing calls {', '.join(names_of(made.events))}")
        # The declaration is added with its first user.
        folders = {self._folder(call) for call in users}
        first = next(step for step in self.steps if step.folder in folders)
        if made.new_text:
            self._create(made, first)
            return
        first.declared.append(made)
        first.edits[made.header] += made.edits
        creators = self._kernel.tree.creators(made.header)
        if not creators:
            raise PlaceError(f"{made.header}: no C file of the tree creates its events (CREATE_TRACE_POINTS)")
        exports = self._exports(made, creators[0])
        if exports:
            first.edits[creators[0]] += add_exports(self._kernel, creators[0], made.header, exports)

    def _create(self, made: Declaration, step: _Step) -> None:
        callers = list(dict.fromkeys(call.path for call in self._users(made)))
        creator = made.creator
        if creator:
            self.notes.append(f"{creator} creates the events of {made.header}")
        else:
            creator, note = choose_creator(self._kbuild, made.header, callers)
            self.notes.append(note)
        own = self._of.get(self._groups.get(creator, subsystem_of(creator)))
        if own is not None and own is not step:
            # The patch for the creator's subsystem comes before those that use the header.
            self.steps.remove(own)
            self.steps.insert(self.steps.index(step), own)
            step = own
        step.declared.append(made)
        step.new[made.header] = made.new_text
        self._included.add((creator, made.header))
        exports = self._exports(made, creator)
        step.edits[creator] += create(self._kernel, creator, made.header, exports)

    def _exports(self, made: Declaration, creator: str) -> list[str]:
        """Return the new events that modules call, or all when the plan says so."""
        found = []
        for event in made.events:
            callers = {call.path for call in self.calls if call.event == event.name}
            notes = [warn_missing(self._kbuild, creator, path) for path in sorted(callers)]
            self.notes += [note for note in notes if note]
            modules = [path for path in sorted(callers) if needs_export(self._kbuild, creator, path)]
            if modules:
                self.notes.append(
                    f"{event.name} is exported, since {', '.join(modules)} may be built as a module"
                )
            if modules or self._plan.exports:
                found.append(event.name)
        return found

    def _folder(self, call: CallAt) -> str:
        return self._folders[self.calls.index(call)]

    def _call(self, call: CallAt, step: _Step) -> None:
        header, params = self._event(call.event)
        source = self._kernel.source(call.path)
        structs = self._structs.setdefault(call.path, Structs(source, self._kernel))
        place, placement = _place(source, call, params, structs)
        self._placed[call.path].append((place, EventCall(call.event, call.args, call.guard, params)))
        if call.event not in self._new_names:
            self._export_existing(call, header, step)
        self._uses[call.path, header] += [span.start for span in placement.spans]
        self.notes += [f"{call.path}:{place.function}: {note}" for note in _joined(placement.notes)]
        statement = place.statement
        if not statement and placement.spans:
            statement = source.text[placement.spans[0].start : placement.spans[0].end]
        step.fired.append(
            Fired(
                call.event,
                place.function,
                call.path,
                place.where,
                shown(statement),
                any(f"trace_{call.event}_enabled(" in edit.replacement for edit in placement.edits),
            )
        )

    def _include(self, path: str, header: str, uses: list[int]) -> None:
        """Make a file include the headers of the events that it calls."""
        if (path, header) in self._included:
            return
        added = add_include(self._kernel, path, header, uses)
        self._of[self._groups.get(path, "")].edits[path] += added
        if added:
            self.notes += self._unmet(path, header)

    def _unmet(self, path: str, header: str) -> Iterator[str]:
        """Report types that a file must know before it can include a header of the tree."""
        text = self._kernel.text(header)
        if text is None:
            return
        loader = KernelLoader(self._kernel)
        for name in unmet_types(read_header_text(text, header, loader=loader), loader, path):
            yield f"{path}: {header} needs {name}, which no include of the file declares"

    def _export_existing(self, call: CallAt, header: str, step: _Step) -> None:
        """Export an existing event if the new caller is in a module."""
        if self._kernel.tree.exports(call.event) or call.event in self._exported:
            return
        for creator in self._kernel.tree.creators(header)[:1]:
            if needs_export(self._kbuild, creator, call.path):
                self._exported.add(call.event)
                step.edits[creator] += add_exports(self._kernel, creator, header, [call.event])
                self.notes.append(f"{call.event} is exported, since {call.path} may be built as a module")

    def _event(self, name: str) -> tuple[str, tuple[tuple[str, str], ...]]:
        """Return the header of an event and its parameters."""
        for made in self.declared:
            for event in made.events:
                if event.name == name:
                    return made.header, tuple((p.ctype, p.name) for p in event.proto.params)
        # A custom event has no tracepoint to call: it uses that of another.
        found = [event for event in self._kernel.tree.events(name) if not event.is_custom]
        if not found:
            close = get_close_matches(name, [event.name for event in self._kernel.tree.events()], n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise PlaceError(f"{name} is declared neither in the tree nor in the plan{hint}")
        if len({event.header for event in found}) > 1:
            raise PlaceError(f"{len(found)} headers declare {name}: {', '.join(e.header for e in found)}")
        return found[0].header, found[0].params


def _place(
    source: SourceFile, call: CallAt, params: tuple[tuple[str, str], ...], structs: Structs
) -> tuple[InsertionPoint, Placement]:
    """Add a call at the first of its places that exists."""
    problems = []
    for place in call.places:
        try:
            return place, place_call(
                source, place, EventCall(call.event, call.args, call.guard, params), structs
            )
        except PlaceError as error:
            problems.append(error)
    if len(problems) == 1:
        raise problems[0]
    raise PlaceError("; ".join(str(problem) for problem in problems))


def _joined(notes: Iterable[str]) -> Iterator[str]:
    """Yield notes, with those about braces combined."""
    start = "braces are added in line "
    lines = [note.removeprefix(start) for note in notes if note.startswith(start)]
    yield from (note for note in notes if not note.startswith(start))
    if lines:
        yield f"braces are added in line{'s' if len(lines) > 1 else ''} {', '.join(lines)}"


def _patches(kernel: KernelTree, steps: Sequence[_Step], plan: Plan, why: str) -> Iterator[Patch]:
    done: dict[str, list[Edit]] = defaultdict(list)
    texts: dict[str, str] = {}
    for step in steps:
        changes = [new_file(path, text) for path, text in step.new.items()]
        for path, edits in step.edits.items():
            if not edits:
                continue
            old = texts.get(path) or kernel.source(path).text
            change = change_file(path, old, [_moved(e, done[path]) for e in edits], kernel.mode(path))
            done[path] += edits
            changes.append(change)
        texts.update((change.path, change.new) for change in changes)
        yield Patch(_message(step, plan, why, is_only=len(steps) == 1), tuple(changes))


def _moved(edit: Edit, done: Iterable[Edit]) -> Edit:
    """Return an edit of the original text as an edit of the text after earlier patches."""
    shift = 0
    for other in done:
        if other.start < edit.end and edit.start < other.end:
            raise PlaceError(f"{edit.path}: two changes of one place conflict")
        if other.start <= edit.start:
            shift += len(other.replacement) - (other.end - other.start)
    return replace(edit, start=edit.start + shift, end=edit.end + shift)


def _message(step: _Step, plan: Plan, why: str, *, is_only: bool) -> Message:
    events = [event for made in step.declared for event in made.events]
    headers = " and ".join(dict.fromkeys(made.header for made in step.declared))
    names = names_of(events) or list(dict.fromkeys(one.event for one in step.fired))
    paths = list(dict.fromkeys(one.path for one in step.fired))
    folder = step.folder or subsystem_of(paths[0])
    subject = plan.subject if plan.subject and is_only else ""
    return write_message(
        subject or make_subject(prefix_of(folder, paths), names, are_new=bool(events)),
        why,
        events,
        step.fired,
        headers,
    )
