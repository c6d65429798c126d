import gc
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracepoint.check.engine import apply_fixes, check_headers, check_text, fix_text
from tracepoint.check.registry import RULES
from tracepoint.diagnostics import Safety
from tracepoint.errors import TracepointError
from tracepoint.model.read import read_header_text
from tracepoint.tree.headers import paused_collector
from tracepoint.tree.tracing_macros import TreeFacts

EVENT = """TRACE_EVENT({name},
\tTP_PROTO(int n),
\tTP_ARGS(n),
\tTP_STRUCT__entry(__field(int, n)),
\tTP_fast_assign(__entry->n = n;),
\tTP_printk("n=%d{tail}", __entry->n)
);
"""


def page_blocks():
    for rule in RULES:
        for number, block in enumerate(re.findall(r"^```c\n(.*?)^```", rule.page, re.MULTILINE | re.DOTALL)):
            yield pytest.param(rule.code, block, id=f"{rule.code}-{number}")


@pytest.mark.parametrize(("code", "block"), list(page_blocks()))
@pytest.mark.parametrize("unsafe", [False, True])
def test_fixing_twice_changes_nothing_more(code, block, unsafe):
    select = ["DEFAULT", code]
    once = fix_text(block, unsafe=unsafe, select=select)
    assert fix_text(once, unsafe=unsafe, select=select) == once


@pytest.mark.parametrize("rule", [r for r in RULES if r.fix], ids=lambda r: r.code)
def test_a_promised_fix_mends_the_example(rule):
    block = re.search(r"^## Example\n\n```c\n(.*?)^```", rule.page, re.MULTILINE | re.DOTALL)[1]
    block = re.sub(r" */\* error: .*?\*/", "", block)  # a comment between fields forbids exchanging them
    path = "drivers/demo/demo_trace.h" if rule.code == "TP017" else "<text>"
    facts = TreeFacts(assign_str_arity=1)
    found = [d for d in check_text(block, path, select=[rule.code], facts=facts) if d.code == rule.code]
    if rule.code == "TP010":
        block = (
            "#define TRACE_SYSTEM a\n#if !defined(A) || defined(TRACE_HEADER_MULTI_READ)\n"
            + EVENT.format(name="a", tail="")
        )
        block += "#endif\n#include <trace/define_trace.h>\n"
        found = check_text(block, path, select=[rule.code])
    assert found
    assert {d.fix.safety for d in found if d.fix} <= {Safety.SAFE, Safety.UNSAFE}
    assert any(d.fix for d in found)
    mended = apply_fixes(found, block, unsafe=rule.fix == "unsafe")
    assert mended != block
    assert rule.code not in {d.code for d in check_text(mended, path, select=[rule.code], facts=facts)}


def test_unsafe_fixes_need_to_be_asked_for():
    text = EVENT.format(name="a", tail="\\n")
    found = check_text(text)
    assert [d.code for d in found] == ["TP305"]
    assert apply_fixes(found, text) == text
    assert apply_fixes(found, text, unsafe=True) == EVENT.format(name="a", tail="")


def test_overlapping_fixes_apply_one():
    text = EVENT.format(name="a", tail="\\n")
    found = check_text(text)
    assert apply_fixes([*found, *found], text, unsafe=True) == EVENT.format(name="a", tail="")


def test_a_fault_in_a_macro_is_told_once_with_its_events():
    lines = EVENT.format(name="name", tail="\\n").rstrip().removesuffix(";").splitlines()
    body = "#define EV(name) " + " \\\n".join(lines) + "\n"
    found = check_text(body + "EV(a);\nEV(b);\nEV(c);\n", select=["TP305"])
    assert len(found) == 1
    assert "(and 2 more: " in found[0].message
    assert found[0].span.line == body.count("\n") + 1
    assert [r.span.line for r in found[0].related] == [6]


def test_safe_enum_fix_goes_before_the_call_not_into_the_macro():
    text = (
        "enum e { E_A, E_B };\n"
        '#define show(x) __print_symbolic(x, { E_A, "a" }, { E_B, "b" })\n'
        + EVENT.format(name="a", tail="").replace('"n=%d", __entry->n', '"n=%s", show(__entry->n)')
    )
    mended = fix_text(text)
    assert "TRACE_DEFINE_ENUM(E_A);\nTRACE_DEFINE_ENUM(E_B);\n\nTRACE_EVENT" in mended
    assert check_text(mended) == []


def test_names_declared_in_two_headers():
    one = read_header_text(EVENT.format(name="same", tail=""), "a/one.h")
    two = read_header_text(EVENT.format(name="same", tail=""), "b/two.h")
    found = check_headers([one, two], select=["TP103"])
    assert [(d.code, d.span.path, d.related[0].span.path) for d in found] == [("TP103", "b/two.h", "a/one.h")]


def test_names_may_repeat_across_architectures():
    headers = [
        read_header_text(EVENT.format(name="kvm_entry", tail=""), f"arch/{a}/kvm/trace.h")
        for a in ("x86", "arm64")
    ]
    assert check_headers(headers, select=["TP103"]) == []


def test_an_enum_exported_by_another_header_of_the_system_counts():
    system = "#define TRACE_SYSTEM s\n"
    event = EVENT.format(name="a", tail="").replace('"n=%d", __entry->n', '"n=%d", __entry->n == E_A')
    one = read_header_text(system + "enum { E_A };\n" + event, "one.h")
    two = read_header_text(system + "TRACE_DEFINE_ENUM(E_A);\n", "two.h")
    assert [d.code for d in check_headers([one], select=["TP307"])] == ["TP307"]
    assert check_headers([one, two], select=["TP307"]) == []


def test_select_and_ignore():
    text = EVENT.format(name="a", tail="\\n")
    assert check_text(text, select=["TP2"]) == []
    assert check_text(text, ignore=["TP3"]) == []
    assert [d.code for d in check_text(text, ignore=["TP3"], select=["TP305"])] == ["TP305"]
    assert [d.code for d in check_text(text, select=["trailing-newline-in-printk"])] == ["TP305"]
    with pytest.raises(TracepointError, match="did you mean trailing-newline"):
        check_text(text, select=["trailing-newlines-in-print"])


def test_findings_are_in_the_order_of_the_text():
    text = EVENT.format(name="a", tail="\\n") + EVENT.format(name="b", tail="\\n").replace("int", "long")
    spans = [d.span for d in check_text(text)]
    assert spans == sorted(spans)


SNIPPETS = [re.sub(r"/\*.*?\*/", "", p.values[1]) for p in page_blocks()]


@given(st.sampled_from(SNIPPETS), st.data())
def test_damaged_text_raises_nothing_but_our_own_errors(text, data):
    at = data.draw(st.integers(0, len(text)))
    length = data.draw(st.integers(0, 40))
    middle = data.draw(st.text(alphabet='(),;{}[]"\\#_ae->*&0\n\x00é', max_size=8))
    damaged = text[:at] + middle + text[at + length :]
    try:
        found = check_text(damaged, select=["ALL"])
        apply_fixes(found, damaged, unsafe=True)
    except TracepointError:
        pass


def test_beside_a_no_break_space_only_its_own_fix_is_safe():
    text = EVENT.format(name="a", tail="").replace("TP_ARGS(n)", "TP_ARGS(\u00a0n)")
    text += "/* caf\u00e9 */\n#define TRACE_SYSTEM a-b\n"
    found = [d for d in check_text(text, select=["TP020", "TP0"]) if d.fix]
    assert {d.code for d in found if d.fix.is_safe} == {"TP020"}
    assert len([d for d in found if d.code == "TP020"]) == 1
    assert "TP_ARGS( n)" in apply_fixes(found, text)


def test_what_reading_and_checking_leaves_is_freed_at_once():
    # Only what refers to itself needs the garbage collector, which is off while a tree is checked.
    text = "#define TRACE_SYSTEM demo\n#ifdef CONFIG_X\n" + EVENT.format(name="ping", tail="") + "#endif\n"
    with paused_collector():
        assert not check_text(text, select=["TP1"])
        gc.collect()
        assert not check_text(text, select=["TP1"])
        assert gc.collect() == 0
