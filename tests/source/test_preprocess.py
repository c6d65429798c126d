"""Macro expansion, conditionals and includes, judged by what the C preprocessor says."""

import contextlib
import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from pace import fewer_turns
from tracepoint.errors import SourceError
from tracepoint.source import directives
from tracepoint.source.closure import IncludeClosure
from tracepoint.source.config import Config, parse_dot_config
from tracepoint.source.directives import directives_of
from tracepoint.source.environment import Environment
from tracepoint.source.lexer import Kind, Token, lex
from tracepoint.source.macros import Macro, define, parse_define, spell
from tracepoint.source.preprocess import preprocess
from tracepoint.source.text import SourceFile


def expand(text: str, **options: object) -> str:
    return spell(preprocess(SourceFile("a.h", text), **options).tokens)  # type: ignore[arg-type]


class Files:
    """A loader over a dictionary."""

    def __init__(self, files: dict[str, str]) -> None:
        self.files = {name: SourceFile(name, text) for name, text in files.items()}

    def load(self, name: str, *, is_quoted: bool, includer: str) -> SourceFile | None:
        return self.files.get(name)


CASES = [
    "#define A 1\nA B A",
    "#define F(x) x+x\nF(a) F (b) F",
    '#define F(x) #x\nF( a  +  "q\\n" )',
    "#define CAT(a,b) a##b\nCAT(x,1) CAT(,y) CAT(z,)",
    "#define E(f, ...) p(f, ##__VA_ARGS__)\nE(1) E(1,2,3)",
    "#define E(f, args...) p(f, ##args)\nE(1) E(1,2)",
    "#define A A B\nA",
    "#define f(x) x f\nf(1)(2)",
    "#define A B\n#define B A\nA B",
    "#define EMPTY\n#define X EMPTY 1 EMPTY\nX",
    "#define LP (\n#define G(x) [x]\nG LP 1)",
    "#define TWO G(\n#define G(x) <x>\nTWO 5)",
    "#define S(x) #x\n#define T(x) S(x)\n#define V 42\nS(V) T(V)",
    "#define A(x) B(x)\n#define B(x) A(x) x\nA(A(1))",
    "#if 1 + 1 == 2 && !defined(NO)\nyes\n#else\nno\n#endif",
    "#ifdef X\na\n#elif 1\nb\n#else\nc\n#endif",
    "#if 0\n#if 1\na\n#else\nb\n#endif\n#else\nd\n#endif",
    "#define X 3\n#if X > 2\nbig\n#endif\n#undef X\n#ifdef X\nstill\n#endif",
    "#define PARAMS(a...) a\n#define W(n, p) E(n, PARAMS(p))\nW(x, PARAMS(1, 2))",
]


@pytest.mark.skipif(shutil.which("cpp") is None, reason="no C preprocessor: install gcc")
@pytest.mark.parametrize("text", CASES)
def test_same_tokens_as_the_c_preprocessor(text: str) -> None:
    cpp = subprocess.run(["cpp", "-P", "-"], input=text, capture_output=True, text=True, check=True).stdout

    def bare(s: str) -> list[str]:
        return [t.text for t in lex(SourceFile("x", s)) if t.kind is not Kind.END]

    assert bare(expand(text)) == bare(cpp)


def test_spacing_is_that_of_the_hash_operator() -> None:
    assert expand("#define S(x...) #x\n#define T(x...) S(x)\n#define B  1|2\nT(a+B ,c)") == '"a+1|2 ,c"'


def test_body_tokens_lead_back_to_the_call_a_human_wrote() -> None:
    text = "#define IN(x) deep(x)\n#define OUT(x) IN(x)\n\n  OUT(arg)\n"
    tokens = preprocess(SourceFile("a.h", text)).tokens
    deep, _, arg = tokens[0], tokens[1], tokens[2]
    assert deep.text == "deep"
    assert str(deep.root.span) == "a.h:4:3"
    assert deep.expansion is not None
    assert deep.expansion.name == "IN"
    assert deep.expansion.call.expansion is not None
    assert deep.expansion.call.expansion.name == "OUT"
    assert str(arg.span) == "a.h:4:7"


def test_config_decides_branches() -> None:
    text = "#ifdef CONFIG_A\na\n#else\nb\n#endif\n#if IS_ENABLED(CONFIG_B)\nc\n#endif\n#if CONFIG_HZ > 200\nd\n#endif"
    assert expand(text) == "a c d"
    off = Config(
        parse_dot_config("# CONFIG_A is not set\nCONFIG_B=m\nCONFIG_HZ=100\n"), is_on_by_default=False
    )
    assert expand(text, config=off) == "b c"


def test_directives_inside_a_call_choose_its_arguments() -> None:
    assert expand("CALL(a,\n#ifdef CONFIG_X\n b,\n#else\n c,\n#endif\n d)") == "CALL(a, b, d)"


def test_includes_give_macros_but_no_text() -> None:
    files = Files(
        {
            "m.h": "#ifndef M\n#define M\n#define X 7\nint text;\n#endif\n",
            "loop.h": '#include "loop.h"\n#define L 1\n',
        }
    )
    assert expand('#include "m.h"\n#include "loop.h"\nX L', loader=files) == "7 1"


def test_protected_names_expand_only_when_the_file_defines_them() -> None:
    files = Files({"m.h": "#define TRACE_EVENT(x) gone\n"})
    assert (
        expand('#include "m.h"\nTRACE_EVENT(a)', loader=files, protected={"TRACE_EVENT"}) == "TRACE_EVENT(a)"
    )
    assert expand("#define TRACE_EVENT(x) gone\nTRACE_EVENT(a)", protected={"TRACE_EVENT"}) == "gone"


@pytest.mark.limits
@pytest.mark.parametrize(
    "text",
    [
        "#define A0 x x\n" + "".join(f"#define A{i} A{i - 1} A{i - 1}\n" for i in range(1, 40)) + "A39",
        "#define F(x) x\n" + "F(" * 3000 + "1" + ")" * 3000,
        "#if 1\n" * 1000,
        "#define F(x) F x\n" + "F(" * 30000,
    ],
)
def test_bombs_end_in_an_error_soon(text: str) -> None:
    with fewer_turns(400):
        with pytest.raises(SourceError) as error:
            expand(text)
        assert error.value.span is not None


def test_unbalanced_conditionals_are_reported_with_their_line() -> None:
    out = preprocess(SourceFile("a.h", "x\n#if 1\ny\n"))
    assert [(d.code, d.span.line) for d in out.diagnostics] == [("TP003", 2)]
    out = preprocess(SourceFile("a.h", "x\n#endif\n"))
    assert [(d.code, d.span.line) for d in out.diagnostics] == [("TP003", 2)]


_line = st.sampled_from(
    [
        "#define A 1",
        "#define A 1 \\\n 2",
        '"# not" /* # neither\n # */ x',
        "// # comment \\\n # still",
        "#if A // #",
        "#endif /* a\n b */",
        "int x;",
        "# define B /* c */ 2",
        "#define F( a , b...) a",
        "#define F(a, ...) a __VA_ARGS__",
        "#define F( ) \\\n (1)",
        "#define G",
        '#define S"x"',
        "#define T // x /* y",
        "#endif */ z",
    ]
)


def _told(directive: Macro | list[Token]) -> object:
    if isinstance(directive, Macro):
        body = [(token.text, token.start, token.space) for token in directive.body]
        return directive.name, directive.params, directive.is_variadic, body
    return [(token.text, token.start, token.first) for token in directive]


@given(st.lists(_line, max_size=8))
def test_directives_are_those_of_the_whole_lexer(lines: list[str]) -> None:
    file = SourceFile("a.h", "\n".join(lines))
    expected: list[list[Token]] = []
    inside = False
    for token in lex(file)[:-1]:
        if token.first:
            inside = token.text == "#"
            expected += [[]] if inside else []
        if inside:
            expected[-1].append(token)
    found = directives_of(file)
    read = [
        parse_define(tokens[2:]) if isinstance(directive, Macro) else tokens
        for directive, tokens in zip(found, expected, strict=True)
    ]
    assert list(map(_told, found)) == list(map(_told, read))


def test_macros_of_included_files_become_tokens_when_they_are_used(monkeypatch) -> None:
    lexed: list[str] = []

    def counted(file: SourceFile, start: int = 0, end: int | None = None) -> list[Token]:
        lexed.append(file.text[start:end].strip())
        return lex(file, start, end)

    monkeypatch.setattr(directives, "lex", counted)
    files = Files({"big.h": "".join(f"#define M{n}(x) x + {n}\n" for n in range(500))})
    assert expand('#include "big.h"\nM7(1) M9(2)', loader=files) == "1 + 7 2 + 9"
    assert lexed == ["#define M7(x) x + 7", "#define M9(x) x + 9"]


@settings(max_examples=examples(60))
@given(st.text(alphabet=st.sampled_from(list("#()AB,x \n\\")), max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    file = SourceFile("a.h", "#define A(x) B x\n#define B A(A(\n" + text)
    with contextlib.suppress(SourceError):
        preprocess(file)


ENVIRONMENT = {
    "consts.h": "#define __GFP_IO ((__force gfp_t)___GFP_IO)\n#define ___GFP_IO 0x40u\n#define SELF SELF\n"
    "enum color { RED, GREEN = 5, BLUE, };\ntypedef u32 nid_t;\n#ifdef CONFIG_X\n#define WIDE 8\n#else\n#define WIDE 4\n#endif\n",
    "top.h": '#include "consts.h"\n',
}


def environment(config: Config | None = None) -> Environment:
    return Environment(
        {"LOCAL": define("LOCAL", "(WIDE * 2)")},
        config=config,
        closure=IncludeClosure(Files(ENVIRONMENT), [("top.h", True, "a.h")]),
    )


def test_constants_come_from_macros_and_enums_of_included_files() -> None:
    known = environment()
    names = ["__GFP_IO", "RED", "GREEN", "BLUE", "WIDE", "LOCAL", "SELF", "NOWHERE"]
    assert [known.constant(n) for n in names] == [0x40, 0, 5, 6, 8, 16, None, None]
    assert environment(Config(is_on_by_default=False)).constant("LOCAL") == 8
    assert known.is_enumerator("BLUE")
    assert not known.is_enumerator("WIDE")
    assert known.typedef("nid_t") == "u32"
    assert known.enum_members("color") == {"RED": 0, "GREEN": 5, "BLUE": 6}
