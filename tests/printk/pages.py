"""A plain reader of ring buffer pages and of the kernel's `trace` text, for comparing both."""

import re
import struct

PAGE = 4096
_LINE = re.compile(
    r"^ *(?P<comm>.{1,16})-(?P<pid>\d+) +(?:\(.{7}\) )?\[(?P<cpu>\d+)\] (?P<flags>\S{4,5}) +(?P<time>\d+\.\d+): (?P<body>.*)"
)


def records(data):
    """Yield (timestamp, record bytes) of whole pages."""
    for at in range(0, len(data), PAGE):
        page = data[at : at + PAGE]
        stamp, commit = struct.unpack_from("<QQ", page)
        size = commit & 0xFFFFF
        pos, end = 16, 16 + size
        while pos < end:
            (head,) = struct.unpack_from("<I", page, pos)
            kind, delta = head & 31, head >> 5
            if kind <= 28:
                if kind:
                    start, length = pos + 4, 4 * kind
                    pos = start + length
                else:
                    (length,) = struct.unpack_from("<I", page, pos + 4)
                    start, length = pos + 8, length - 4
                    pos = pos + 4 + ((length + 4 + 3) & ~3)
                stamp += delta
                yield stamp, page[start : start + length]
            elif kind == 29:
                if delta == 0:
                    break
                (length,) = struct.unpack_from("<I", page, pos + 4)
                pos += 4 + length
                stamp += delta
            else:
                (high,) = struct.unpack_from("<I", page, pos + 4)
                value = (high << 27) + delta
                stamp = stamp + value if kind == 30 else (stamp & (0x1F << 59)) | value
                pos += 8


def lines(text):
    """Return cpu -> list of bodies of a `trace` text, continuation lines joined."""
    bodies = {}
    last = None
    for line in text.split("\n"):
        match = _LINE.match(line)
        if match:
            last = bodies.setdefault(int(match["cpu"]), [])
            last.append(match["body"])
        elif last is not None and not line.startswith(("CPU:", "#####", "# ")):
            last[-1] += "\n" + line
    return bodies


class V6:
    """The parts of a trace.dat of version 6, little endian, that rendering needs."""

    def __init__(self, data):
        self.data = data
        self.at = data.index(b"header_page\0")
        self.cstring()
        self.sized("<Q")
        self.cstring()
        self.sized("<Q")
        self.formats = [("ftrace", self.sized("<Q")) for _ in range(self.number("<I"))]
        for _ in range(self.number("<I")):
            system = self.cstring()
            self.formats += [(system, self.sized("<Q")) for _ in range(self.number("<I"))]
        self.kallsyms = self.sized("<I")
        self.printk_formats = self.sized("<I")
        self.comms = self.sized("<Q")
        n_cpus = self.number("<I")
        while (tag := self.take(10)) != b"flyrecord\0":
            assert tag == b"options  \0", tag
            while self.number("<H"):
                self.sized("<I")
        places = [(self.number("<Q"), self.number("<Q")) for _ in range(n_cpus)]
        self.cpus = [data[start : start + size] for start, size in places]

    def take(self, size):
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, code):
        return struct.unpack(code, self.take(struct.calcsize(code)))[0]

    def sized(self, code):
        return self.take(self.number(code)).decode("utf-8", "surrogateescape")

    def cstring(self):
        end = self.data.index(b"\0", self.at)
        text = self.data[self.at : end].decode()
        self.at = end + 1
        return text
