"""A plain reader of ring buffer pages and of the kernel's `trace` text, for comparing both."""

import re
import struct

PAGE = 4096
_LINE = re.compile(r"^ *(?P<comm>.{1,16})-(?P<pid>\d+) +\[(?P<cpu>\d+)\] (?P<flags>\S{4,5}) +(?P<time>\d+\.\d+): (?P<body>.*)")


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
