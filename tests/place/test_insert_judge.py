"""tree-sitter's C grammar as a judge of our reading of statements, where it can follow a kernel function."""

from __future__ import annotations

from typing import Any

import pytest

import oracles
from place.corpus import files_of
from tracepoint.errors import PlaceError
from tracepoint.place.code import SourceCode, read_code
from tracepoint.place.functions import Function, find_functions
from tracepoint.place.statements import StatementKind, StatementSpan, read_body
from tracepoint.source.text import SourceFile, decode

tree_sitter = pytest.importorskip("tree_sitter", reason="pip install tree-sitter tree-sitter-c")
tree_sitter_c = pytest.importorskip("tree_sitter_c", reason="pip install tree-sitter tree-sitter-c")

HEAD = "void f(void)\n"
THEIRS = {
    "if_statement": "IF",
    "for_statement": "LOOP",
    "while_statement": "LOOP",
    "do_statement": "DO",
    "switch_statement": "SWITCH",
    "return_statement": "RETURN",
    "goto_statement": "JUMP",
    "break_statement": "JUMP",
    "continue_statement": "JUMP",
    "expression_statement": "SIMPLE",
    "declaration": "SIMPLE",
}
OURS = dict.fromkeys(("DECLARATION", "EXPRESSION", "EMPTY", "MACRO"), "SIMPLE")
KEYWORDS = {"if", "for", "while", "do", "switch"}


def their_statements(node: Any, offset: int) -> set[tuple[str, int]]:
    found = set()
    stack = [node]
    while stack:
        here = stack.pop()
        parent = here.parent
        kind = THEIRS.get(here.type, "")
        if (
            parent is not None
            and parent.type == "for_statement"
            and here == parent.child_by_field_name("initializer")
        ):
            kind = ""
        if here.type == "enum_specifier" and parent is not None and parent.type == "compound_statement":
            kind = "SIMPLE"  # `enum { A };` in a function
        if kind and here.start_byte >= len(HEAD):
            found.add((kind, here.start_byte - len(HEAD) + offset))
        stack.extend(here.children)
    return found


def our_statements(code: SourceCode, body: StatementSpan) -> set[tuple[str, int]]:
    found = set()
    for statement in body.walk():
        kind = OURS.get(statement.kind.name, statement.kind.name)
        if code.texts[statement.first] == "fallthrough":
            kind = "SIMPLE"
        if statement.kind not in (StatementKind.BLOCK, StatementKind.LABEL):
            found.add((kind, code.tokens[statement.first].start))
    return found


def has_macro_loop(code: SourceCode, body: StatementSpan) -> bool:
    headed = (StatementKind.LOOP, StatementKind.IF, StatementKind.DO)
    return any(s.kind in headed and code.texts[s.first] not in KEYWORDS for s in body.walk())


def difference(parser: Any, code: SourceCode, function: Function) -> set[tuple[str, int]] | None:
    """Where the two readings differ; None when the judge cannot follow the function."""
    start, end = code.tokens[function.open].start, code.tokens[function.close].end
    text = code.file.text[start:end]
    if not text.isascii() or "#" in text:
        return None
    node = parser.parse((HEAD + text).encode()).root_node
    try:
        body = read_body(code, function)
    except PlaceError:
        return None
    if node.has_error or "macro_type_specifier" in str(node) or has_macro_loop(code, body):
        return None
    return their_statements(node, start) ^ our_statements(code, body)


@pytest.mark.oracle
@pytest.mark.parametrize("folder", ["mm", "kernel/sched", "fs/ext4", "fs/nfs"])
def test_statements_begin_where_tree_sitter_sees_them(folder: str) -> None:
    tree = oracles.kernel_source("linux-source-6.1")
    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_c.language()))
    n_judged = n_unjudged = 0
    for path in files_of(tree, (folder,)):
        code = read_code(SourceFile(path, decode((tree / path).read_bytes())))
        for function in find_functions(code):
            if function.trouble or function.close < 0:
                continue
            found = difference(parser, code, function)
            if found is None:
                n_unjudged += 1
                continue
            n_judged += 1
            assert not found, [str(code.file.span(at, at + 1)) for _, at in found]
    assert n_judged > 500
    assert n_unjudged < n_judged / 3
