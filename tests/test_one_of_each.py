"""C is read in one place, `source`: counts of what is written elsewhere a second time.

`python tests/test_one_of_each.py` prints the counts.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from parsed import parsed
from tracepoint.source import ast as c
from tracepoint.source import statements
from tracepoint.source.types import BASIC, TYPEDEFS

ROOT = Path(__file__).resolve().parent.parent / "src/tracepoint"
CSRC = ROOT.parent.parent / "csrc"
KINDS = frozenset(
    name
    for module in (c, statements)
    for name, value in vars(module).items()
    if isinstance(value, type) and issubclass(value, c.Node)
) - {"Node", "Statement"}
MODULES = {"tracepoint.source.ast", "tracepoint.source.statements"}

#: What gives each kind of node its meaning, or its text: a walk of its own each, by nature.
BACK_ENDS = {
    "assign FORMS": "computes expressions of an assignment, and finds what it stores to",
    "assign _STATEMENTS": "runs statements",
    "assign _effect": "runs expressions for what they store",
    "generate _forms": "puts variables in the place of inputs",
    "generate canonical": "names inputs as `assign` does",
    "generate first_input": "finds what was not replaced",
    "generate _FORMS": "rewrites statements",
    "generate _effect": "rewrites statements",
    "generate _flat": "cuts an assignment into pieces",
    "generate _prune": "takes statements out",
    "generate _unread": "judges statements that were not understood",
    "layout _place": "finds members of structs",
    "printk value": "lowers print formats to ops",
    "runtime term": "writes assignments as Python",
    "runtime input": "writes assignments as Python",
    "runtime read": "reads inputs from Python objects",
}
#: Chains of `.`, `->` and `[]`, followed down one side.
CHAINS = {
    "generate _starred",
    "generate indices_of",
}
#: Lists of type names that say something else than which type a name is.
NAMED_TYPES = {
    "tracepoint _HOMES": "public names of Python",
    "tracepoint __all__": "public names of Python",
    "check _CHARS": "which elements make a string",
    "generate _TYPE_CASTS": "which casts of pointers are looked through",
    "lab _INTEGERS": "which sample values look natural",
    "layout _INT_SPELLINGS": "how compilers spell basic types",
    "layout STRUCTS": "members of structs",
    "runtime _TYPES": "which types the kernel takes in synthetic events",
    "runtime README": "text of a file",
}


@cache
def sources() -> dict[str, str]:
    return {str(p.relative_to(ROOT)): p.read_text() for p in sorted(ROOT.rglob("*.py"))}


def room_of(path: str) -> str:
    return path.split("/", maxsplit=1)[0] if "/" in path else "tracepoint"


def trees_of_c() -> list[tuple[str, ast.Module, set[str]]]:
    """The files above `source` that know trees of C, with the kinds of nodes that they import by name."""
    found = []
    for path, text in sources().items():
        if path.startswith("source/") or not re.search(
            r"tracepoint\.source(\.statements|\.ast)? import", text
        ):
            continue
        tree = ast.parse(text)
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        knows = any(
            i.module == "tracepoint.source" and any(a.name == "ast" for a in i.names) for i in imports
        )
        ours = [i for i in imports if i.module in MODULES]
        if ours or knows:
            found.append((path, tree, {a.name for i in ours for a in i.names} & KINDS))
    return found


def is_kind(node: ast.AST | None, names: set[str]) -> bool:
    match node:
        case ast.Attribute(value=ast.Name(id="ast"), attr=attr):
            return attr in KINDS
        case ast.Name(id=name):
            return name in names
    return False


def walkers() -> set[str]:
    """Functions that name three kinds of nodes and call themselves, and tables of functions by kind."""
    found = set()
    for path, tree, names in trees_of_c():
        for node in ast.walk(tree):
            match node:
                case ast.FunctionDef(name=name):
                    inside = list(ast.walk(node))
                    kinds = {ast.unparse(part) for part in inside if is_kind(part, names)}
                    used = {getattr(part, "id", getattr(part, "attr", "")) for part in inside}
                    if len(kinds) >= 3 and name in used:
                        found.add(f"{room_of(path)} {name}")
                case (
                    ast.AnnAssign(target=ast.Name(id=name), value=ast.Dict(keys=keys))
                    | ast.Assign(targets=[ast.Name(id=name)], value=ast.Dict(keys=keys))
                ) if sum(is_kind(key, names) for key in keys) >= 3:
                    found.add(f"{room_of(path)} {name}")
    return found


def reflections() -> list[str]:
    """Files above `source` that look for nodes by the members of their classes."""
    members = re.compile(r"__dataclass_fields__|from dataclasses import [^\n]*\bfields\b")
    return [path for path, _, _ in trees_of_c() if members.search(sources()[path])]


def type_tables() -> set[str]:
    """Tables outside `source/types.py` with the names of three types or more."""
    wanted = set(TYPEDEFS) | {name for name in BASIC if " " in name}
    found = set()
    for path, text in sources().items():
        if path == "source/types.py" or sum(name in text for name in wanted) < 3:
            continue
        for node in ast.parse(text).body:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    pass
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    pass
                case _:
                    continue
            texts = [
                k.value for k in ast.walk(value) if isinstance(k, ast.Constant) and isinstance(k.value, str)
            ]
            if len({word for text in texts for word in (text, *text.split())} & wanted) >= 3:
                found.add(f"{room_of(path)} {name}")
    return found


def files_with(pattern: str) -> set[str]:
    return {path for path, text in sources().items() if re.search(pattern, text, re.MULTILINE)}


def test_trees_are_walked_in_one_place_and_given_meaning_by_known_back_ends() -> None:
    assert walkers() == BACK_ENDS.keys() | CHAINS
    assert reflections() == []


def test_one_table_says_what_the_names_of_types_mean() -> None:
    assert type_tables() == NAMED_TYPES.keys()


def struct_lists() -> set[str]:
    """Files that name members of the kernel's structs: their list, and those that only show one."""
    return files_with(r"\b(?:s6_addr16|sin_port|sin6_port|ss_family|vnode_hi)\b")


def test_one_list_says_which_members_the_structs_of_the_kernel_have() -> None:
    assert struct_lists() == {"layout/kernel_structs.py"}


def test_brackets_are_matched_and_arguments_split_in_one_place() -> None:
    names = "find_close|find_parenthesis|match_brackets|pair_brackets|split_arguments"
    assert files_with(rf"^ *def _?({names})\b") == {"source/brackets.py"}


#: What one file knows: a sign of it in Python and in C, that file, and those of its C form.
HOMES = {
    "walkers of the events of a page": (
        r"== TIME_EXTEND\b",
        r"== TP_TYPE_TIME_EXTEND\b",
        "record/page.py",
        {"page.h"},
    ),
    "writers of the events of a page": (
        r"\(TIME_EXTEND\b",
        r"\bTP_TYPE_TIME_EXTEND,",
        "record/write.py",
        # As events happen, in a ring that other processes read; and what is chosen of pages, into new ones.
        {"ring.c", "decode/sift.c"},
    ),
    "readers of where the bytes of a field are": (
        r">> 16 & 0xFFFF|& 0xFFFF, \w+ >> 16|\bword >> 16\b",
        r"\bword >> 16\b|number & 0xffff\b",
        "record/field.py",
        {"location.h"},
    ),
    "writers of where the bytes of a field are": (
        r"<< 16 \| (?!\{)",
        r"\b(?:size|length|n_zeros)\)? << 16 \|",
        "record/field.py",
        {"location.h"},
    ),
    "classes of a record of a ring buffer": (r"^class RawRecord\b", r"RawRecord", "record/raw.py", set()),
    # Each costs a command 0.1 ms before it begins.
    "named tuples of `typing`": (
        r"\bfrom typing import (?:\([^)]*|[^\n(]*)\bNamedTuple\b|\btyping\.NamedTuple\(",
        r"PyStructSequence",
        "named.py",
        set(),
    ),
    "grammars of triggers": (r"[\"']nohitcount[\"']", r"nohitcount", "trigger/hist.py", set()),
}


def homes(what: str) -> tuple[set[str], set[str]]:
    """The files of Python and of C that have the sign of one of HOMES."""
    python, c_sign, _, _ = HOMES[what]
    found = {
        str(path.relative_to(CSRC))
        for path in sorted(CSRC.rglob("*.[ch]"))
        if re.search(c_sign, path.read_text(), re.MULTILINE)
    }
    return files_with(python), found


@pytest.mark.parametrize("what", HOMES)
def test_one_file_and_its_form_in_c_know_each(what: str) -> None:
    assert homes(what) == ({HOMES[what][2]}, HOMES[what][3])


def test_one_pass_knows_the_conversions_of_c() -> None:
    """`printk` lowers with them to ops, which have types of their own, and `assign` computes with them."""
    names = r"\b(?:common_type|conversions)\b"
    users = files_with(rf"from tracepoint\.source\.cvalue import (?:\([^)]*|[^\n(]*){names}")
    assert {room_of(path) for path in users} == {"source", "assign", "printk", "runtime"}


#: Class names that stand twice on purpose.
SAME_NAMES = {
    "Candidate": "what a rule keeps of a header until all are read: `check.checked` asks each rule for it by this name",
    "Not": "a node of a tree of its own",
    **dict.fromkeys(
        ("Binary", "Call", "Number", "String", "Unary"),
        "nodes of C and the op of a print program for each; both are written with their module: `ast.Call`, `ops.Call`",
    ),
}


def repeated_class_names() -> set[str]:
    """Public class names that several files define."""
    homes = {
        (name, path) for path in sources() for name in parsed(ROOT / path).classes if not name.startswith("_")
    }
    return {name for name, count in Counter(name for name, _ in homes).items() if count > 1}


def test_a_class_name_means_one_thing() -> None:
    assert repeated_class_names() == SAME_NAMES.keys()
    assert not files_with(rf"from tracepoint\.printk\.ops import [^\n]*\b({'|'.join(SAME_NAMES)})\b")


if __name__ == "__main__":
    for what in HOMES:
        python, in_c = homes(what)
        print(f"{what}: {len(python)} ({', '.join(sorted(python | in_c))})")  # noqa: T201
    print(f"back ends over the tree of C: {len(walkers() - CHAINS)}, other walks: {len(reflections())}")  # noqa: T201
    print(f"class names of several meanings: {len(repeated_class_names() - SAME_NAMES.keys())}")  # noqa: T201
    print(f"lists of members of the kernel's structs: {len(struct_lists())}")  # noqa: T201
    print(f"tables of what a C type is: {1 + len(type_tables() - NAMED_TYPES.keys())}")  # noqa: T201
