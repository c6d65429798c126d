"""A program with events of several kinds of fields, in two threads, mounted on the folder that is given."""

import sys
import threading
import time

from tracepoint.model.python.types import char_array, double, s16, s32, u8, u32, u64
from tracepoint.runtime.declare.event import trace_event
from tracepoint.runtime.remote.mount import mount


@trace_event(system="shop", printk='"order=%llu by %s code=%s left=%d", order_id, customer, code, left')
def order_placed(order_id: u64, customer: str, code: char_array[8], left: s32) -> None: ...


@trace_event(system="shop", printk='"%u %d %s", small, short, sure ? "yes" : "no"')
def order_checked(small: u8, short: s16, sure: bool) -> None: ...


@trace_event(system="shop", printk='"at=%f n=%u", at, n')
def measured(n: u32, at: double) -> None: ...


def fire(start: int) -> None:
    number = start
    while True:
        order_placed(number, f"customer {number % 7}", "ab", -number)
        order_checked(number & 0xFF, -number % 100, number % 2 == 0)
        measured(number & 0xFFFF, number / 4)
        number += 1
        time.sleep(0.004)


if __name__ == "__main__":
    threading.Thread(target=fire, args=(1_000_000,), daemon=True).start()
    with mount(sys.argv[1]):
        fire(0)
