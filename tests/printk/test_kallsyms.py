"""Kallsyms: what C splits gives what the twin gives, whatever the text."""

from __future__ import annotations

import random

import pytest

from tracepoint.printk import kallsyms
from tracepoint.printk.kallsyms import Kallsyms

BASE = 0xFFFFFFFF81000000
needs_c = pytest.mark.skipif(kallsyms.DECODE is None, reason="tracepoint._decode is not built")
ODD = (
    "",
    "\n",
    "ffffffff81000000 T\n",
    "ffffffff8100000g T bad\n",
    "ffffffff81000000  T two_spaces\n",
    "ffffffff81000000 TT long_type\n",
    "ffffffff81000000 T with space\n",
    "ffffffff81000000 T caf\u00e9\n",
    "FFFFFFFF81000ABC T upper\n",
    "81000000 T short\n",
    "0000000000000000 A percpu\n",
    "ffffffff81000000 T no_end",
    "ffffffffa0000000 t f\t[mod]\n",
    "ffffffff80000000 T lower\n",
)


def text_of(rng: random.Random) -> str:
    lines = [f"{0x100 * n:016x} A cpu_{n}\n" for n in range(rng.randrange(4))]
    lines += [f"{BASE:016x} T _stext\n"] * rng.randrange(2)
    at = BASE
    for n in range(rng.randrange(40)):
        at += rng.choice((0, 16, 0x40, 0x1000))
        lines.append(f"{at:016x} {rng.choice('tTdDbBrRwW')} {rng.choice('fgh')}{n % 7}\n")
    lines += [f"{at + 0x10000 * n:016x} t m{n}\t[mod]\n" for n in range(rng.randrange(3))]
    for _ in range(rng.randrange(3)):
        lines.insert(rng.randrange(len(lines) + 1), rng.choice(ODD))
    return "".join(lines)


@needs_c
@pytest.mark.parametrize("seed", range(300))
def test_c_splits_as_the_twin_does(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    text = text_of(rng)
    addresses = [0, 0x100, *(BASE + rng.randrange(-0x100, 0x20000) for _ in range(30))]
    names = ["_stext", "f1", "g2", "h6", "cpu_1", "m0", "lower", "upper", "T", ""]

    def answers() -> list[object]:
        found = Kallsyms(text)
        return [
            *map(found.lookup, addresses),
            *map(found.address_of, names),
            *map(found.find, names),
            found.lowest,
        ]

    in_c = answers()
    monkeypatch.setattr(kallsyms, "DECODE", None)
    assert in_c == answers()
