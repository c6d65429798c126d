"""The patches of a mailbox or maildir, as `b4` and `lei` save a series: decoded, and in their order."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.cli.files import read_bytes
from tracepoint.errors import TracepointError
from tracepoint.source.text import decode

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from email.message import Message
    from pathlib import Path

# The line before each message: a sender or a commit, and a time.
_FROM = re.compile(rb"(?:\A|(?<=\n\n)|(?<=\r\n\r\n))From \S[^\n]*\d\d:\d\d[^\n]*\d{4}[^\n]*\n")
_ESCAPED_FROM = re.compile(rb"^>(>*From )", re.MULTILINE)
_TAG = re.compile(r"\[([^][]*)\]")
_NUMBER = re.compile(r"(\d{1,4})/(\d{1,4})\Z")
_VERSION = re.compile(r"[vV](\d{1,4})\Z")
_REPLY = re.compile(r"(?:re|aw|sv|fwd?)\s*:", re.IGNORECASE)
IS_PATCH = re.compile(r"^--- \S[^\n]*\n\+\+\+ \S[^\n]*\n@@ -\d", re.MULTILINE)
_MAX_HEADER = 2000


@dataclass(frozen=True, slots=True)
class _Mail:
    """A patch of a series: `thread` is the id of the first message above it."""

    thread: str
    version: int
    number: int
    total: int
    ident: str
    subject: str
    text: str

    @property
    def name(self) -> str:
        """What findings call it: its subject, and its id where it has one."""
        return f"{self.subject} <{self.ident}>" if self.ident else self.subject


@dataclass(frozen=True, slots=True)
class PatchSeries:
    """The patches of a mailbox as (name, text), in the order in which they apply.

    `missing` names the patches that the subjects count but that are not there.
    """

    patches: tuple[tuple[str, str], ...]
    missing: tuple[str, ...]


def read_mailbox(path: Path) -> PatchSeries:
    """Return the patches of a mailbox (`-` is stdin), of a maildir or of one message.

    Cover letters, replies and what else has no diff are left out, and so are older versions of a series and
    second copies of a message.  Raises TracepointError when no patch is left, OSError for a file that cannot
    be read.
    """
    if path.is_dir():
        files = sorted(p for part in ("cur", "new") for p in (path / part).glob("*") if p.is_file())
        messages: Iterable[bytes] = map(read_bytes, files)
    else:
        messages = _split(read_bytes(path))
    return _in_order([mail for data in messages if (mail := _read(data)) is not None], str(path))


def _split(data: bytes) -> list[bytes]:
    starts = list(_FROM.finditer(data))
    if not starts or data[: starts[0].start()].strip():
        return [data]
    ends = [start.start() for start in starts[1:]] + [len(data)]
    return [_ESCAPED_FROM.sub(rb"\1", data[a.end() : end]) for a, end in zip(starts, ends, strict=True)]


def _read(data: bytes) -> _Mail | None:
    """Return a message's patch, or None for a message that is no patch."""
    from email import message_from_bytes  # noqa: PLC0415 - slow, and only mailboxes need it

    try:
        message = message_from_bytes(data)
        parts = list(message.walk())
    except RecursionError:
        raise TracepointError("a message has parts in parts too deep to read: save its patch alone") from None
    subject = _header(message, "Subject")
    if _REPLY.match(subject):
        return None
    text = "\n".join(filter(IS_PATCH.search, map(_text, parts)))
    if not text:
        return None
    words = [word for tag in _TAG.findall(subject) for word in re.split(r"[\s,]+", tag)]
    numbers = [found for word in words if (found := _NUMBER.match(word))]
    versions = [int(found[1]) for word in words if (found := _VERSION.match(word))]
    number, total = (int(numbers[-1][1]), int(numbers[-1][2])) if numbers else (1, 1)
    if not number:
        return None
    ident = _ident(message, "Message-ID")
    thread = _ident(message, "References") or _ident(message, "In-Reply-To") or ident
    return _Mail(thread, max(versions, default=1), number, total, ident, subject or "a message", text)


def _header(message: Message, name: str) -> str:
    """Return a header as text on one line, whatever its encoding."""
    from email.errors import MessageError  # noqa: PLC0415 - as above
    from email.header import decode_header  # noqa: PLC0415 - as above

    raw = str(message.get(name, ""))[:_MAX_HEADER]
    try:
        parts = decode_header(raw)
    except (MessageError, ValueError):
        parts = [(raw, None)]
    text = "".join(part if isinstance(part, str) else _decoded(part, charset) for part, charset in parts)
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _ident(message: Message, name: str) -> str:
    """Return the first message id of a header, without its brackets; empty for none."""
    found = re.search(r"<([^<>\s]+)>", _header(message, name))
    return found[1] if found else ""


def _text(part: Message) -> str:
    """Return a part as text with LF; empty for one that is not text."""
    if part.is_multipart() or part.get_content_maintype() not in {"text", "application"}:
        return ""
    payload = part.get_payload(decode=True)
    if not isinstance(payload, bytes):
        return ""
    # A transfer encoding keeps the CRLF of the mail, as `git am --quoted-cr=strip` removes it.
    return _decoded(payload, part.get_content_charset()).replace("\r\n", "\n")


def _decoded(data: bytes, charset: str | None) -> str:
    """Return bytes in the character set that a mail names; in UTF-8 for one that is wrong or not known."""
    if charset and charset.lower() not in {"utf-8", "us-ascii", "unknown-8bit"}:
        try:
            return data.decode(charset)
        except (LookupError, ValueError):
            return decode(data)
    return decode(data)


def _in_order(mails: Sequence[_Mail], source: str) -> PatchSeries:
    if not mails:
        raise TracepointError(f"{source}: no patch in it: no message has a unified diff, replies left out")
    newest: dict[str, int] = {}
    for mail in mails:
        newest[mail.thread] = max(newest.get(mail.thread, 0), mail.version)
    by_place: dict[tuple[int, int, str], _Mail] = {}
    places = {thread: place for place, thread in enumerate(newest)}
    for mail in mails:
        if mail.version == newest[mail.thread]:
            key = places[mail.thread], mail.number, mail.ident or mail.subject
            by_place.setdefault(key, mail)
    # sorted() keeps the order of the mailbox among patches of one number.
    kept = [mail for _, mail in sorted(by_place.items(), key=lambda item: item[0][:2])]
    have = {(mail.thread, mail.number) for mail in kept}
    totals = {mail.thread: mail.total for mail in kept}
    missing = [
        f"{number}/{total}"
        for thread, total in totals.items()
        for number in range(1, total + 1)
        if (thread, number) not in have
    ]
    return PatchSeries(tuple((mail.name, mail.text) for mail in kept), tuple(missing))
