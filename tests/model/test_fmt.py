"""The formatter: layout, and that it never changes anything but white space."""

from __future__ import annotations

import re
from textwrap import dedent

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import strategies
from effort import examples
from tracepoint.model.fmt.columns import FIELD_STYLES
from tracepoint.model.fmt.text import Style, format_text
from tracepoint.model.read import read_header_text
from tracepoint.model.write import write_header
from tracepoint.source.lexer import lex
from tracepoint.source.text import SourceFile

SLOW = settings(deadline=None, max_examples=examples(200), suppress_health_check=list(HealthCheck))


def words(text: str) -> list[str]:
    """Tokens and comments in order; a comment's lines without their indentation."""
    out = []
    for token in lex(SourceFile("", text)):
        trivia = text[token.lead : token.start]
        comments = re.findall(r"//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/", trivia) if "/" in trivia else ()
        out += ["\n".join(line.strip() for line in comment.splitlines()) for comment in comments]
        out.append(token.text.replace("\r\n", "\n"))
    return out


def formatted(text: str) -> str:
    """Format, having checked what must hold of every text."""
    result = format_text(text)
    assert words(result.text) == words(text)
    assert format_text(result.text).text == result.text
    return result.text


def c(text: str) -> str:
    """C text of a test: four blanks are a tab."""
    return dedent(text).lstrip("\n").replace("    ", "\t")


MESSY = """TRACE_EVENT( blk_retry,TP_PROTO( struct request *rq ,int tries),TP_ARGS(rq,tries),
 TP_STRUCT__entry( __field(dev_t,dev) __field( sector_t,sector)
   __array(char,comm,TASK_COMM_LEN)),
TP_fast_assign(__entry->dev=rq->dev;
  memcpy(__entry->comm, current->comm, TASK_COMM_LEN);
        __entry->sector = blk_rq_pos(rq);),
 TP_printk("%d,%d %llu", MAJOR(__entry->dev), MINOR(__entry->dev),
 (u64)__entry->sector));
"""


def test_messy_text_in_the_kernels_style():
    style = Style()
    text = format_text(MESSY, style=style).text
    assert words(text) == words(MESSY)
    assert text == (
        "TRACE_EVENT(blk_retry,\n\n"
        "\tTP_PROTO(struct request *rq, int tries),\n\n"
        "\tTP_ARGS(rq, tries),\n\n"
        "\tTP_STRUCT__entry(\n"
        "\t\t__field(\tdev_t,\t\tdev\t\t\t)\n"
        "\t\t__field(\tsector_t,\tsector\t\t\t)\n"
        "\t\t__array(\tchar,\t\tcomm,\tTASK_COMM_LEN\t)\n"
        "\t),\n\n"
        "\tTP_fast_assign(\n"
        "\t\t__entry->dev\t= rq->dev;\n"
        "\t\tmemcpy(__entry->comm, current->comm, TASK_COMM_LEN);\n"
        "\t\t__entry->sector\t= blk_rq_pos(rq);\n"
        "\t),\n\n"
        '\tTP_printk("%d,%d %llu", MAJOR(__entry->dev), MINOR(__entry->dev),\n'
        "\t\t  (u64)__entry->sector)\n"
        ");\n"
    )
    assert format_text(text, style=style).text == text
    assert formatted(text) == text


def test_text_on_one_line_gets_the_kernels_paragraphs():
    text = " ".join(MESSY.split())
    assert formatted(text).count("\n\n") == 5


COMPACT = c("""
    TRACE_EVENT(one,
        TP_PROTO(int a),
        TP_ARGS(a),
        TP_STRUCT__entry(
            __field(int, a)
            __field(unsigned long, flags)
        ),
        TP_fast_assign(
            __entry->a = a;
            __entry->flags = 0;
        ),
        TP_printk("%d", __entry->a)
    );
    """)


def test_a_header_in_another_house_style_stays_in_it():
    assert formatted(COMPACT) == COMPACT
    other = COMPACT + COMPACT.replace("__field(int, a)", "__field(  int, a)").replace("a = a", "a   =  a")
    assert formatted(other) == COMPACT + COMPACT


WRAPPED = c("""
    DECLARE_EVENT_CLASS_SCHEDSTAT(template,

        TP_PROTO(int a),

        TP_ARGS(a),

        TP_STRUCT__entry_btrfs(
            __field( int,\ta\t)
            __field( char *,function)
        ),

        TP_fast_assign_btrfs(root->fs_info,
            __entry->a  = a;
            __entry->function = 0;
        ),

        TP_printk_btrfs("%d",
            __entry->a)
    );
    """)
TWO_STYLES = WRAPPED + COMPACT + COMPACT.replace("\tTP_", "\t     TP_").replace("\t),", "\t     ),")


@pytest.mark.parametrize("text", [WRAPPED, COMPACT, TWO_STYLES], ids=["wrappers", "compact", "mixed"])
def test_declarations_that_are_consistent_stay_as_they_are(text):
    assert formatted(text) == text
    assert formatted(text * 20) == text * 20


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("\tTP_ARGS(a)", "    TP_ARGS(a)"),
        ("\tTP_ARGS(a)", "\n\tTP_ARGS(a)"),
        ("\t),\n\tTP_printk", "\t\t  ),\n\tTP_printk"),
        ("\n);", "\n\t);"),
        ("TP_PROTO(int", "TP_PROTO (int"),
        ("TP_PROTO(int", "TP_PROTO(  int"),
        ("__field(int, a)", "__field(int,   a)"),
        ("\t\t__field(int", "\t\t   __field(int"),
        ("a = a;", "a =  a;"),
        ("a = a;", "a  = a;"),
        ("\t\t__entry->flags", "\t    __entry->flags"),
    ],
)
def test_what_breaks_the_style_of_its_header_is_set_right(old, new):
    whole = COMPACT * 60
    assert COMPACT.count(old) == 1
    assert formatted(whole + COMPACT.replace(old, new)) == whole + COMPACT


def test_a_list_that_goes_on_beside_the_bracket_goes_below_it():
    listed = COMPACT.replace('"%d", __entry->a', '"%d",\n\t\t  __entry->a')
    crooked = listed.replace("\t\t  __entry->a", "\t\t __entry->a")
    assert formatted(listed * 4 + crooked) == listed * 5


def test_explicit_style_overrules_the_file():
    text = format_text(COMPACT, style=Style()).text
    assert "TRACE_EVENT(one,\n\n\tTP_PROTO" in text
    assert "__field(\tint,\t\ta\t)" in text
    assert "__entry->flags\t= 0;" in text


@pytest.mark.parametrize("style", FIELD_STYLES, ids=lambda style: style.name)
def test_every_field_style_is_its_own_result(style):
    text = format_text(MESSY, style=Style(fields=style)).text
    assert words(text) == words(MESSY)
    assert formatted(text) == text


def test_all_else_stays_byte_for_byte():
    before = "#define  X(a)\\\n  TRACE_EVENT(a,TP_PROTO(int a))\n/* TRACE_EVENT( */\nint   f( void ){ }\n"
    after = "\n  MY_WRAPPER( x,y )\nTRACE_DEFINE_ENUM( A );\n#endif  /* end */"
    text = formatted(before + MESSY + after)
    assert text.startswith(before)
    assert text.endswith(after)


def test_directives_and_comments_keep_their_places():
    text = formatted(
        c("""
        TRACE_EVENT(x, /* why */

            TP_PROTO(int a),
            /* the arguments */
            TP_ARGS(a),

            TP_STRUCT__entry(
                __field(int, a)    /* first */
        #ifdef CONFIG_X
                    __field(int, b) // second
        #endif /* CONFIG_X */
                /*
                 * third
                 */
                __field(int, c)
            ),

            TP_fast_assign(
        #ifdef CONFIG_X
            __entry->b = 1;
        #endif
                __entry->a = a; /* aa */
            ),

            TP_printk("%d", __entry->a)
        );
        """)
    )
    lines = text.split("\n")
    assert "#ifdef CONFIG_X" in lines
    assert "#endif /* CONFIG_X */" in lines
    assert "\t\t__field(int, b) // second" in lines
    assert "\t\t__field(int, a)\t/* first */" in lines
    assert "\t\t__entry->b = 1;" in lines
    at = lines.index("\t\t/*")
    assert lines[at + 1 : at + 3] == ["\t\t * third", "\t\t */"]
    assert lines[lines.index("\t/* the arguments */") + 1] == "\tTP_ARGS(a),"


def test_statements_are_indented_by_their_nesting():
    text = formatted(
        MESSY.replace(
            "__entry->dev=rq->dev;",
            "\nif (a)\nb();\nelse\nc();\nfor (i = 0; i < 3; i++) {\nd();\nswitch (e) {\ncase 1:\nf();\nbreak;\n}\n}\n"
            "do {\ng();\n} while (0);\nif (x &&\n    y)\nh();",
        )
    )
    body = text[text.index("TP_fast_assign(\n") :].split("\n")[1:19]
    assert [(len(line) - len(line.lstrip("\t")), line.strip()) for line in body] == [
        (2, "if (a)"),
        (3, "b();"),
        (2, "else"),
        (3, "c();"),
        (2, "for (i = 0; i < 3; i++) {"),
        (3, "d();"),
        (3, "switch (e) {"),
        (3, "case 1:"),
        (4, "f();"),
        (4, "break;"),
        (3, "}"),
        (2, "}"),
        (2, "do {"),
        (3, "g();"),
        (2, "} while (0);"),
        (2, "if (x &&"),
        (2, "y)"),
        (3, "h();"),
    ]


def test_what_was_aligned_behind_an_assignment_moves_with_it():
    text = COMPACT.replace("__entry->a = a;", "__entry->a = a ?\n\t\t\t     b : c;")
    out = format_text(text, style=Style()).text
    assert "\t\t__entry->a\t= a ?\n\t\t\t\t  b : c;" in out
    first, second = (line.expandtabs(8) for line in out[out.index("\t\t__entry->a") :].split("\n")[:2])
    assert first.index("a ?") == second.index("b :")


def test_alignment_behind_several_blanks_is_kept():
    text = COMPACT.replace("__entry->a = a;", "__entry->a =   a ?\n\t\t\t       b : c;")
    out = format_text(text, style=Style(assign="space")).text
    first, second = (line.expandtabs(8) for line in out[out.index("\t\t__entry->a") :].split("\n")[:2])
    assert first.index("a ?") == second.index("b :")


def test_long_prototypes_and_prints_are_wrapped():
    params = ", ".join(f"struct a_rather_long_name *parameter{n}" for n in range(5))
    shown = ", ".join(f"__entry->some_field_number_{n}" for n in range(6))
    text = f'TRACE_EVENT(x, TP_PROTO({params}), TP_ARGS(a), TP_STRUCT__entry(), TP_fast_assign(), TP_printk("%d", {shown}));'
    out = formatted(text)
    assert all(len(line.expandtabs(8)) <= 80 for line in out.splitlines())
    assert "TP_PROTO(struct a_rather_long_name *parameter0,\n\t\t struct a_" in out


def test_long_flag_tables_have_one_entry_a_line():
    table = ", ".join(f'{{ SOME_FLAG_{n}, "some_flag_{n}" }}' for n in range(4))
    out = formatted(MESSY.replace("(u64)__entry->sector", f'__print_flags(x, "|", {table})'))
    assert len(re.findall(r'^\t\t\t\t\{ SOME_FLAG_\d, "some_flag_\d" \}', out, re.MULTILINE)) == 4


def test_print_text_is_the_same_for_tracefs():
    text = MESSY.replace("MAJOR(__entry->dev), ", "MAJOR(__entry->dev),")
    for source in (text, text.replace('llu", ', 'llu" ,')):
        old = read_header_text(source).events[0].printk
        assert read_header_text(formatted(source)).events[0].printk == old


def test_line_ends_are_kept():
    text = MESSY.replace("\n", "\r\n")
    assert formatted(text) == format_text(MESSY).text.replace("\n", "\r\n")
    mixed = MESSY.replace("\n", "\r\n", 2)
    assert formatted(mixed) == mixed


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("int x;\nTRACE_EVENT(a, TP_PROTO(int b), TP_ARGS(b)", "'(' is never closed", 2),
        ("TRACE_EVENT(a, TP_PROTO(int b], TP_ARGS(b));", "']' does not close '('", 1),
        ('TRACE_EVENT(a, TP_PROTO("x), TP_ARGS(b));', "is never closed", 1),
        ("\n\nTRACE_EVENT(a, /* TP_PROTO(int b), TP_ARGS(b));", "is never closed", 3),
        ("TRACE_EVENT(a, TP_PROTO(int \0), TP_ARGS(b));", "is not valid here", 1),
    ],
)
def test_damaged_text_is_left_alone_with_a_finding(text, message, line):
    result = format_text(text + "\n", "a.h")
    assert result.text == text + "\n"
    (finding,) = result.diagnostics
    assert message in finding.message
    assert (finding.span.path, finding.span.line) == ("a.h", line)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "TRACE_EVENT",
        "TRACE_EVENT()",
        "TRACE_EVENT(a, TP_PROTO(int a) x, TP_ARGS(b));",
        "DEFINE_EVENT(a,\\\n b, TP_PROTO(int c));",
    ],
)
def test_what_is_no_declaration_is_left_alone(text):
    assert format_text(text) == type(format_text(text))(text)


@pytest.mark.thorough
@SLOW
@given(strategies.headers())
def test_random_headers_keep_their_tokens(header):
    formatted(write_header(header))


@pytest.mark.thorough
@SLOW
@given(strategies.headers(), st.randoms(use_true_random=False))
def test_white_space_does_not_matter(header, random):
    text = write_header(header)
    start = text.find("TRACE_EVENT(")
    blanks = [
        " ",
        "\t",
        "\n",
        "  \n\n\n ",
        " /* c */ ",
        "\n/*\n * d\n */\n",
        " // e\n",
        "\n#if 1\n",
        "\n#endif\n",
    ]
    pieces = re.split(r"([ \t]+|(?<=,))(?=[^ \t\n])", text[start:]) if start >= 0 else []
    mixed = "".join(
        random.choice(blanks) if not piece.strip() and random.random() < 0.3 else piece for piece in pieces
    )
    formatted(mixed)


@SLOW
@given(
    st.lists(
        st.sampled_from(
            [
                *MESSY.split(" "),
                "(",
                ")",
                ",",
                "\n",
                "{",
                "}",
                '"',
                "#",
                "\\\n",
                "\r\n",
                "/*",
                "*/",
                "//",
                "if",
                "else",
                "case",
                ":",
            ]
        ),
        max_size=40,
    )
)
def test_damage_never_raises_and_never_changes_tokens(pieces):
    formatted("TRACE_EVENT(a, TP_PROTO(int x), TP_fast_assign(" + " ".join(pieces))
    formatted("TRACE_EVENT(a, TP_PROTO(" + " ".join(pieces) + "), TP_ARGS(x));")


@pytest.mark.limits
def test_hostile_text_takes_no_time():
    for inside in (
        "{\n__entry->x = 1;\n" * 3000 + "}" * 3000,
        "if (x)\n" * 5000 + ";",
        "__entry->x = 1;\n" * 5000,
    ):
        text = MESSY.replace("__entry->dev=rq->dev;", inside)
        assert len(format_text(text).text) < 40 * len(text)
