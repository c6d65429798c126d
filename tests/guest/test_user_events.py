"""Events of a Python process in the trace of a real kernel: 6.12 of our own, with Python in its guest."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from guest.built import KERNEL, source_or_skip
from guest.python_files import PYTHON, SOURCE, python_files
from tracepoint.lab.build.kernel import build_kernel
from tracepoint.lab.guest import machine as lab_guest
from tracepoint.layout.format import read_format

# A kernel of its own is built: no kernel of Debian has user_events.
pytestmark = [pytest.mark.guest, pytest.mark.slow]
IMPORTS = "import os, sys, time, threading, tracepoint.runtime.declare.event, tracepoint.runtime.bridges.user_events"
TRACING = "/sys/kernel/tracing"
PROGRAM = """
import os, sys, time, threading
from tracepoint.model.python.types import s16, s32, string_t, u8, u64
from tracepoint.runtime.declare.event import trace_event
from tracepoint.runtime.bridges.user_events import UserEvents

@trace_event(system="shop", printk='"%llu %s", order_id, customer', name="order_placed")
def order_placed(count: u8, delta: s16, order_id: u64, customer: string_t, paid: bool) -> None: ...

@trace_event(system="shop", printk='"%d", n', name="restocked")
def restocked(n: s32) -> None: ...

def fire(first):
    for number in range(first, first + 5):
        order_placed(number, -number, 1 << 40 | number, "ada" * number, number % 2 == 1)
        restocked(number)

events = UserEvents([order_placed, restocked])
print(*events.names.values(), flush=True)
for line in sys.stdin:
    match line.split():
        case ["fire", number]:
            fire(int(number))
            print("fired", events.n_refused, flush=True)
        case ["enabled"]:
            print(*(int(events.is_enabled(name)) for name in events.names), flush=True)
        case ["fork"]:
            if not (child := os.fork()):
                fire(50)
                os._exit(0)
            os.waitpid(child, 0)
            print("forked", flush=True)
        case ["thread"]:
            thread = threading.Thread(target=fire, args=(60,))
            thread.start()
            thread.join()
            print("ended", flush=True)
        case ["cost"]:
            costs = []
            for _ in range(2):
                begin = time.perf_counter_ns()
                for number in range(2000):
                    restocked(number)
                costs.append((time.perf_counter_ns() - begin) // 2000)
            print(min(costs), flush=True)
        case ["close"]:
            events.close()
            print("closed", flush=True)
"""


@pytest.fixture(scope="module")
def guest() -> Iterator[lab_guest.Guest]:
    source_or_skip()
    built = build_kernel(KERNEL)
    files = python_files(f"{IMPORTS}; import tracepoint._core") | {"/lab/shop.py": PROGRAM.encode()}
    with lab_guest.boot(f"built:{built.image.parent.name}", files=files) as one:
        yield one


class Shop:
    """The program, running in the guest: words go in, lines come out."""

    def __init__(self, guest: lab_guest.Guest, environment: str) -> None:
        self._guest = guest
        guest.run(
            f"mkfifo /tmp/in /tmp/out; cd /tmp; (PYTHONPATH={SOURCE} {environment} {PYTHON} /lab/shop.py <>/tmp/in >/tmp/out 2>/tmp/errors"
            " && : || cat /tmp/errors >/dev/kmsg) & exec 5<>/tmp/in; sleep 10000 <>/tmp/out 5<>/tmp/in &"
        )

    def ask(self, word: str = "") -> str:
        say = f"echo {word} >/tmp/in; " if word else ""
        done = self._guest.run(f"{say}read -t 60 line </tmp/out && echo $line || cat /tmp/errors")
        return done.text.strip()

    def end(self) -> None:
        self._guest.run(f"killall -9 {PYTHON.name} sleep; rm -f /tmp/in /tmp/out", check=False)


@pytest.fixture(params=["", "TRACEPOINT_PURE=1"], ids=["c", "twin"])
def shop(guest: lab_guest.Guest, request: pytest.FixtureRequest) -> Iterator[Shop]:
    made = Shop(guest, request.param)
    assert made.ask() == "shop_order_placed shop_restocked"
    yield made
    made.end()


def test_they_are_events_like_all_others(guest: lab_guest.Guest, shop: Shop):
    events = f"{TRACING}/events/user_events"
    assert "user_events:shop_order_placed" in guest.run(f"cat {TRACING}/available_events").text
    made = read_format(guest.read(f"{events}/shop_order_placed/format"))
    assert [(f.name, f.offset, f.size) for f in made.fields[4:]] == [
        ("count", 8, 1),
        ("__pad9", 9, 1),
        ("delta", 10, 2),
        ("__pad12", 12, 4),
        ("order_id", 16, 8),
        ("customer", 24, 4),
        ("paid", 28, 1),
    ]
    assert shop.ask("enabled") == "0 0"
    assert shop.ask("fire 1") == "fired 0"
    assert "shop_" not in guest.read(f"{TRACING}/trace")

    guest.run(
        f"echo 'order_id > 0x10000000001 && customer ~ \"*a\"' > {events}/shop_order_placed/filter; echo 1 > {events}/enable"
    )
    assert shop.ask("enabled") == "1 1"
    assert shop.ask("fire 1") == "fired 0"
    lines = [
        line.split(": ", 1)[1] for line in guest.read(f"{TRACING}/trace").splitlines() if "shop_" in line
    ]
    orders = [line for line in lines if line.startswith("shop_order_placed")]
    assert len(orders) == 4
    assert len([line for line in lines if line.startswith("shop_restocked")]) == 5
    # print_event_fields() shows every integer as unsigned, and a byte as the character too.
    for word in ("(2)", "delta=0xfffe (65534)", "order_id=0x10000000002", "customer=adaada", "paid="):
        assert word in orders[0]

    guest.run(f"echo 0 > {events}/enable; echo > {TRACING}/trace")
    assert shop.ask("enabled") == "0 0"
    assert shop.ask("fire 1") == "fired 0"
    assert "shop_" not in guest.read(f"{TRACING}/trace")
    off = int(shop.ask("cost"))
    guest.run(f"echo 1 > {events}/shop_restocked/enable")
    on = int(shop.ask("cost"))
    sys.stderr.write(f"off {off} ns, on {on} ns\n")
    assert off < on
    guest.run(f"echo 0 > {events}/enable; echo 0 > {events}/shop_order_placed/filter; echo > {TRACING}/trace")


def test_children_and_threads_write_too(guest: lab_guest.Guest, shop: Shop):
    events = f"{TRACING}/events/user_events"
    guest.run(f"echo 1 > {events}/enable; echo > {TRACING}/trace")
    assert shop.ask("fork") == "forked"
    assert shop.ask("thread") == "ended"
    shown = [
        line.split()[0].rpartition("-")[2]
        for line in guest.read(f"{TRACING}/trace").splitlines()
        if "shop_restocked" in line
    ]
    assert len(shown) == 10
    assert len(set(shown)) == 2
    guest.run(f"echo 0 > {events}/enable; echo > {TRACING}/trace")


def test_histograms_and_the_end(guest: lab_guest.Guest, shop: Shop):
    events = f"{TRACING}/events/user_events"
    guest.run(f"echo 'hist:keys=count:vals=delta' > {events}/shop_order_placed/trigger")
    assert shop.ask("fire 1") == "fired 0"
    assert shop.ask("fire 1") == "fired 0"
    shown = guest.read(f"{events}/shop_order_placed/hist")
    assert "Hits: 10" in shown
    guest.run(f"echo '!hist:keys=count:vals=delta' > {events}/shop_order_placed/trigger")
    assert shop.ask("close") == "closed"
    # The kernel takes them away a moment after the last user has gone.
    guest.run(
        f"for i in $(seq 50); do grep -q shop_ {TRACING}/available_events || exit 0; sleep 0.1; done; ps; false"
    )
    assert guest.run(f"ls -d {events}/shop_*", check=False).status != 0
    assert shop.ask("fire 1") == "fired 0"
