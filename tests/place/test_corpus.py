"""Placements at random functions of a kernel: the text, and what the compiler says."""

from __future__ import annotations

import difflib
import random
import re
import shutil
import subprocess
from collections import Counter
from typing import TYPE_CHECKING

import pytest

import oracles
from place.corpus import built_files, check, files_of, random_trials, run, with_event
from tracepoint.errors import PlaceError
from tracepoint.lab.build import make as kernel_make
from tracepoint.lab.build.kernel import compile_object, configured_tree
from tracepoint.place.code import read_code
from tracepoint.place.functions import find_functions
from tracepoint.place.insert import EventCall, InsertionPoint, Where, place_calls
from tracepoint.place.statements import StatementKind, read_body
from tracepoint.source.text import SourceFile, apply_edits, decode

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tracepoint.diagnostics import Edit

FOLDERS = ("mm", "kernel", "fs")
SEED = 20260
N_COMPILED = 40
#: Options beyond those of the lab's kernel, for more file systems; warnings are errors.
OPTIONS = dict.fromkeys(("WERROR", "EXT4_FS", "XFS_FS", "BTRFS_FS", "FUSE_FS", "COMPACTION", "KSM"), "y")
BUILT = (*FOLDERS, "kernel/irq", "kernel/time", "kernel/locking", "kernel/rcu")
BUILT += ("fs/proc", "fs/ext4", "fs/xfs", "fs/btrfs", "fs/fuse")
#: Every reason for which a random placement may be refused.
TRUE_REASONS = re.compile(
    r"`\w+` has no value yet|`\w+` is declared (?:only later|in another block|only under)"
    r"|a call after this `\w+` is never reached|a call before this (?:statement|label) is never reached"
    r"|a call before this declaration would be a statement before it|`fallthrough` must stand directly"
    r"|this `if` is directly after `else`|this is the value of a statement expression"
    r"|\w+\(\) is (?:notrace|a part of kernel/trace/\w+\.c): recording the event may run it"
    r"|\w+\(\) is noinstr|\w+\(\) never returns|this statement crosses the boundary of the branch"
    r"|declarations and statements share the branch|braces are needed here, but a conditional"
    r"|.* is \d+ statements here"
)


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["linux-source-6.1", "linux-source-6.12"])
def test_200_placements_at_random_functions(name: str) -> None:
    tree = oracles.kernel_source(name)
    chosen = random.Random(SEED).choices(files_of(tree, FOLDERS), k=400)
    n_calls: list[int] = []
    refused: Counter[str] = Counter()
    for trial in random_trials(tree, chosen, SEED):
        found = run(trial)
        if isinstance(found, PlaceError):
            refused[found.reason] += 1
        else:
            n_calls.append(check(trial, found))
        if len(n_calls) == 200:
            break
    assert len(n_calls) == 200
    assert sum(n_calls) > 200  # some have several returns
    assert [reason for reason in refused if not TRUE_REASONS.match(reason)] == []
    assert sum(refused.values()) < 80


@pytest.mark.oracle
def test_40_placements_compile_with_their_events() -> None:
    tree = oracles.kernel_source("linux-source-6.1")
    try:
        kernel_make.check_tools()
    except Exception as error:  # noqa: BLE001 (whatever is missing, its message says how to get it)
        pytest.skip(str(error))
    build = configured_tree("6.1", options=OPTIONS)
    files = built_files(build.source, (build.objects / ".config").read_text(), BUILT)
    assert len(files) > 300
    chosen = random.Random(SEED).sample(files, 100)
    edits: dict[str, str] = {}
    targets: list[str] = []
    for trial in random_trials(tree, chosen, SEED, typed=True):
        found = run(trial)
        if isinstance(found, PlaceError):
            assert TRUE_REASONS.match(found.reason), found.reason
            continue
        if any("may have no value" in note for note in found.notes):
            continue  # the compiler may say so, too
        edits |= with_event(trial, found)
        targets.append(trial.source.path.removesuffix("c") + "o")
        if len(targets) == N_COMPILED:
            break
    assert len(targets) == N_COMPILED
    compile_object(build, targets, edits)


@pytest.mark.oracle
def test_checkpatch_has_nothing_to_say_of_added_lines(tmp_path: Path) -> None:
    tree = oracles.kernel_source("linux-source-6.1")
    if shutil.which("perl") is None:
        pytest.skip("checkpatch.pl needs perl: apt-get install perl")
    chosen = random.Random(SEED).choices(files_of(tree, FOLDERS), k=150)
    changed = []
    for trial in random_trials(tree, chosen, SEED):
        found = run(trial)
        if not isinstance(found, PlaceError):
            changed.append((trial.source, found.edits))
    assert_checkpatch_takes(tree, changed, tmp_path)


@pytest.mark.oracle
def test_checkpatch_has_nothing_to_say_of_calls_around_bodies_without_braces(tmp_path: Path) -> None:
    tree = oracles.kernel_source("linux-source-6.1")
    if shutil.which("perl") is None:
        pytest.skip("checkpatch.pl needs perl: apt-get install perl")
    chance = random.Random(SEED)
    changed = []
    n_pairs = 0
    for path in chance.sample(files_of(tree, FOLDERS), 60):
        source = SourceFile(path, decode((tree / path).read_bytes()))
        requests = list(around_bodies(source, chance))
        n_pairs += len(requests) // 2
        changed.append((source, place_calls(source, requests)))
    assert n_pairs > 100
    assert_checkpatch_takes(tree, changed, tmp_path)


def around_bodies(source: SourceFile, chance: random.Random) -> Iterator[tuple[InsertionPoint, EventCall]]:
    """Yield a call before and one after some bodies that have no braces."""
    code = read_code(source)
    functions = [f for f in find_functions(code) if not f.trouble and f.close >= 0]
    for function in chance.sample(functions, min(8, len(functions))):
        try:
            bodies = [
                s
                for s in read_body(code, function).walk()
                if s.is_body and s.kind is StatementKind.EXPRESSION
            ]
        except PlaceError:
            continue
        for statement in bodies[:2]:
            text = source.text[code.tokens[statement.first].start : code.tokens[statement.last].end]
            pair = []
            for where in (Where.BEFORE, Where.AFTER):
                place = InsertionPoint(function.names[0], where, text, code.line(statement.first))
                pair.append((place, EventCall(f"{where}_it", ())))
            try:
                place_calls(source, pair)
            except PlaceError as error:
                assert TRUE_REASONS.match(error.reason), error.reason  # noqa: PT017
                continue
            yield from pair


def assert_checkpatch_takes(
    tree: Path, changed: list[tuple[SourceFile, tuple[Edit, ...]]], folder: Path
) -> None:
    old_lines: set[str] = set()
    patch = "From: A <a@example.org>\nSubject: [PATCH] x: add y\n\nWhy.\n\nSigned-off-by: A <a@example.org>\n---\n"
    for source, edits in changed:
        old = source.text
        old_lines |= {" ".join(line.split()) for line in old.split("\n")}
        lines = (old.splitlines(keepends=True), apply_edits(old, edits).splitlines(keepends=True))
        patch += "".join(difflib.unified_diff(*lines, f"a/{source.path}", f"b/{source.path}", n=4))
    file = folder / "all.patch"
    file.write_text(patch, errors="surrogateescape")
    options = ["--no-tree", "--strict", "--terse", "--show-types", "--ignore=CAMELCASE"]
    command = ["perl", str(tree / "scripts/checkpatch.pl"), *options, str(file)]
    # It keeps what it knows of names in the folder it is run in.
    said = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, errors="replace", check=False
    ).stdout
    assert "lines checked" in said
    written = patch.split("\n")
    for number, what in re.findall(r":(\d+): (\w+:\w+: .*)", said):
        line = written[int(number) - 1]
        returned = re.sub(r"\b(?:ret|err|error|rc|retval) = ", "return ", line[1:])
        as_before = {" ".join(t.removesuffix(" {").split()).removeprefix("} ") for t in (line[1:], returned)}
        assert as_before & old_lines or "UNNECESSARY_PARENTHESES" in what, f"{what}: {line}"


@pytest.mark.oracle
def test_few_functions_are_not_understood() -> None:
    tree = oracles.kernel_source("linux-source-6.1")
    n_functions = 0
    refused: list[str] = []
    for path in files_of(tree, ("mm", "kernel")):
        source = SourceFile(path, decode((tree / path).read_bytes()))
        code = read_code(source)
        for function in find_functions(code):
            n_functions += 1
            try:
                assert not function.trouble, function.trouble
                read_body(code, function)
            except (AssertionError, PlaceError) as error:
                refused.append(str(error))
    assert n_functions > 15_000
    assert len(refused) < 0.001 * n_functions
