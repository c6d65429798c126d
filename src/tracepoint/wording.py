"""Words for numbers, and texts in one short line: what messages and `repr()` are made of."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

LONGEST = 80
# What json.dumps() makes of a byte that is not UTF-8, and of half of some characters.
_ESCAPED = "\\udc"
# What 64 bits of ns hold.
MAX_TRACE_SECONDS = 1 << 33


def counted(n: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "finding"), counted(0, "header")
    ('1 finding', '0 headers')
    """
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def size_text(n_bytes: float) -> str:
    """Return a number of bytes with its unit.

    >>> size_text(1), size_text(4096), size_text(5 << 29)
    ('1 byte', '4.0 KiB', '2.5 GiB')
    """
    power = min(max(int(n_bytes).bit_length() - 1, 0) // 10, 3)
    unit = ("bytes", "KiB", "MiB", "GiB")[power]
    return f"{n_bytes / (1 << 10 * power):.1f} {unit}" if power else counted(round(n_bytes), "byte")


def utf8(text: str) -> bytes:
    r"""Return a text as valid UTF-8: what was not UTF-8 where it was read, now surrogates, becomes U+FFFD.

    >>> utf8("caf\udce9").decode()
    'caf\ufffd'
    """
    data = text.encode("utf-8", "surrogateescape")
    return data if text.isascii() else data.decode("utf-8", "replace").encode()


def json_line(data: object, separators: tuple[str, str] = (",", ":")) -> str:
    r"""Return a value as JSON on one line, in ASCII that stands for valid UTF-8, as `utf8` makes it.

    Bytes are hexadecimal; NaN and infinity, which JSON does not have, are null.  `separators` stand after a
    value and after a key, as `json.dumps` takes them.

    >>> json_line({"comm": "caf\udce9"}) == r'{"comm":"caf\ufffd"}'
    True
    >>> json_line([float("nan"), b"\0\xff"])
    '[null,"00ff"]'
    """
    import json  # noqa: PLC0415 - messages, which all commands have, need none of it

    try:
        line = json.dumps(data, separators=separators, default=_json_text, allow_nan=False)
    except ValueError:
        data = _finite(data)
        line = json.dumps(data, separators=separators, default=_json_text)
    if _ESCAPED in line:
        valid = json.loads(utf8(json.dumps(data, ensure_ascii=False, default=_json_text)))
        line = json.dumps(valid, separators=separators)
    return line


def _json_text(value: object) -> str:
    return bytes(value).hex() if isinstance(value, (bytes, bytearray, memoryview)) else str(value)


def _finite(data: object) -> object:
    """Return a value for JSON with None in place of NaN and infinity."""
    if isinstance(data, float):
        return data if data - data == 0 else None
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    return [_finite(value) for value in data] if isinstance(data, (list, tuple)) else data


def visible(text: str) -> str:
    r"""Return a text with escapes for what a terminal would act on, or cannot show.

    >>> visible("sh\x1b[1m\udcff")
    'sh\\x1b[1m\\xff'
    """
    return text if text.isprintable() else "".join(map(_visible, text))


def _visible(char: str) -> str:
    # What surrogateescape makes of a byte that is not UTF-8.
    if "\udc80" <= char <= "\udcff":
        return f"\\x{ord(char) - 0xDC00:02x}"
    return char if char.isprintable() else char.encode("unicode_escape").decode()


def one_line(text: str, longest: int = LONGEST) -> str:
    r"""Return a text in one line, the end cut when it is longer than that.

    >>> one_line("two\n lines"), one_line("12345678", 6)
    ('two lines', '123...')
    """
    short = " ".join(text[: longest * 8].split())
    return short if len(short) <= longest else f"{short[: longest - 3]}..."


def tail(path: str, longest: int = LONGEST) -> str:
    """Return the end of a path, which says most of it.

    >>> tail("include/trace/events/sched.h", 14)
    '...nts/sched.h'
    """
    return path if len(path) <= longest else f"...{path[3 - longest :]}"


def no_such(what: str, name: str, known: Iterable[str], most: int = 1 << 30) -> str:
    """Return that a name is unknown, with the one that was meant, or all if there are at most that many.

    >>> no_such("key", "hots", ["host", "comm"]), no_such("key", "cpu", ["host", "comm"])
    ("no key 'hots'; did you mean 'host'?", "no key 'cpu'; there are: host, comm")
    """
    import difflib  # noqa: PLC0415 - where something went wrong

    names = list(known)
    close = difflib.get_close_matches(name, names, 1)
    if not close and len(names) > most:
        return f"no {what} {name!r}"
    return f"no {what} {name!r}; " + (
        f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(names)}"
    )


def read_seconds(text: str) -> int | None:
    """Return a time of a trace in seconds as ns, exactly; None where it is none.

    >>> read_seconds("10.629676474"), read_seconds("nan")
    (10629676474, None)
    """
    from decimal import Decimal, InvalidOperation  # noqa: PLC0415 - most commands have no times

    try:
        # Of Python's own are 1_0 and the digits of other scripts.
        number = Decimal(text if text.isascii() and "_" not in text else "")
    except InvalidOperation:
        return None
    is_time = number.is_finite() and abs(number) <= MAX_TRACE_SECONDS
    return int(number.scaleb(9)) if is_time else None


def html_table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table for a notebook.

    >>> html_table(["a"], [["<b>"]])
    '<table><tr><th>a</th></tr><tr><td>&lt;b&gt;</td></tr></table>'
    """
    from html import escape  # noqa: PLC0415 - brings the names of all characters

    lines = [("th", heads), *(("td", row) for row in rows)]
    cells = ("".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in line) for tag, line in lines)
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"


def text_table(rows: Sequence[Sequence[str]], lefts: Container[int] = ()) -> Iterator[str]:
    """Yield rows with their cells in columns, at least two spaces apart; those in `lefts` begin at the left.

    >>> list(text_table([["cpu", "busy"], ["0", "98.5 %"], ["12", "7 %"]]))
    ['cpu    busy', '  0  98.5 %', ' 12     7 %']
    """
    rows = [[visible(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = zip(row, widths, strict=True)
        line = (cell.ljust(n) if at in lefts else cell.rjust(n) for at, (cell, n) in enumerate(cells))
        yield "  ".join(line).rstrip()
