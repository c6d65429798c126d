import pytest

from tracepoint.lab.guest import console

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


@pytest.mark.parametrize(
    ("line", "is_late"),
    [
        ("watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [sh:60]", True),
        ("BUG: workqueue lockup - pool cpus=0 node=0 flags=0x0 nice=0 stuck for 31s!", True),
        ("Kernel panic - not syncing: softlockup: hung tasks", False),
        ("BUG: kernel NULL pointer dereference, address: 0000000000000000", False),
        ("BUG: spinlock lockup suspected on CPU#0, sh/60", False),
    ],
)
def test_a_lockup_of_an_emulated_machine_is_slowness(line, is_late):
    log = f"[ 1.0] fine\n[ 26.0] {line}\n"
    assert console.trouble(log) == line
    assert console.trouble(log, is_emulated=True) == ("" if is_late else line)
    after = "Oops: 0002 [#1] SMP"
    assert console.trouble(f"{log}[ 27.0] {after}\n", is_emulated=True).splitlines()[0] == (
        after if is_late else line
    )


def test_a_stall_of_rcu_breaks_nothing():
    assert console.trouble("[ 30.0] rcu: INFO: rcu_preempt self-detected stall on CPU\n") == ""


def test_last_lines():
    assert console.last_lines("a\n\nb\n \nc\n", 2) == "b\nc"
