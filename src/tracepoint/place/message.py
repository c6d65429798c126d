"""The text of a patch: subject, what is recorded and where, what it costs, and the mail around it."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.errors import PlaceError
from tracepoint.model.write import declare_param
from tracepoint.place.insert import Where
from tracepoint.place.patch import diffstat, write_diff

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tracepoint.model.event import Event
    from tracepoint.model.field import Field
    from tracepoint.place.patch import FileChange

COLUMNS = 75
_MAX_SUBJECT = 200
#: The maximum length of a place; longer ones are statements of several lines.
_MAX_PLACE = 100
_ZERO_COMMIT = "0" * 40
#: git's fixed date, which identifies a mailbox of patches.
_MAGIC_DATE = "Mon Sep 17 00:00:00 2001"
# Lines that git mailinfo would mistake for the end of the message, a header, or the next mail.
_SPECIAL = re.compile(
    r"---|diff |Index: |>?From |(?:From|Subject|Date|Content-\w+|In-Reply-To): ?|-- ?$|.*>8"
)
_PLACEHOLDER = re.compile(
    r"\W*(?:todo|tbd|fixme|xxx|placeholder|fill (?:this |me )?in|reason goes here)\b", re.IGNORECASE
)
_ADDRESS = re.compile(r"[^\s<>@\"(),;:]+@[^\s<>@\"(),;:]+\Z")


@dataclass(frozen=True, slots=True)
class Author:
    """Who sends the patch, and when: `date` is in RFC 2822 format.

    `is_signed` adds Signed-off-by.
    """

    name: str
    email: str
    date: str
    is_signed: bool = True

    def __post_init__(self) -> None:
        if not self.name.strip() or not self.name.isprintable() or set(self.name) & set("<>"):
            raise PlaceError(f"{self.name!r} is not a valid author name")
        if not _ADDRESS.match(self.email):
            raise PlaceError(f"{self.email!r} is not a valid mail address")
        if not self.date or not self.date.isprintable():
            raise PlaceError(f"{self.date!r} is not a valid date")


@dataclass(frozen=True, slots=True)
class Fired:
    """Where an event fires: the function, its file, and the place in it.

    `statement` is the text before or after the call; `is_guarded` says whether there is an
    `if (trace_x_enabled())`.
    """

    event: str
    function: str
    path: str
    where: Where
    statement: str = ""
    is_guarded: bool = False

    @property
    def place(self) -> str:
        """Where in the function."""
        match self.where:
            case Where.ENTRY:
                return "at its entry"
            case Where.RETURNS:
                return "before it returns"
        return f"{self.where} {self.statement}" if self.statement else "in the middle"


@dataclass(frozen=True, slots=True)
class Message:
    """A commit message: `subject` without `[PATCH]`, `body` without the subject."""

    subject: str
    body: str


def check_why(why: str) -> str:
    """Return the reason for a patch, tidied; raises PlaceError when there is none.

    >>> check_why("Nobody sees  what is swapped. ")
    'Nobody sees  what is swapped.'
    """
    text = why.replace("\r\n", "\n").strip()
    # A single word is not a reason.
    if len(re.findall(r"\w+", text)) < 2 or _PLACEHOLDER.match(text):
        raise PlaceError("say why the kernel needs this: a commit message without a reason is not accepted")
    if any(not c.isprintable() and c not in "\n\t" for c in text) or len(text) > 20_000:
        raise PlaceError("the reason of the patch is not plain text")
    return text


def write_message(
    subject: str, why: str, events: Sequence[Event], fired: Sequence[Fired], header: str = ""
) -> Message:
    """Return the message: why, what the new events record, where they fire, what that costs.

    `header` is the file that declares the new events.
    """
    if len(subject) > _MAX_SUBJECT or not subject.isprintable() or not subject.strip():
        raise PlaceError(f"{subject[:80]!r} is not a subject for a patch: it must be one line of text")
    parts = [wrap(why)]
    if events:
        some = "event" if len(events) == 1 else "events"
        parts.append(wrap(f"Declare the trace {some} in {header}. What is recorded:"))
        parts.append("\n".join(line for event in events for line in _recorded(event)))
    if fired:
        parts.append("Where " + ("it fires:" if len({f.event for f in fired}) == 1 else "they fire:"))
        parts.append("\n".join(_firing(fired)))
        parts.append(wrap(_cost(fired)))
    return Message(subject.strip(), "\n\n".join(parts) + "\n")


def wrap(text: str) -> str:
    r"""Return paragraphs wrapped for a commit message, without anything that git would misread.

    >>> wrap("--- a\nb")
    ' --- a b'
    """
    paragraphs = []
    for paragraph in re.split(r"\n\s*\n", text):
        lines = paragraph.split("\n")
        if all(line[:1].isspace() or not line for line in lines):
            wrapped = [line.rstrip() for line in lines]  # an example, a table
        else:
            wrapped = textwrap.wrap(
                " ".join(paragraph.split()), COLUMNS, break_long_words=False, break_on_hyphens=False
            )
        paragraphs.append("\n".join(" " + line if _SPECIAL.match(line) else line for line in wrapped))
    return "\n\n".join(paragraphs)


def _recorded(event: Event) -> Iterator[str]:
    if not event.fields:
        yield f"  {event.full_name}: nothing but its occurrence"
        return
    yield f"  {event.full_name}"
    line = "   "
    for field in event.fields:
        word = _field_text(field) + ("," if field is not event.fields[-1] else "")
        if len(line) + 1 + len(word) > COLUMNS and line.strip():
            yield line
            line = "   "
        line += f" {word}"
    yield line


def _field_text(field: Field) -> str:
    match field.kind.removeprefix("rel_"):
        case "string" | "vstring" | "string_len":
            return f"string {field.name}"
        case "bitmask" | "cpumask" | "sockaddr" as kind:
            return f"{kind} {field.name}"
        case "dynamic_array":
            return f"{declare_param(field.ctype, field.name)}[]"
        case "array":
            return f"{declare_param(field.ctype, field.name)}[{getattr(field, 'length', '')}]"
    return declare_param(field.ctype, field.name)


def _firing(fired: Iterable[Fired]) -> Iterator[str]:
    """Yield files with their functions, and the events that fire there."""
    functions: dict[str, dict[str, list[str]]] = {}
    for one in fired:
        place = one.place if len(one.place) <= _MAX_PLACE else one.place[:_MAX_PLACE].rstrip() + "..."
        functions.setdefault(one.path, {}).setdefault(one.function, []).append(f"{one.event} {place}")
    for path, named in functions.items():
        yield f"  {path}"
        for function, fired_at in named.items():
            places = [*(place.removesuffix(";") for place in fired_at[:-1]), fired_at[-1]]
            text = f"{function}(): {', '.join(places)}"
            yield from textwrap.wrap(
                text,
                COLUMNS,
                initial_indent=" " * 4,
                subsequent_indent=" " * 6,
                break_long_words=False,
                break_on_hyphens=False,
            )


def _cost(fired: Sequence[Fired]) -> str:
    text = "While an event is off, each of its calls is a patched-out branch (a static key)"
    guarded = sorted({f"trace_{one.event}_enabled()" for one in fired if one.is_guarded})
    if guarded:
        return f"{text}, and computing its arguments is guarded by {', '.join(guarded)}."
    return f"{text}."


def make_subject(prefix: str, names: Sequence[str], *, are_new: bool) -> str:
    """Return a subject for a patch that adds events, or calls of them.

    >>> make_subject("mm", ["swap_in"], are_new=True)
    'mm: add the trace event swap_in'
    """
    head = f"{prefix}: {'add' if are_new else 'call'} the trace event{'s' if len(names) > 1 else ''} "
    listed = " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]
    if len(head) + len(listed) > COLUMNS:
        listed = f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else names[0]
    return head + listed


def write_mail(
    message: Message,
    author: Author,
    changes: Sequence[FileChange],
    *,
    number: int = 1,
    total: int = 1,
    generator: str = "tracepoint",
    notes: str = "",
    trailers: str = "",
) -> str:
    """Return a patch in the format of `git format-patch`, for `git am`.

    `trailers` are lines before Signed-off-by; `notes` go where `git am` ignores them, before the
    list of changed files.
    """
    tag = "PATCH" if total == 1 else f"PATCH {number:0{len(str(total))}}/{total}"
    body = message.body
    signed = f"Signed-off-by: {author.name} <{author.email}>\n" if author.is_signed else ""
    if trailers or signed:
        body += f"\n{trailers}{signed}"
    lines = _mail_headers(f"[{tag}] {message.subject}", body, author)
    below = f"{notes}\n\n" if notes else ""
    return f"{lines}\n{body}---\n{below}{diffstat(changes)}\n{write_diff(changes)}-- \n{generator}\n\n"


def write_cover(
    message: Message,
    author: Author,
    patches: Sequence[Message],
    changes: Sequence[FileChange],
    *,
    generator: str = "tracepoint",
) -> str:
    """Return the cover letter of a series: its reason, its patches, its total diffstat."""
    total = len(patches)
    width = len(str(total))
    listed = "\n".join(f"  {patch.subject}" for patch in patches)
    tag = f"PATCH {0:0{width}}/{total}"
    body = f"{message.body}\n{author.name} ({total}):\n{listed}\n"
    headers = _mail_headers(f"[{tag}] {message.subject}", body, author)
    return f"{headers}\n{body}\n{diffstat(changes)}\n-- \n{generator}\n\n"


def _mail_headers(subject: str, body: str, author: Author) -> str:
    lines = [
        f"From {_ZERO_COMMIT} {_MAGIC_DATE}",
        f"From: {_encoded_name(author.name)} <{author.email}>",
        f"Date: {author.date}",
        f"Subject: {_encoded(subject, 'Subject')}",
    ]
    if not body.isascii() or not subject.isascii():
        lines += [
            "MIME-Version: 1.0",
            "Content-Type: text/plain; charset=UTF-8",
            "Content-Transfer-Encoding: 8bit",
        ]
    return "\n".join(lines) + "\n"


def _encoded_name(name: str) -> str:
    if not name.isascii():
        return _encoded(name, "From")
    return f'"{name}"' if re.search(r"[^\w !#$%&'*+/=?^`{|}~-]", name) else name


def _encoded(text: str, header: str) -> str:
    if text.isascii():
        return text if len(text) < _MAX_SUBJECT else text[:_MAX_SUBJECT]
    from email.charset import QP, Charset  # noqa: PLC0415 - slow, and few names need it
    from email.header import Header  # noqa: PLC0415

    charset = Charset("utf-8")
    charset.header_encoding = QP
    return Header(text, charset, 76, header).encode()


def names_of(events: Iterable[Event]) -> list[str]:
    """Return the names of events without their systems."""
    return [event.name for event in events]
