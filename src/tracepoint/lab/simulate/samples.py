"""Sample values for the inputs of an event: they fit the type, look sensible, never change.

A value depends only on the event, the input's text and the number of the record, so two runs show
the same.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.lab.simulate.hints import FieldHint
from tracepoint.source.types import IntType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tracepoint.assign.values import Input
    from tracepoint.lab.simulate.inputs import Given

COMM = "worker"
_LAST_NAME = re.compile(r"([A-Za-z_]\w*)(?:\[[^\]]*\])*(?:\([^()]*\))?\W*$")
_NAMES = re.compile(r"[A-Za-z_]\w*")
NO_HINT = FieldHint()


@dataclass(frozen=True, slots=True)
class Task:
    """The task that the trace line names: its command, pid and cpu."""

    comm: str
    pid: int
    cpu: int


def task_of(event_name: str, index: int) -> Task:
    """Return the task that fires record number `index` (from 0) of an event.

    >>> task_of("sched:sched_switch", 0).comm
    'worker-1'
    """
    number = _hash(event_name, "task", index)
    return Task(f"{COMM}-{index + 1}", 1000 + number % 9000, number % 4)


def _hash(event_name: str, text: str, index: int) -> int:
    return zlib.crc32(f"{event_name}|{text}|{index}".encode("utf-8", "surrogateescape"))


@dataclass(frozen=True, slots=True)
class Sampler:
    """Makes the samples of one record of one event.

    `hints` are those of its print format, `long_size` is 4 or 8 bytes, `index` the number of the
    record from 0.
    """

    event_name: str
    hints: Mapping[str, FieldHint]
    long_size: int = 8
    is_big_endian: bool = False
    index: int = 0

    def sample(self, input_: Input) -> Given:
        """Return a value for an input."""
        number = _hash(self.event_name, input_.text, self.index)
        task = task_of(self.event_name, self.index)
        if input_.text in ("current->comm", "current->pid", "current->tgid"):
            return task.comm if input_.text == "current->comm" else task.pid
        if input_.text in ("smp_processor_id()", "raw_smp_processor_id()"):
            return task.cpu
        makers = {"string": self._string, "bytes": self._bytes, "pointer": self._pointer, "length": _length}
        return makers.get(input_.role, self._int)(input_, number)

    def _hint(self, input_: Input) -> FieldHint:
        return self.hints.get(input_.field, NO_HINT)

    def _string(self, input_: Input, number: int) -> str:
        words = _words(input_)
        for pattern, make in _STRINGS:
            if pattern.search(words):
                return make(number, self.index)
        names = [n for n in _NAMES.findall(input_.text) if n not in _PLAIN_WORDS]
        stem = names[-1] if names else input_.field or "name"
        stem = stem.removesuffix("_name").removeprefix("get_").strip("_") or "name"
        return f"{stem[:20]}-{self.index + 1}"

    def _bytes(self, input_: Input, number: int) -> Given:
        hint = self._hint(input_).conversion
        if input_.length <= 0 or input_.length > 1 << 16:
            return b""
        if input_.element in (2, 4, 8) and input_.length % input_.element == 0:
            count = input_.length // input_.element
            if "mask" in input_.text or "cpus" in input_.text:
                return [3 if i == 0 else 0 for i in range(count)]
            return [(number >> 8) % 90 + 10 + i for i in range(count)]
        if hint == "s" or _LOOKS_TEXT.search(_words(input_)):
            return self._string(input_, number)[: max(input_.length - 1, 0)]
        return _address_bytes(input_, hint, number)[: input_.length]

    def _pointer(self, input_: Input, number: int) -> int:
        hint = self._hint(input_).conversion
        if hint in ("pS", "ps", "pF", "pf", "pB") or _TEXT_ADDRESS.search(_words(input_)):
            return self.text_address(number)
        return self.data_address(number)

    def text_address(self, number: int) -> int:
        """Return an address where kernel code could be."""
        base = 0xFFFF_FFFF_8100_0000 if self.long_size == 8 else 0xC010_0000
        return base + (number & 0xFFFFF0)

    def data_address(self, number: int) -> int:
        """Return an address where kernel data could be."""
        if self.long_size == 8:
            return 0xFFFF_8880_0000_0000 + ((number & 0xFFFFFF) << 6)
        return 0xC200_0000 + ((number & 0x3FFFF) << 6)

    def _int(self, input_: Input, number: int) -> int:
        size = input_.size or 8
        kind = IntType(size, input_.is_signed)
        value = self._plain_int(input_, number, kind)
        if input_.is_swapped and size in (2, 4, 8):
            raw = (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")
            value = kind.wrap(int.from_bytes(raw, "big"))
        return _fit(value, kind)

    def _plain_int(self, input_: Input, number: int, kind: IntType) -> int:
        hint = self._hint(input_)
        choices = [v for v in hint.values if kind.wrap(v) == v]
        if choices:
            return choices[number % len(choices)]
        bits = [v for v in hint.bits if v > 0 and kind.wrap(v) == v]
        if bits:
            return bits[number % len(bits)]
        if input_.ctype in ("bool", "_Bool"):
            return number & 1
        if input_.role == "index":
            return number % 2
        return self._by_name(input_, number, kind)

    def _by_name(self, input_: Input, number: int, kind: IntType) -> int:
        words = _words(input_)
        if input_.role == "condition":
            return 0 if _ERROR.search(words) else 1
        if kind.size == self.long_size and _TEXT_ADDRESS.search(words):
            return self.text_address(number)
        if kind.size == self.long_size and _DATA_ADDRESS.search(words):
            return self.data_address(number)
        made = next((make for pattern, make in _INTEGERS if pattern.search(words)), None)
        return made(number, self.index) if made is not None else 1 + number % 100


def _fit(value: int, kind: IntType) -> int:
    """Bring a sample into the range of its type without making it negative or zero by accident."""
    top = (1 << (8 * kind.size - kind.is_signed)) - 1
    if value > top:
        # The result of a byte-order conversion may be negative in a signed type.
        return kind.wrap(value) if value < 1 << 8 * kind.size else value % (top + 1)
    return value


def _words(input_: Input) -> str:
    """Return what names the value: the last name of the input, the field, the type."""
    match = _LAST_NAME.search(input_.text)
    last = match[1] if match else input_.text[-40:]
    return f"{last} {input_.field} {input_.ctype}".lower()


def _length(input_: Input, number: int) -> int:
    words = _words(input_)
    if input_.text.startswith("sizeof"):
        return 2
    if "nr_cpu" in words or "cpumask" in words or "possible_cpus" in words:
        return 4
    if "addrlen" in words or "salen" in words or "sockaddr" in words:
        return 16
    return 4 + number % 3


def _address_bytes(input_: Input, hint: str, number: int) -> bytes:
    low = number & 0xFF
    if input_.length == 6 or hint.startswith(("pM", "pm")):
        return bytes((0x52, 0x54, 0x00, 0x12, 0x34, low))
    if input_.length in (16, 28, 128) and ("sockaddr" in input_.ctype or hint.startswith("pIS")):
        family = (2).to_bytes(2, "little")
        return (family + b"\x1f\x90" + bytes((192, 0, 2, low or 1))).ljust(input_.length, b"\0")
    if input_.length == 16 and (hint.startswith(("pI6", "pi6")) or "addr" in input_.text):
        return bytes.fromhex("20010db8") + bytes(11) + bytes((low or 1,))
    if input_.length == 4 and (hint.startswith(("pI4", "pi4")) or "addr" in input_.text):
        return bytes((192, 0, 2, low or 1))
    return bytes((low + 17 * i) & 0xFF for i in range(min(input_.length, 4096)))


def _pattern(*words: str) -> re.Pattern[str]:
    return re.compile("|".join(rf"(?:\b|_)(?:{word})(?:\b|_|\d)" for word in words))


_PLAIN_WORDS = frozenset(
    [
        "name",
        "comm",
        "current",
        "page",
        "folio",
        "struct",
        "const",
        "char",
        "get",
        "id",
        "str",
        "string",
        "dname",
        "dev_name",
        "to_dev",
    ]
)
_ERROR = re.compile(
    _pattern("err", "error", "ret", "retval", "result", "status", "errno").pattern + r"|\brc\b"
)
_TEXT_ADDRESS = _pattern(
    "ip", "fn", "func", "function", "caller", "callsite", "call_site", "rip", "pc", "callback"
)
_DATA_ADDRESS = _pattern("ptr", "addr", "address", "vaddr", "hva", "va")
_LOOKS_TEXT = _pattern(
    "comm", "name", "rwbs", "str", "string", "text", "msg", "path", "label", "driver", "dname"
)

_STRINGS: tuple[tuple[re.Pattern[str], Callable[[int, int], str]], ...] = (
    (_pattern("comm", "cmdline"), lambda n, i: f"{COMM}-{i + 2 + n % 7}"),
    (_pattern("rwbs"), lambda n, _i: ("R", "W", "WS", "RA", "RM")[n % 5]),
    (_pattern("disk_name", "bdev", "disk"), lambda n, _i: f"sd{'abcd'[n % 4]}"),
    (_pattern("netdev", "ifname", "net_device", "dev_name", "qdisc_dev"), lambda n, _i: f"eth{n % 2}"),
    (_pattern("path", "filename", "file", "pathname"), lambda n, _i: f"/var/log/sample-{n % 9 + 1}.log"),
    (_pattern("addr", "address", "saddr", "daddr", "servername"), lambda n, _i: f"192.0.2.{n % 200 + 1}"),
    (_pattern("port"), lambda n, _i: str(8000 + n % 100)),
    (_pattern("driver", "drv"), lambda n, _i: ("e1000e", "nvme", "ahci")[n % 3]),
    (_pattern("msg", "fmt", "text", "reason", "message"), lambda n, _i: f"sample message {n % 9 + 1}"),
)
_INTEGERS: tuple[tuple[re.Pattern[str], Callable[[int, int], int]], ...] = (
    (_pattern("pid", "tid", "tgid", "ppid", "pid_t"), lambda n, _i: 1000 + n % 9000),
    (_ERROR, lambda _n, _i: 0),
    (_pattern("cpu", "cpuid", "nid", "node", "preferred_node"), lambda n, _i: n % 4),
    (_pattern("prio", "priority", "oldprio", "newprio"), lambda _n, _i: 120),
    (_pattern("pfn", "page_to_pfn", "folio_pfn"), lambda n, _i: 0x1000 + n % 0x40000),
    (_pattern("dev", "dev_t", "s_dev", "bio_dev", "disk_devt", "bd_dev"), lambda n, _i: 8 << 20 | n % 4),
    (_pattern("gfp", "gfp_t", "gfp_flags", "gfp_mask"), lambda _n, _i: 0xCC0),
    (_pattern("mode", "umode_t", "i_mode"), lambda _n, _i: 0o100644),
    (_pattern("ino", "i_ino", "inode", "ino_t"), lambda n, _i: 12 + n % 60000),
    (_pattern("size", "bytes", "len", "length", "nbytes", "total"), lambda n, _i: 4096 * (1 + n % 4)),
    (_pattern("sector", "sector_t", "block", "lba", "pos", "offset"), lambda n, _i: 8 * (n % 100000)),
    (_pattern("family", "sin_family", "skc_family", "sk_family"), lambda _n, _i: 2),
    (_pattern("sport", "dport", "port"), lambda n, _i: 1024 + n % 30000),
    (_pattern("order"), lambda n, _i: n % 4),
    (_pattern("irq", "vector", "vec"), lambda n, _i: 16 + n % 32),
    (
        _pattern("expires", "when", "jiffies", "now", "ktime", "ktime_t", "time", "stamp", "timestamp", "ns"),
        lambda n, i: 4_294_000_000 + n % 100_000 + 250 * i,
    ),
    (
        _pattern("delta", "latency", "delay", "runtime", "usecs", "us", "ms", "msecs", "duration", "period"),
        lambda n, _i: 100 + n % 9900,
    ),
    (_pattern("flags", "flag", "mask", "fl_flags"), lambda n, _i: 1 << n % 4),
    (_pattern("saddr", "daddr", "ip4"), lambda n, _i: 0x0200C0 | (n % 200 + 1) << 24),
    (_pattern("count", "nr", "num", "index", "idx", "id"), lambda n, _i: 1 + n % 20),
    (_pattern("state", "type", "op", "cmd", "kind", "event"), lambda n, _i: 1 + n % 3),
    (_pattern("is", "has", "bool"), lambda n, _i: n & 1),
)
