"""What the headers at hand say about a kernel, and what becomes of a declaration there."""

from __future__ import annotations

from pathlib import Path

import pytest

from generate.samples import one_event
from oracles import kernel_source
from tracepoint.errors import GenerateError, TracepointError
from tracepoint.generate import kernel_module, read_facts
from tracepoint.tree.kernel_files import find_source_root, read_kernel_files
from tracepoint.tree.tracing_macros import FACT_FILES, NEWEST, TreeFacts

OLD = {
    "include/trace/ftrace.h": "#define __assign_str(dst, src) x\n#define __string(item, src)\n#define __field(a, b)\n"
}
SUFFIX = {
    "include/linux/tracepoint.h": "#define DECLARE_TRACE(name, proto, args)\t\\\n\t__DECLARE_TRACE(name##_tp, PARAMS(proto))\n"
}


def test_arity_suffix_and_macros() -> None:
    facts = read_facts(OLD)
    assert (facts.assign_str_arity, facts.has_tp_suffix) == (2, False)
    assert facts.has_macro("__string")
    assert not facts.has_macro("__rel_string")
    assert read_facts(SUFFIX).has_tp_suffix
    assert NEWEST.has_macro("anything")


def test_no_headers_is_an_error() -> None:
    with pytest.raises(GenerateError, match="no tracing headers"):
        read_facts({"Makefile": ""})


def test_a_missing_macro_names_event_and_macro() -> None:
    header = one_event("__rel_string(s, foo->name)", "__assign_rel_str(s, foo->name);")
    facts = TreeFacts(2, macros=frozenset({"TRACE_EVENT", "__string", "__assign_rel_str"}))
    with pytest.raises(GenerateError, match=r"demo:one: __rel_string\(\) is not in the tracing headers"):
        kernel_module(header, name="m", facts=facts)


def test_length_calls_become_plain_where_the_kernel_has_them_no_more() -> None:
    header = one_event("__string_len(s, foo->name, min(n, 4))", "__assign_str_len(s, foo->name, min(n, 4));")
    assert "__assign_str(s);" in kernel_module(header, name="m")["m_trace.h"]
    known = frozenset("TRACE_EVENT __string_len __assign_str_len".split())
    text = kernel_module(header, name="m", facts=TreeFacts(2, macros=known))["m_trace.h"]
    assert "__assign_str_len(s, foo->name, min(n, 4));" in text


@pytest.mark.parametrize(("arity", "call"), [(1, "__assign_str(s);"), (2, "__assign_str(s, foo->name);")])
def test_strings_are_spelt_as_the_kernel_does(arity: int, call: str) -> None:
    header = one_event("__string(s, foo->name)", "__assign_str(s, foo->name);")
    assert call in kernel_module(header, name="m", facts=TreeFacts(arity))["m_trace.h"]


def test_a_headers_package_leads_to_the_common_files(tmp_path: Path) -> None:
    common = tmp_path / "linux-headers-6-common/include/linux"
    common.mkdir(parents=True)
    (common / "tracepoint.h").write_text("x")
    (common.parents[1] / "Makefile").write_text("")
    flavour = tmp_path / "linux-headers-6-cloud"
    flavour.mkdir()
    for line in (
        f"include {common.parents[1]}/Makefile\n",
        "include $(dir $(lastword $(MAKEFILE_LIST)))../linux-headers-6-common/Makefile\n",
    ):
        (flavour / "Makefile").write_text(line)
        assert find_source_root(flavour).resolve() == common.parents[1]
    assert read_kernel_files(flavour, FACT_FILES) == {"include/linux/tracepoint.h": "x"}
    with pytest.raises(TracepointError, match="no kernel headers here"):
        read_kernel_files(tmp_path, FACT_FILES)


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("name", "arity", "has_len"), [("linux-source-6.1", 2, True), ("linux-source-6.12", 1, False)]
)
def test_real_trees(name: str, arity: int, has_len: bool) -> None:
    facts = read_facts(read_kernel_files(kernel_source(name), FACT_FILES))
    assert (facts.assign_str_arity, facts.has_tp_suffix) == (arity, False)
    assert facts.has_macro("__assign_str_len") is has_len
    assert all(
        facts.has_macro(macro)
        for macro in ("__rel_cpumask", "__print_array", "__get_sockaddr", "DEFINE_EVENT")
    )
