"""The writer: what it writes reads back as the same model."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

import strategies
from effort import examples
from tracepoint.model.event import Param, Proto
from tracepoint.model.fmt.text import Style, format_text
from tracepoint.model.python.declare import declare, declare_class, declare_tracepoint, define_event
from tracepoint.model.python.fields import scalar, string
from tracepoint.model.read import read_header_text
from tracepoint.model.rewrite import break_print, break_statements, set_assign_str_arity
from tracepoint.model.write import Vocabulary, declare_param, header_of, write_header

SLOW = settings(deadline=None, max_examples=examples(150), suppress_health_check=list(HealthCheck))


@pytest.mark.thorough
@SLOW
@given(strategies.headers())
def test_reads_back_as_the_same_model(header):
    text = write_header(header)
    again = read_header_text(text)
    assert again == header, text
    assert not [d for d in again.diagnostics if d.severity == "error"]


@pytest.mark.thorough
@SLOW
@given(strategies.headers())
def test_written_text_is_formatted(header):
    text = write_header(header)
    assert format_text(text, style=Style(adds_blanks=False)).text == text


def test_whole_text():
    event = declare(
        "blk_retry",
        system="block",
        proto="struct request *rq, int tries",
        struct=[scalar("dev_t", "dev"), scalar("sector_t", "sector"), string("disk", "rq->q->disk->name")],
        assign={"dev": "rq->q->disk ? disk_devt(rq->q->disk) : 0", "sector": "blk_rq_pos(rq)"},
        printk='"%d,%d sector=%llu disk=%s", MAJOR(dev), MINOR(dev), (u64)sector, disk',
    )
    assert write_header([event]) == (
        "#undef TRACE_SYSTEM\n"
        "#define TRACE_SYSTEM block\n"
        "\n"
        "#if !defined(_TRACE_BLOCK_H) || defined(TRACE_HEADER_MULTI_READ)\n"
        "#define _TRACE_BLOCK_H\n"
        "\n"
        "#include <linux/tracepoint.h>\n"
        "\n"
        "TRACE_EVENT(blk_retry,\n"
        "\n"
        "\tTP_PROTO(struct request *rq, int tries),\n"
        "\n"
        "\tTP_ARGS(rq, tries),\n"
        "\n"
        "\tTP_STRUCT__entry(\n"
        "\t\t__field(\tdev_t,\t\tdev\t\t\t)\n"
        "\t\t__field(\tsector_t,\tsector\t\t\t)\n"
        "\t\t__string(\tdisk,\t\trq->q->disk->name\t)\n"
        "\t),\n"
        "\n"
        "\tTP_fast_assign(\n"
        "\t\t__entry->dev\t= rq->q->disk ? disk_devt(rq->q->disk) : 0;\n"
        "\t\t__entry->sector\t= blk_rq_pos(rq);\n"
        "\t\t__assign_str(disk, rq->q->disk->name);\n"
        "\t),\n"
        "\n"
        '\tTP_printk("%d,%d sector=%llu disk=%s",\n'
        "\t\t  MAJOR(__entry->dev), MINOR(__entry->dev),\n"
        "\t\t  (u64)__entry->sector, __get_str(disk))\n"
        ");\n"
        "\n"
        "#endif /* _TRACE_BLOCK_H */\n"
        "\n"
        "#include <trace/define_trace.h>\n"
    )
    assert read_header_text(write_header([event])).events == (event,)


def test_classes_come_before_their_instances_and_once():
    cls = declare_class("c", proto="int n", struct=[scalar("int", "n")], assign={}, printk='"%d", n')
    events = [define_event(cls, name, system="demo") for name in ("one", "two")]
    text = write_header(events)
    assert text.count("DECLARE_EVENT_CLASS(c,") == 1
    assert (
        text.index("DECLARE_EVENT_CLASS")
        < text.index("DEFINE_EVENT(c, one,")
        < text.index("DEFINE_EVENT(c, two,")
    )


def test_two_systems_in_one_header():
    text = (
        "#define TRACE_SYSTEM one\nTRACE_DEFINE_ENUM(A);\nDECLARE_TRACE(t, TP_PROTO(void), TP_ARGS());\n"
        '#define P TP_PROTO(int n), TP_ARGS(n), TP_STRUCT__entry(), TP_fast_assign(), TP_printk("x")\n'
        "TRACE_EVENT(a, P);\n#undef TRACE_SYSTEM\n#define TRACE_SYSTEM two\nTRACE_DEFINE_ENUM(B);\nTRACE_EVENT(b, P);\n"
    )
    header = read_header_text(text)
    assert [e.system for e in header.events] == ["one", "two"]
    assert read_header_text(write_header(header)) == header


def test_only_an_enum_of_another_system():
    header = read_header_text(
        "#define TRACE_SYSTEM one\nint x;\n#undef TRACE_SYSTEM\n#define TRACE_SYSTEM two\nTRACE_DEFINE_ENUM(B);\n"
    )
    assert (header.system, header.enums[0].system) == ("one", "two")
    assert read_header_text(write_header(header)) == header


def test_assign_str_as_the_tree_at_hand_wants_it():
    event = declare(
        "e",
        system="demo",
        proto="const char *a, const char *b",
        struct=[string("a"), string("b", "b ? b : f(1, 2)", rel=True)],
        assign={},
        printk='"%s %s", a, b',
    )
    one = write_header([event], vocabulary=Vocabulary(assign_str_arity=1))
    assert "__assign_str(a);" in one
    assert "__assign_rel_str(b);" in one
    again = read_header_text(one)
    assert write_header([event]) == write_header(again.events, vocabulary=Vocabulary(assign_str_arity=2))


@pytest.mark.parametrize(
    ("text", "arity", "wanted"),
    [
        ("__assign_str(a, f(b, c));", 1, "__assign_str(a);"),
        ("__assign_str(a);", 2, "__assign_str(a, src->x);"),
        ("__assign_str(zz);", 2, "__assign_str(zz, zz);"),
        ("__assign_str(a, b); __assign_str(a, c)", 1, "__assign_str(a); __assign_str(a)"),
        ("x = __assign_str", 1, "x = __assign_str"),
        ("__assign_str(a, b);", None, "__assign_str(a, b);"),
    ],
)
def test_set_assign_str_arity(text, arity, wanted):
    assert set_assign_str_arity(text, (string("a", "src->x"),), arity) == wanted


def test_old_meaning_of_declare_trace_where_tp_is_added():
    tracepoint = declare_tracepoint("tick", proto="int n")
    header = header_of([], system="demo", tracepoints=[tracepoint])
    assert "DECLARE_TRACE(tick," in write_header(header)
    assert "DECLARE_TRACE_EVENT(tick," in write_header(header, vocabulary=Vocabulary(has_tp_suffix=True))


@pytest.mark.parametrize(
    ("ctype", "wanted"),
    [
        ("int", "int x"),
        ("char *", "char *x"),
        ("char * const", "char * const x"),
        ("int[3]", "int x[3]"),
        ("struct a *[2]", "struct a *x[2]"),
        ("void (*)(int)", "void (*x)(int)"),
        ("int (* const)(void)", "int (* const x)(void)"),
    ],
)
def test_names_stand_where_the_declarator_has_them(ctype, wanted):
    assert declare_param(ctype, "x") == wanted
    text = f"DECLARE_TRACE(t, TP_PROTO({wanted}), TP_ARGS(x));"
    assert read_header_text(text).tracepoints[0].proto == Proto((Param(ctype, "x"),))


def test_lines_break_only_at_blanks():
    assert break_statements("a = 1;b = 2; if (x) c(); else d();") == "a = 1;b = 2;\nif (x)\nc();\nelse\nd();"
    assert break_statements("int a[] = { 1, 2 }; x();") == "int a[] = { 1, 2 };\nx();"
    assert break_statements("do { a(); } while (0); b();") == "do {\na();\n} while (0);\nb();"
    long = '"' + "x" * 60 + '",a, bbbbbbbbbbbb'
    assert break_print(long) == '"' + "x" * 60 + '",a,\nbbbbbbbbbbbb'
