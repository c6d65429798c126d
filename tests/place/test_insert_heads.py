"""Which functions are found, and which are refused and why."""

from __future__ import annotations

import pytest

from place.helpers import AFTER, BEFORE, ENTRY, RETURNS, place, put, refusal
from tracepoint.errors import PlaceError
from tracepoint.place.insert import EventCall, InsertionPoint, place_call
from tracepoint.source.text import SourceFile

HEADS = {
    "plain": ("int f(void)", "f"),
    "on two lines": ("static struct page *\nf(struct page *page,\n  int order)", "f"),
    "attributes before": ("static noinline __init __printf(1, 2) int f(const char *s, ...)", "f"),
    "attributes after": ("static void f(int *l) __acquires(*l) __releases(rcu)", "f"),
    "macro before without semicolon": ("EXPORT_SYMBOL(g)\nint f(void)", "f"),
    "a leading underscore": ("__printf(1, 2) static void __f(const char *s)", "__f"),
    "type of two underscores": ("__wsum f(int a)", "f"),
    "STATIC": ("STATIC int\nf(\n\tstruct xfs_mount *mp)", "f"),
    "returns a function": ("int (*f(int a))(void)", "f"),
    "name by a macro": ("static int FNAME(fetch)(int a)", "fetch"),
    "system call": ("SYSCALL_DEFINE2(open, const char __user *, name, int, flags)", "open"),
    "system call by its other name": (
        "SYSCALL_DEFINE2(open, const char __user *, name, int, flags)",
        "sys_open",
    ),
    "without arguments": ("SYSCALL_DEFINE0(fork)", "fork"),
    "compat system call": ("COMPAT_SYSCALL_DEFINE1(a, int, fd)", "compat_sys_a"),
    "halves": ("COMPAT_SYSCALL_DEFINE3(a, int, fd, compat_arg_u64_dual(off))", "a"),
    "helper of eBPF": ("BPF_CALL_1(bpf_one, u32, size)", "bpf_one"),
    "trap": ("DEFINE_IDTENTRY(exc_divide_error)", "exc_divide_error"),
    "trap by its inner name": ("DEFINE_IDTENTRY_ERRORCODE(exc_segment)", "__exc_segment"),
    "brace on the line": ("int f(void) ", "f"),
}


@pytest.mark.parametrize("name", HEADS)
def test_functions_are_found_by_their_heads(name: str) -> None:
    head, function = HEADS[name]
    old = f"struct s {{ int a; }};\nint g(void);\nstatic int n[] = {{ 1, 2 }};\n{head}\n{{\n\tg();\n}}\nint z(void)\n{{\n}}\n"
    assert put(old, ENTRY, "", function=function) == old.replace("\tg();", "\ttrace_x();\n\tg();")


PARAMETERS = {
    "SYSCALL_DEFINE2(f, const char __user *, name, unsigned int, flags)": ("name", "flags"),
    "DEFINE_IDTENTRY(f)": ("regs",),
    "DEFINE_IDTENTRY_ERRORCODE(f)": ("regs", "error_code"),
    "DEFINE_IDTENTRY_IRQ(f)": ("regs", "vector"),
    "DEFINE_IDTENTRY_SYSVEC(f)": ("regs",),
    "BPF_CALL_2(f, struct task_struct *, task, u64, flags)": ("task", "flags"),
    "int f(int (*fn)(int), char buf[8], struct s **p, unsigned x)": ("fn", "buf", "p", "x"),
}


@pytest.mark.parametrize("head", PARAMETERS)
def test_parameters_of_heads_are_in_scope(head: str) -> None:
    names = PARAMETERS[head]
    assert f"trace_x({', '.join(names)});" in put(f"{head}\n{{\n\tg();\n}}\n", ENTRY, "", *names)
    assert "`other` in the argument" in refusal(f"{head}\n{{\n\tg();\n}}\n", ENTRY, "", "other")


def test_a_trap_says_what_its_body_is() -> None:
    notes = place("DEFINE_IDTENTRY(exc_x)\n{\n\tg();\n}\n", ENTRY, "", "regs", function="exc_x").notes
    assert notes == (
        "the body after DEFINE_IDTENTRY(exc_x) is the function __exc_x(), which the entry code calls",
    )


RAW = """DEFINE_IDTENTRY_RAW(exc_page_fault)
{
	unsigned long address = read_cr2();
	irqentry_state_t state;

	state = irqentry_enter(regs);

	instrumentation_begin();
	handle_page_fault(regs, address);
	instrumentation_end();

	irqentry_exit(regs, state);
}
"""


def test_a_raw_trap_is_noinstr_but_for_the_marked_part() -> None:
    where = {"function": "exc_page_fault"}
    assert "exc_page_fault() is noinstr" in refusal(RAW, ENTRY, "", "regs", **where)
    assert "is noinstr" in refusal(RAW, RETURNS, "", "regs", **where)
    assert "is noinstr" in refusal(RAW, AFTER, "instrumentation_end();", "regs", **where)
    assert put(RAW, AFTER, "instrumentation_begin();", "address", **where) == RAW.replace(
        "\thandle_page_fault", "\ttrace_x(address);\n\thandle_page_fault"
    )
    assert "trace_x(address);\n\tinstrumentation_end" in put(
        RAW, BEFORE, "instrumentation_end()", "address", **where
    )


def test_an_end_of_instrumentation_in_a_branch_does_not_count_outside() -> None:
    old = "noinstr void f(int a)\n{\n\tinstrumentation_begin();\n\tif (a) {\n\t\tinstrumentation_end();\n\t\treturn;\n\t}\n\tg();\n}\n"
    assert "trace_x(a);\n\tg();" in put(old, BEFORE, "g();", "a")
    assert "is noinstr" in refusal(old, BEFORE, "return;", "a")
    inline = old.replace("noinstr void", "static __always_inline void")  # as exc_debug_kernel() of 6.1 is
    assert "is noinstr except for a part" in refusal(inline, ENTRY, "", "a")
    assert "trace_x(a);\n\tg();" in put(inline, BEFORE, "g();", "a")


REFUSED = {
    "missing": ("int g(void)\n{\n}\n", "mm/a.c defines no function f()"),
    "a near name": ("int ff(void)\n{\n}\n", "did you mean ff()?"),
    "only used": ("int g(void)\n{\n\tf();\n}\n", "f() is used here but defined in another file"),
    "a macro": ("#define f(x) g(x)\nint h(void)\n{\n\tf(1);\n}\n", "f is a macro"),
    "in a macro": ("#define MAKE(x) int f(int a) { return x; }\nMAKE(1)\n", "is only in the macro MAKE"),
    "made by a macro": ("DEFINE_THING(f, 1);\n", "f() is defined by the macro DEFINE_THING()"),
    "under #if 0": ("#if 0\nint f(void)\n{\n}\n#endif\n", "f() is under `#if 0`, which is never compiled"),
    "an unknown macro": ("DEFINE_THING(f, int a)\n{\n}\n", "defined by the unknown macro DEFINE_THING()"),
    "old style": ("int f(a, b)\nint a;\nchar *b;\n{\n}\n", "written in the old style"),
    "no return type": ("f(int a)\n{\n}\n", "f() has no return type"),
    "twice": (
        "#ifdef X\nint f(void)\n{\n\tg();\n}\n#else\nint f(void)\n{\n}\n#endif\n",
        "f() is defined 2 times, in lines 2 and 7: give a line of one of them",
    ),
    "head in a branch": (
        "#ifdef X\nint f(int a)\n#else\nint f(int b)\n#endif\n{\n}\n",
        "f() has a head that depends on `#else`",
    ),
    "naked": ('__naked void f(void)\n{\n\tasm("ret");\n}\n', "f() is naked"),
    "too early": ("void __head f(void)\n{\n}\n", "f() is marked __head"),
    "wrong arguments of a system call": ("SYSCALL_DEFINE2(f, int, a)\n{\n}\n", "with 3 arguments instead of 5"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_functions_that_cannot_be_changed_are_refused(name: str) -> None:
    old, reason = REFUSED[name]
    assert reason in refusal(old, ENTRY, "")


def test_heads_that_differ_in_attributes_only_are_one() -> None:
    old = "#ifdef X\nvoid f(int a)\n#else\nstatic inline void f(int a)\n#endif\n{\n\tg();\n}\n"
    assert put(old, ENTRY, "", "a") == old.replace("\tg();", "\ttrace_x(a);\n\tg();")
    assert "depends on" in refusal(old.replace("inline void", "inline int"), ENTRY, "", "a")


def test_a_line_chooses_one_of_two_functions() -> None:
    old = "#ifdef X\nint f(void)\n{\n\tg();\n}\n#else\nint f(void)\n{\n\tg();\n}\n#endif\n"
    new = put(old, ENTRY, "", line=7)
    assert (
        new == "#ifdef X\nint f(void)\n{\n\tg();\n}\n#else\nint f(void)\n{\n\ttrace_x();\n\tg();\n}\n#endif\n"
    )
    assert put(old, AFTER, "", line=4) == old.replace("g();\n", "g();\n\ttrace_x();\n", 1)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("include/linux/mm.h", "DECLARE_TRACEPOINT() of <linux/tracepoint-defs.h>"),
        ("arch/x86/entry/entry_64.S", "is not a C source file"),
        ("scripts/mod/modpost.c", "is not linked into the kernel"),
        ("arch/x86/boot/compressed/misc.c", "is not linked into the kernel"),
        ("arch/x86/entry/vdso/vclock_gettime.c", "is not linked into the kernel"),
        ("drivers/firmware/efi/libstub/x86-stub.c", "is not linked into the kernel"),
    ],
)
def test_files_without_tracepoints_are_refused(path: str, reason: str) -> None:
    assert reason in refusal("int f(void)\n{\n}\n", ENTRY, "", path=path)


@pytest.mark.parametrize(
    ("head", "note"),
    [
        ("static int __init f(void)", "f() is __init"),
        ("static void __exit f(void)", "f() is __exit"),
        ("static __always_inline int f(void)", "f() is __always_inline"),
        ("void __cpuidle f(void)", "f() is __cpuidle"),
    ],
)
def test_marks_of_a_function_are_noted(head: str, note: str) -> None:
    found = place(f"{head}\n{{\n\tg();\n}}\n", ENTRY)
    assert any(text.startswith(note) for text in found.notes)


@pytest.mark.parametrize(
    ("head", "path", "why"),
    [
        ("static notrace int f(void)", "mm/a.c", "f() is notrace"),
        ("int f(void)", "kernel/trace/ring_buffer.c", "f() is part of kernel/trace/ring_buffer.c"),
        ("int f(void)", "kernel/trace/trace.c", "f() is part of kernel/trace/trace.c"),
    ],
)
def test_what_recording_runs_is_refused(head: str, path: str, why: str) -> None:
    reason = refusal(f"{head}\n{{\n\tg();\n}}\n", ENTRY, path=path)
    assert why in reason
    assert "recording the event may run it" in reason


def test_the_tracer_itself_and_assembler_are_noted() -> None:
    assert (
        "is part of the tracer"
        in place("int f(void)\n{\n}\n", ENTRY, path="kernel/trace/trace_events.c").notes[0]
    )
    notes = place('void f(void)\n{\n\tasm volatile("nop");\n}\n', ENTRY).notes
    assert "f() is only inline assembler" in notes[0]


@pytest.mark.parametrize(
    ("event", "function"), [("", "f"), ("1x", "f"), ("x;y", "f"), ("x", "f()"), ("x", ""), ("x\n", "f")]
)
def test_names_that_are_none_are_refused(event: str, function: str) -> None:
    with pytest.raises(PlaceError, match=r"is not a valid (event|function) name"):
        place_call(
            SourceFile("a.c", "int f(void)\n{\n}\n"), InsertionPoint(function, ENTRY), EventCall(event, ())
        )


def test_beside_what_must_be_said() -> None:
    assert "Give the text of a statement or a line" in refusal("int f(void)\n{\n}\n", BEFORE)


DAMAGED = {
    "no closing brace": ("int f(void)\n{\n\tif (a) {\n}\n", "has no closing brace"),
    "an open parenthesis": ("int f(void)\n{\n\tg((a);\n}\n", "this `(` has no partner"),
    "a stray quote": ('int f(void)\n{\n\tg("a);\n}\n', "has no partner"),
    "a stray character": ("int f(void)\n{\n\tg(); `\n}\n", "this is not C"),
    "no semicolon": ("int f(void)\n{\n\ta = b\n}\n", "no semicolon ends this statement"),
    "else alone": ("int f(void)\n{\n\telse\n\t\tg();\n}\n", "this `else` belongs to no `if`"),
    "do without while": ("int f(void)\n{\n\tdo {\n\t} g();\n}\n", "this `do` has no `while`"),
    "case without colon": ("int f(void)\n{\n\tswitch (a) {\n\tcase 1;\n\t}\n}\n", "this label has no colon"),
    "keyword in an expression": ("int f(void)\n{\n\ta = for;\n}\n", "`for` in the middle of a statement"),
    "a macro for parentheses": ("int f(void)\n{\n\tif COND\n\t\tg();\n}\n", "`if` without parentheses"),
    "a body that is missing": ("int f(void)\n{\n\tif (a)\n}\n", "the body is missing"),
    "endif alone": ("#endif\nint f(void)\n{\n}\n", "#endif without #if"),
    "if alone": ("#if X\nint f(void)\n{\n}\n", "this conditional has no #endif"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGED)
def test_damage_is_refused_with_its_place(name: str) -> None:
    old, reason = DAMAGED[name]
    assert reason in refusal(old, ENTRY, "")


def test_damage_behind_a_function_does_not_matter() -> None:
    old = "int f(void)\n{\n\tg();\n}\nint h(void)\n{\n\tif (\n}\n"
    assert "\ttrace_x();\n\tg();" in put(old, ENTRY)
