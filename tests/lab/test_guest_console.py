from tracepoint.lab import console

OOPS = """\
[    0.1] Linux version 6.1
[   12.0] BUG: kernel NULL pointer dereference, address: 0000000000000000
[   12.0] #PF: supervisor write access in kernel mode
[   12.0] RIP: 0010:foo_init+0x5/0x1000 [foo]
[   12.0] RAX: 0000000000000000 RBX: ffffffffc0000000
[   12.0] Code: 90 90 90
[   12.0] Call Trace:
[   12.0]  ? show_regs+0x1/0x2
[   12.0]  foo_init+0x5/0x1000 [foo]
[   12.0] Modules linked in: foo(O+)
[   12.0] Kernel panic - not syncing: Fatal exception
"""


def test_the_lines_that_matter():
    assert console.trouble(OOPS).splitlines() == [
        "BUG: kernel NULL pointer dereference, address: 0000000000000000",
        "#PF: supervisor write access in kernel mode",
        "RIP: 0010:foo_init+0x5/0x1000 [foo]",
        "Call Trace:",
        " foo_init+0x5/0x1000 [foo]",
        "Kernel panic - not syncing: Fatal exception",
    ]


def test_a_long_log_is_cut():
    assert len(console.trouble(OOPS + "[ 13.0] more\n" * 1000).splitlines()) == 40


def test_harmless_words():
    assert (
        console.trouble("[ 1.0] foo: loading out-of-tree module taints kernel.\n[ 2.0] debug: BUGS none\n")
        == ""
    )
    assert console.trouble("") == ""


def test_last_lines():
    assert console.last_lines("a\n\nb\n \nc\n", 2) == "b\nc"
