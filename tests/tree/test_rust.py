"""Call sites in Rust: what is declared, called through a path or a function that wraps it, and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tracepoint as tp
from oracles import kernel_sources
from pace import fewer_turns
from tracepoint.tree.cache import cache_folder
from tracepoint.tree.callsites.rust import blank_rust, find_rust_sites

NAMES = {"foo", "bar", "swap_never"}
TRACE = """\
declare_trace! {
    /// Says `foo(1)`.
    pub(crate) unsafe fn foo(n: c_int);
    unsafe fn bar(); unsafe fn nosuch();
}
pub(crate) fn trace_foo(n: i32) {
    // SAFETY: foo(2) is always safe.
    unsafe { foo(n as c_int) }
}
pub(crate) fn trace_both() { unsafe { foo(1); bar() } }
"""


def found(**texts: str) -> list[tuple[str, str, str, str, str]]:
    """File, event, function, text and wrapper of each call, the files of one driver by their stems."""
    sites = find_rust_sites({f"drivers/a/b/{stem}.rs": text for stem, text in texts.items()}, NAMES)
    return [
        (path.rpartition("/")[2], s.event, s.function, s.text, s.via)
        for path, rows in sites.items()
        for s in rows
    ]


OWN = [
    ("trace.rs", "foo", "trace_foo", "foo(n as c_int)", ""),
    ("trace.rs", "foo", "trace_both", "foo(1)", ""),
    ("trace.rs", "bar", "trace_both", "bar()", ""),
]


def test_calls_beside_the_declaration() -> None:
    assert found(trace=TRACE) == OWN


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("fn f() { crate::trace::trace_foo(1) }", [("foo", "f", "crate::trace::trace_foo(1)", "trace_foo")]),
        (
            "use crate::trace::trace_foo;\nfn f() { trace_foo( 1 ) }",
            [("foo", "f", "trace_foo( 1 )", "trace_foo")],
        ),
        ("use crate::{a, trace::{foo, x}};\nfn f() { unsafe { foo(1) } }", [("foo", "f", "foo(1)", "")]),
        ("use super::trace::*;\nfn f() { foo(g(1), 2) }", [("foo", "f", "foo(g(1), 2)", "")]),
        (
            "impl A { fn f(&self) { if x { trace ::\n trace_both() } } }",
            [(event, "f", "trace :: trace_both()", "trace_both") for event in ("foo", "bar")],
        ),
        ("fn f() { fn g() { trace::foo(1) } }", [("foo", "g", "trace::foo(1)", "")]),
        ("fn f<'a>(x: &'a str) { trace::foo('\"'); }", [("foo", "f", "trace::foo('\"')", "")]),
        ("fn f() { trace_foo(1) }", []),
        ("fn f() { other::trace_foo(1) }", []),
        ("fn f() { self.foo(1); x.trace_foo(1); }", []),
        ("use crate::trace::foo;\nfn foo(n: i32) {}", []),
        ("fn f() { /* trace::foo(1) /* */ trace::foo(2) */ }", []),
        ('fn f() { g(r#"trace::foo(1)"#, "trace::foo(2)", b"\\"trace::foo(3)") } // trace::foo(4)', []),
        ("trace::foo(1);", []),
    ],
)
def test_calls_from_another_file(text: str, rows: list[tuple[str, str, str, str]]) -> None:
    assert [row for row in found(trace=TRACE, use=text) if row not in OWN] == [
        ("use.rs", *row) for row in rows
    ]


def test_a_module_within_a_file_has_its_own_name() -> None:
    text = (
        "fn init() { trace::trace_foo(42) }\nmod trace {\n"
        + TRACE.replace("declare", "kernel::declare")
        + "}\n"
    )
    assert ("main.rs", "foo", "init", "trace::trace_foo(42)", "trace_foo") in found(main=text)


def test_other_drivers_have_other_functions() -> None:
    texts = {"drivers/a/b/trace.rs": TRACE, "drivers/a/c/use.rs": "fn f() { trace::foo(1) }"}
    assert set(find_rust_sites(texts, NAMES)) == {"drivers/a/b/trace.rs"}
    texts = {"rust/kernel/trace.rs": TRACE, "drivers/a/c/use.rs": "fn f() { kernel::trace::foo(1) }"}
    assert set(find_rust_sites(texts, NAMES)) == {"drivers/a/c/use.rs", "rust/kernel/trace.rs"}


def test_line_and_column_of_the_path() -> None:
    rows = find_rust_sites({"rust/trace.rs": TRACE, "a.rs": "\nfn f() {\n    trace::foo(1);\n}\n"}, NAMES)
    assert [(site.line, site.column) for site in rows["a.rs"]] == [(3, 5)]


@given(st.text(alphabet="/*\"'r#b\\\n x{};()"))
def test_blanking_keeps_every_place(text: str) -> None:
    bare = blank_rust(text)
    assert len(bare) == len(text)
    assert [i for i, c in enumerate(bare) if c == "\n"] == [i for i, c in enumerate(text) if c == "\n"]
    assert all(a in (b, " ") for a, b in zip(bare, text, strict=True))


PIECES = [
    "declare_trace!",
    "{",
    "}",
    "(",
    ")",
    "fn foo",
    "foo(",
    "trace::",
    "use trace::*;",
    "mod trace",
    "/*",
    '"',
    "'",
]


@given(st.lists(st.sampled_from([*PIECES, "unsafe ", "\n", "//", "*/", 'r#"', ";"]), max_size=60))
def test_any_pieces_are_read(pieces: list[str]) -> None:
    text = " ".join(pieces)
    for sites in find_rust_sites(
        {"a/trace.rs": TRACE, "a/b.rs": text, "a/c.rs": text + TRACE}, NAMES
    ).values():
        assert all(site.event in NAMES and site.line >= 1 for site in sites)


@pytest.mark.limits
@pytest.mark.parametrize(
    "text",
    [
        "fn f() {" * 60_000 + "trace::foo(1);" * 20_000,
        "declare_trace!{ unsafe fn foo(); " * 30_000,
        "use trace::" * 90_000,
        "/*" * 500_000,
        'r#"' * 300_000,
        "fn a(){}" * 100_000 + "fn f() { " + "trace::foo(" * 20_000,
        "fn f() { foo" + " " * 1_000_000,
        "a::" * 300_000 + "foo()",
    ],
)
def test_a_hostile_file_is_read_soon(text: str) -> None:
    with fewer_turns(200):
        find_rust_sites({"a/trace.rs": TRACE, "a/b.rs": text, "a/c.rs": TRACE + text}, NAMES)


# In an index.


def unused(root: Path) -> list[str]:
    return [event.name for event in tp.open_tree(root).unused_events()]


def test_an_event_that_rust_fires_is_used(tree: Path) -> None:
    assert unused(tree) == ["swap_never"]
    (tree / "mm/trace.rs").write_text("declare_trace! { unsafe fn swap_never(); }")
    assert unused(tree) == ["swap_never"]
    (tree / "mm/swap.rs").write_text("fn evict() { unsafe { crate::trace::swap_never() } }")
    assert unused(tree) == []
    sites = tp.open_tree(tree).call_sites("swap:swap_never")
    assert [(str(site.span), site.function) for site in sites] == [("mm/swap.rs:1:23", "evict")]
    (tree / "mm/swap.c").touch()  # what is brought up to date keeps them
    assert unused(tree) == []
    (tree / "mm/trace.rs").unlink()
    assert unused(tree) == ["swap_never"]


def test_large_rust_files_were_made_by_a_build(tree: Path) -> None:
    text = "declare_trace! { unsafe fn swap_never(); }\nfn evict() { unsafe { swap_never() } }"
    (tree / "mm/bindings.rs").write_text(text + " " * (1 << 20))
    assert unused(tree) == ["swap_never"]


def test_a_call_is_of_the_header_beside_it(tree: Path) -> None:
    """Both drivers of binder declare the same events: in C above, in Rust below."""
    event = (tree / "include/trace/events/swap.h").read_text()
    (tree / "mm/sub").mkdir()
    for path, system in (("mm/c_trace.h", "c_swap"), ("mm/sub/rust_trace.h", "rust_swap")):
        (tree / path).write_text(event.replace("TRACE_SYSTEM swap", f"TRACE_SYSTEM {system}"))
    (tree / "mm/sub/trace.rs").write_text(
        "declare_trace! { unsafe fn swap_in(a: c_ulong, b: c_int); }\nfn back() { swap_in(1, 2) }"
    )
    index = tp.open_tree(tree)
    files = {
        name: [s.span.path for s in index.call_sites(f"{name}:swap_in")] for name in ("c_swap", "rust_swap")
    }
    assert files == {"c_swap": ["mm/swap.c"], "rust_swap": ["mm/sub/trace.rs"]}


@pytest.mark.oracle
def test_rust_of_the_newest_kernel() -> None:
    for name in kernel_sources():
        root = cache_folder() / "sources" / name
        if (root / "rust/kernel/tracepoint.rs").is_file() and (
            root / "drivers/android/binder/trace.rs"
        ).is_file():
            break
    else:
        pytest.skip("no kernel source with tracepoints in Rust: `make test` as root fetches a newer one")
    tree = tp.open_tree(root)
    systems = ("rust_binder", "rust_sample")
    assert [e.full_name for e in tree.unused_events() if e.system in systems] == []
    for event in tree.events():
        if event.system in systems:
            sites = tree.call_sites(event)
            assert sites
            assert {site.span.path.rpartition(".")[2] for site in sites} == {"rs"}
            assert any(site.via for site in sites)
    assert not any(s.span.path.endswith(".rs") for s in tree.call_sites("binder:binder_transaction"))
    calls = tree.call_sites("rust_sample:rust_sample_loaded")
    assert [(s.function, s.text) for s in calls if s.via] == [("init", "trace::trace_rust_sample_loaded(42)")]
