"""Events and classes across files: which one a position means, the files that name it, its other name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.errors import TracepointError
from tracepoint.lsp.definition import called, declaration_of
from tracepoint.lsp.mentions import declared_in, is_name, mentioned_in, named_at, named_event
from tracepoint.lsp.outline import field_at, word_at
from tracepoint.lsp.project import files_naming, pasted_call
from tracepoint.named import NamedTuple

if TYPE_CHECKING:
    from lsprotocol import types

    from tracepoint.lsp.mentions import DeclaredName
    from tracepoint.lsp.outline import Word
    from tracepoint.lsp.protocol import Server
    from tracepoint.lsp.session import Document
    from tracepoint.model.event import TraceHeader
    from tracepoint.tree.query.tree import Tree


class Target(NamedTuple):
    """An event or class, and the header that declares it."""

    header: TraceHeader
    named: DeclaredName


class NamingText(NamedTuple):
    """A file, its text, and where it names something."""

    path: str
    text: str
    words: list[Word]


def target_at(server: Server, document: Document, position: types.Position) -> Target | None:
    """Return the event or class that the word at a position names: in a declaration, or in a call of it."""
    if document.is_python:
        return None
    offset, own = server.positions(document.text).offset(position), document.header
    if own is not None:
        if field_at(own, offset) is not None:
            return None
        if (named := named_at(own, offset)) is not None:
            return Target(own, named)
    word = word_at(document.text, offset)
    header = server.declaring(document, word.text) if word is not None else None
    thing = called(header, word.text) if header is not None and word is not None else None
    return (
        Target(header, named_event(header, thing.name)) if header is not None and thing is not None else None
    )


def words_of(server: Server, target: Target, path: str) -> NamingText:
    """Return where one file names a target."""
    if Path(path).resolve() == Path(target.header.path).resolve():
        text = target.header.source.text if target.header.source is not None else ""
        return NamingText(path, text, declared_in(target.header, target.named))
    text = server.text_of(path)
    words = {word.start: word for word in mentioned_in(text, target.named)}
    return NamingText(path, text, [words[start] for start in sorted(words)])


def known_texts(server: Server, target: Target) -> list[NamingText]:
    """Return the files that name a target: its header, open files, and files of the index of the tree.

    The index is updated where files of the tree changed; a tree without one has open files only.
    """
    try:
        tree = server.session.updated_tree_of(target.header.path)
    except TracepointError:
        tree = None
    return _texts(server, target, tree)


def _texts(server: Server, target: Target, tree: Tree | None) -> list[NamingText]:
    paths = [target.header.path]
    if target.named.is_called:
        paths += [d.path for d in server.documents.values() if not d.is_python and _means(server, d, target)]
        paths += files_naming(tree, target.header, target.named) if tree is not None else []
    found: dict[Path, NamingText] = {}
    for path in paths:
        real = Path(path).resolve()
        if real not in found:
            found[real] = words_of(server, target, path)
    return [one for one in found.values() if one.words]


def _means(server: Server, document: Document, target: Target) -> bool:
    """Return whether an open file that names an event means that of the target's header."""
    word = f"trace_{target.named.call_name}"
    if target.named.call_name not in document.text:
        return False
    header = server.declaring(document, word)
    return header is not None and Path(header.path).resolve() == Path(target.header.path).resolve()


def is_declaration(target: Target | None, found: NamingText, word: Word) -> bool:
    """Return whether a word is the name in the declaration of a target."""
    if target is None or found.path != target.header.path:
        return False
    span = declaration_of(target.header, f"trace_{target.named.call_name}")
    return span is not None and span.start == word.start


def renamed_texts(server: Server, target: Target, name: str) -> list[NamingText]:
    """Return where another name of a target is to be written.

    Raises TracepointError for a name that it cannot have, and where it is called by a name that a macro
    pastes together, or declared so.
    """
    header, named = target
    if not is_name(name):
        raise TracepointError(f"{name!r} is not a valid event name: use letters, digits and _")
    tree = server.session.updated_tree_of(header.path)
    if name != named.name:
        _refuse_taken(target, name, tree)
    if tree is not None and named.is_called and (place := pasted_call(tree, header, named)):
        raise TracepointError(f"{place} calls trace_{named.call_name} by a pasted name: rename it by hand")
    found = _texts(server, target, tree)
    if not any(one.path == header.path for one in found):
        raise TracepointError(f"{header.path}: a macro makes the name {named.name}: rename it by hand")
    return found


def _refuse_taken(target: Target, name: str, tree: Tree | None) -> None:
    header, named = target
    taken = {thing.name for thing in header.classes} if "class" in named.kinds else set()
    if named.is_called:
        taken |= {event.name for event in header.events} | {one.name for one in header.tracepoints}
    if name in taken:
        raise TracepointError(f"{header.path} declares {name} already")
    for event in tree.events(name) if tree is not None and named.is_called else ():
        raise TracepointError(f"{event.span} declares {name} already")
