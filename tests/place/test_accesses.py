"""What the kernel's own functions access is never refused: the judge is that they compile."""

from __future__ import annotations

import random
import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest

import oracles
from place.corpus import files_of
from tracepoint.cli.tree.tree_files import tree_reader
from tracepoint.errors import PlaceError
from tracepoint.place.access import Follower, NoSuchMemberError, ValueType
from tracepoint.place.arguments import INDEX, Access
from tracepoint.place.code import read_code
from tracepoint.place.functions import find_functions
from tracepoint.place.insert import EventCall, InsertionPoint, Where, place_call
from tracepoint.place.kernel import KernelTree
from tracepoint.place.members import count_dimensions
from tracepoint.place.names import all_declared
from tracepoint.place.plan import split_args
from tracepoint.place.statements import read_body
from tracepoint.place.structs import Structs
from tracepoint.tree.index.store import IndexData
from tracepoint.tree.query.opening import open_tree
from tracepoint.tree.query.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.place.code import SourceCode
    from tracepoint.place.statements import StatementSpan
    from tracepoint.source.text import SourceFile
    from tracepoint.tree.query.tree import TreeEvent

SEED = 20261
N_FILES = 220
#: Members that are wrong in the kernel itself: no configuration compiles these lines.
DEAD = {
    ("fs/btrfs/extent-tree.c", "root"),  # under SCRAMBLE_DELAYED_REFS, which nothing defines
    ("fs/qnx4/inode.c", "i_xblk"),  # an argument of QNX4DEBUG(), which drops it
}
#: Macros one of whose arguments is the path of a member, which looks like an access.
TAKES_MEMBER = re.compile(r"container_of\w*|\w*_entry\w*|struct_size\w*|offsetof\w*|\w*sizeof_\w+")


def accesses(code: SourceCode, body: StatementSpan) -> Iterator[tuple[int, Access]]:
    """Yield every chain of `->`, `.` and `[]` on a name, with its token."""
    texts = code.texts
    for at in range(body.first, body.last):
        is_begin = code.is_name(at) and texts[at - 1] not in {"->", "."}
        if not is_begin or (texts[at - 1] == "," and is_in_macro(code, at)):
            continue
        steps = []
        after = at + 1
        while texts[after] in {"->", ".", "["}:
            if texts[after] == "[":
                steps.append((INDEX, False))
                after = code.match[after] + 1
            elif code.is_name(after + 1):
                steps.append((texts[after + 1], texts[after] == "->"))
                after += 2
            else:
                break
        if any(step != INDEX for step, _ in steps):
            yield at, Access(texts[at], tuple(steps))


def is_in_macro(code: SourceCode, at: int) -> bool:
    while at > 0 and code.texts[at] != "(":
        at = code.match[at] - 1 if code.texts[at] in {")", "]"} else at - 1
    return TAKES_MEMBER.fullmatch(code.texts[at - 1]) is not None


def judge(structs: Structs, access: Access, shape: ValueType) -> str:
    follower = Follower(structs)
    try:
        found = follower.follow(access, shape)
    except NoSuchMemberError as error:
        return str(error)
    return "noted" if follower.notes else "known" if found is not None else "silent"


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["linux-source-6.1", "linux-source-6.12"])
def test_no_access_of_the_kernels_own_is_refused(name: str) -> None:
    tree = oracles.kernel_source(name)
    kernel = KernelTree(Tree.of(IndexData(str(tree), "source", {}, {})), tree_reader(tree))
    chance = random.Random(SEED)
    seen: Counter[str] = Counter()
    refused = []
    for path in chance.sample(files_of(tree, ("mm", "kernel", "fs")), N_FILES):
        source = kernel.source(path)
        code = read_code(source)
        alone, told = Structs(source), Structs(source, kernel)
        functions = [f for f in find_functions(code) if not f.trouble and f.close >= 0]
        for function in chance.sample(functions, min(10, len(functions))):
            try:
                body = read_body(code, function)
            except PlaceError:  # 10 of 53,144: test_corpus.py judges that
                continue
            known = all_declared(code, body, function)
            for at, access in accesses(code, body):
                variables = known.get(access.name, [])
                if len({v.type for v in variables}) != 1 or not variables[0].type:
                    continue
                shape = ValueType(variables[0].type, count_dimensions(code, variables[0]))
                found = judge(told, access, shape)
                seen[found] += 1
                seen["noted without headers"] += judge(alone, access, shape) == "noted"
                if found not in {"known", "noted", "silent"} and (path, access.steps[-1][0]) not in DEAD:
                    refused.append(f"{path}:{code.line(at)}: {found}")
    assert refused == []
    assert seen["noted without headers"] > 5000
    assert seen["noted"] < 0.01 * seen["noted without headers"]


def calls_of(
    source: SourceFile, code: SourceCode, events: dict[str, TreeEvent]
) -> Iterator[tuple[InsertionPoint, EventCall]]:
    """Yield every plain call of an event that a file has, as one that is to be put before itself."""
    functions = [f for f in find_functions(code) if not f.trouble and f.close >= 0]
    for function in functions:
        for at in range(function.open, function.close):
            event = events.get(code.texts[at].removeprefix("trace_"))
            is_call = code.texts[at].startswith("trace_") and code.texts[at + 1] == "("
            if event is None or not is_call or code.texts[at - 1] not in {";", "{", "}", ")"}:
                continue
            close = code.match[at + 1]
            args = split_args(source.text[code.tokens[at + 1].end : code.tokens[close].start])
            text = source.text[code.tokens[at].start : code.tokens[close].end] + ";"
            place = InsertionPoint(function.names[0], Where.BEFORE, text, code.line(at))
            yield place, EventCall(event.name, args, False, event.params)


@pytest.mark.oracle
def test_no_call_that_the_kernel_has_is_refused() -> None:
    tree = oracles.kernel_source("linux-source-6.1")
    index = open_tree(str(tree))
    kernel = KernelTree(index, tree_reader(tree))
    events = {event.name: event for event in index.events()}
    once = Counter(event.name for event in index.events())
    events = {name: event for name, event in events.items() if once[name] == 1}
    callers = sorted({site.span.path for event in events.values() for site in index.call_sites(event)})
    n_calls = 0
    for path in random.Random(SEED).sample([p for p in callers if p.endswith(".c")], 60):
        source = kernel.source(path)
        structs = Structs(source, kernel)
        for place, call in calls_of(source, read_code(source), events):
            place_call(source, place, call, structs)
            n_calls += 1
    assert n_calls > 200
