"""Random placements in a kernel's own functions, and what must be true of each."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.errors import PlaceError
from tracepoint.place.code import read_code
from tracepoint.place.functions import find_functions
from tracepoint.place.insert import RETURN_VALUE, EventCall, InsertionPoint, Placement, Where, place_call
from tracepoint.place.names import all_declared
from tracepoint.place.statements import StatementKind, read_body
from tracepoint.source.lexer import Kind as TokenKind
from tracepoint.source.lexer import lex
from tracepoint.source.text import SourceFile, apply_edits, decode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tracepoint.place.code import SourceCode
    from tracepoint.place.functions import Function

INTEGERS = {
    "int", "unsigned int", "long", "unsigned long", "u8", "u16", "u32", "u64", "s32", "s64", "bool", "size_t",
    "ssize_t", "loff_t", "pgoff_t", "sector_t", "gfp_t", "pid_t", "unsigned", "unsigned char", "char", "ino_t",
    "unsigned long long", "long long", "umode_t", "__u32", "__u64", "uint32_t", "uint64_t", "xfs_agnumber_t",
    "xfs_agblock_t", "xfs_extlen_t", "xfs_fileoff_t", "xfs_fsblock_t", "ext4_lblk_t", "ext4_fsblk_t", "dev_t",
}  # fmt: skip


@dataclass(frozen=True)
class Trial:
    """One placement that was asked for, and the file and function it was asked of."""

    source: SourceFile
    function: str
    place: InsertionPoint
    call: EventCall


def files_of(tree: Path, folders: Sequence[str]) -> list[str]:
    return sorted(str(p.relative_to(tree)) for folder in folders for p in (tree / folder).rglob("*.c"))


def random_trials(tree: Path, paths: Sequence[str], seed: int, *, typed: bool = False) -> Iterator[Trial]:
    """Yield one trial for a random function of each of the paths, which may repeat."""
    chance = random.Random(seed)
    for number, path in enumerate(paths):
        source = SourceFile(path, decode((tree / path).read_bytes()))
        code = read_code(source)
        functions = [f for f in find_functions(code) if not f.trouble and f.close >= 0]
        if functions:
            yield _trial(chance, source, code, chance.choice(functions), number, typed=typed)


def _trial(
    chance: random.Random,
    source: SourceFile,
    code: SourceCode,
    function: Function,
    number: int,
    *,
    typed: bool,
) -> Trial:
    body = read_body(code, function)
    where = chance.choice([Where.ENTRY, Where.RETURNS, Where.AFTER, Where.BEFORE])
    known = [v for found in all_declared(code, body, function).values() for v in found]
    usable = [v for v in known if _kind(v.type) and not v.is_array]
    if where is Where.ENTRY:
        usable = [v for v in usable if v in function.params]
    args = [(v.name, _kind(v.type)) for v in chance.sample(usable, min(2, len(usable)))]
    if where is Where.RETURNS and _kind(function.returns):
        args.append((RETURN_VALUE, _kind(function.returns)))
    statements = [
        s for s in body.walk() if s is not body and s.kind not in (StatementKind.BLOCK, StatementKind.LABEL)
    ]
    place = InsertionPoint(function.names[0], where, line=code.line(function.name_at))
    if where in (Where.AFTER, Where.BEFORE):
        place = InsertionPoint(function.names[0], Where.ENTRY, line=place.line)
        if statements:
            chosen = chance.choice(statements)
            text = source.text[code.tokens[chosen.first].start : code.tokens[chosen.last].end]
            place = InsertionPoint(function.names[0], where, text, code.line(chosen.first))
    if typed and not args:
        args.append(("0", "unsigned long"))
    params = tuple((kind, f"p{index}") for index, (_, kind) in enumerate(args)) if typed else ()
    call = EventCall(f"place_trial_{number}", tuple(name for name, _ in args), params=params)
    return Trial(source, function.names[0], place, call)


def _kind(type_: str) -> str:
    if type_.endswith("*"):
        return "const void *"
    return "unsigned long" if type_ in INTEGERS else ""


def run(trial: Trial) -> Placement | PlaceError:
    try:
        return place_call(trial.source, trial.place, trial.call)
    except PlaceError as error:
        return error


def tokens_of(text: str) -> list[str]:
    return [t.text for t in lex(SourceFile("x.c", text)) if t.kind is not TokenKind.END]


def strip_calls(tokens: list[str], event: str) -> tuple[list[str], int]:
    """Remove the calls and their guards; returns what is left and how many there were."""
    found: list[str] = []
    at = count = 0
    guard = ["if", "(", f"trace_{event}_enabled", "(", ")", ")"]
    while at < len(tokens):
        if tokens[at : at + 6] == guard:
            at += 6
            assert tokens[at] == f"trace_{event}"
        if tokens[at] == f"trace_{event}":
            depth = 0
            while tokens[at] != ";" or depth:
                depth += (tokens[at] == "(") - (tokens[at] == ")")
                at += 1
            at += 1
            count += 1
        else:
            found.append(tokens[at])
            at += 1
    return found, count


def undo_values(tokens: list[str], old: list[str]) -> list[str]:
    """Turn each `ret = E; return ret;` back to `return E;`, and drop the declaration of `ret`.

    Guided by the old tokens, so that code that was so before stays.
    """
    found: list[str] = []
    at = 0
    position = 0
    while at < len(tokens):
        expected = old[position] if position < len(old) else ""
        if expected == "return" and tokens[at + 1 : at + 2] == ["="]:
            name = tokens[at]
            found.append("return")
            at += 2
            position += 1
            depth = 0
            while tokens[at] != ";" or depth:
                depth += (tokens[at] in "([{") - (tokens[at] in ")]}")
                found.append(tokens[at])
                at += 1
                position += 1
            found.append(";")
            position += 1
            at += 1
            assert tokens[at : at + 3] == ["return", name, ";"], tokens[at : at + 3]
            at += 3
            continue
        found.append(tokens[at])
        position += tokens[at] == expected
        at += 1
    return found


def only_added(old: list[str], new: list[str]) -> list[str]:
    """Return the tokens that were added; fails when one of the old is gone."""
    added = []
    at = 0
    for token in new:
        if at < len(old) and token == old[at]:
            at += 1
        else:
            added.append(token)
    assert at == len(old), f"lost from: {' '.join(old[at : at + 10])}"
    return added


def check(trial: Trial, found: Placement) -> int:
    """Check a placement against the text alone; returns the number of calls."""
    old_text = trial.source.text
    new_text = apply_edits(old_text, found.edits)
    old = tokens_of(old_text)
    left, n_calls = strip_calls(tokens_of(new_text), trial.call.event)
    assert n_calls == len(found.spans) > 0
    added = only_added(old, undo_values(left, old))
    declared = [n for n in found.notes if n.startswith("the variable `")]
    braces = [t for t in added if t in "{}"]
    others = [t for t in added if t not in "{}"]
    assert braces.count("{") == braces.count("}") == sum("braces are added" in n for n in found.notes)
    assert bool(others) == bool(declared), others
    for line in added_lines(old_text, new_text):
        assert not re.search(r"[ \t]$| \t", line), repr(line)
        indent = line[: len(line) - len(line.lstrip())]
        assert " " * 8 not in indent or f"\n{indent}" in old_text, repr(line)
    again = read_code(SourceFile(trial.source.path, new_text))
    assert not again.unmatched
    return n_calls


def added_lines(old: str, new: str) -> list[str]:
    known = set(old.split("\n"))
    return [line for line in new.split("\n") if line not in known]


def built_files(source: Path, config: str, folders: Sequence[str]) -> list[str]:
    """The C files that a configuration compiles in these folders, as their Makefiles say."""
    enabled = set(re.findall(r"^(CONFIG_\w+)=y$", config, re.MULTILINE))
    found = []
    for folder in folders:
        text = (source / folder / "Makefile").read_text().replace("\\\n", " ")
        rules = re.findall(r"^([\w-]+)-(y|\$\(CONFIG_\w+\))\s*[:+]?=(.*)$", text, re.MULTILINE)
        rules = [(name, objects.split()) for name, on, objects in rules if on == "y" or on[2:-1] in enabled]
        linked = {word for name, objects in rules if name == "obj" for word in objects}
        for name, objects in rules:
            if name in ("obj", "mmu") or f"{name}.o" in linked:
                found += [f"{folder}/{word[:-2]}.c" for word in objects if word.endswith(".o")]
    found = [path for path in found if "nommu" not in path]  # replaced by a later `:=`
    return sorted(path for path in set(found) if (source / path).is_file())


def trace_header(call: EventCall) -> str:
    """A header that declares the event of a trial."""
    params = [f"{kind}{'' if kind.endswith('*') else ' '}{name}" for kind, name in call.params]
    fields = " ".join(f"__field({kind}, {name})" for kind, name in call.params)
    assigns = " ".join(f"__entry->{name} = {name};" for _, name in call.params)
    return f"""#undef TRACE_SYSTEM
#define TRACE_SYSTEM {call.event}
#if !defined(_TRACE_{call.event}) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_{call.event}
#include <linux/tracepoint.h>
TRACE_EVENT({call.event},
	TP_PROTO({", ".join(params)}),
	TP_ARGS({", ".join(name for _, name in call.params)}),
	TP_STRUCT__entry({fields}),
	TP_fast_assign({assigns}),
	TP_printk("%d", 1)
);
#endif
#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE {call.event}
#include <trace/define_trace.h>
"""


def with_event(trial: Trial, found: Placement) -> dict[str, str]:
    """The changed file and the new header, by their paths in the tree."""
    header = f"trace/events/{trial.call.event}.h"
    text = apply_edits(trial.source.text, found.edits)
    at = trial.source.text.rfind("\n", 0, found.function_span.start) + 1
    assert all(edit.start >= at for edit in found.edits)
    text = f"{text[:at]}#define CREATE_TRACE_POINTS\n#include <{header}>\n{text[at:]}"
    return {trial.source.path: text, f"include/{header}": trace_header(trial.call)}
