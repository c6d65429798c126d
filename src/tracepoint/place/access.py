"""The meaning of `a->b.c`: the types along the way, as far as they are known."""

from __future__ import annotations

import contextlib
import difflib
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tracepoint.place.arguments import INDEX
from tracepoint.source.types import INTEGER_WORDS

if TYPE_CHECKING:
    from tracepoint.place.arguments import Access
    from tracepoint.place.members import Body, StructMember
    from tracepoint.place.structs import Structs

_TAGGED = re.compile(r"(?:const )?(struct|union)(?: (\w+))?(?: ?(\*+))?")
_NAMED = re.compile(r"(?:const )?(\w+)(?: (\*+))?")
#: Nested macros that expand to members.
_MAX_MACROS = 8


@dataclass(frozen=True, slots=True)
class ValueType:
    """The type of something: its C text, the stars in it, the `[]` after its name.

    `body` is the struct or union that was defined with it, if one was.
    """

    type: str
    n_dimensions: int = 0
    body: Body | None = None

    @property
    def n_stars(self) -> int:
        """The number of pointer levels, without arrays."""
        return self.type.count("*")

    @property
    def text(self) -> str:
        """The type of the value when it is passed on: an array becomes a pointer."""
        return f"{self.type}{'' if self.n_stars else ' '}*" if self.n_dimensions else self.type

    def element(self) -> ValueType | None:
        """Return the type of an element, or None when there is none."""
        if self.n_dimensions:
            return replace(self, n_dimensions=self.n_dimensions - 1)
        return replace(self, type=self.type[:-1].rstrip()) if self.n_stars else None


class NoSuchMemberError(Exception):
    """What is wrong with an access; caught where the place in the text is known."""


class Follower:
    """Follows accesses through the structs that a file knows; `notes` say what is not known."""

    def __init__(self, structs: Structs) -> None:
        self._structs = structs
        self.notes: list[str] = []

    def follow(self, access: Access, first: ValueType) -> ValueType | None:
        """Return the type of an access to something of type `first`, None when it is not known.

        Raises NoSuchMemberError for an access that no compiler accepts.
        """
        spelled = access.name
        here: ValueType | None = first
        for step, is_arrow in access.steps:
            if here is None or not here.type:
                return None
            if step == INDEX:
                here = here.element()
                spelled += "[]"
                continue
            here = self._member(spelled, here, step, is_arrow=is_arrow)
            spelled += f"{'->' if is_arrow else '.'}{step}"
        return here

    def _member(self, spelled: str, here: ValueType, member: str, *, is_arrow: bool) -> ValueType | None:
        found = self._struct(here)
        if found is None:
            if not here.n_dimensions and set(here.type.split()) <= INTEGER_WORDS:
                raise NoSuchMemberError(
                    f"`{spelled}` is an integer ({here.type}) and has no member `{member}`"
                )
            return None
        level = found.n_stars + found.n_dimensions
        if level != is_arrow:
            shown = here.type + "[]" * here.n_dimensions
            right = "use `->` for its members" if level == 1 else "use `.` for its members"
            raise NoSuchMemberError(
                f"`{spelled}` is `{shown}`: {right if level < 2 else 'it has no members'}"
            )
        return self._lookup(spelled, found, member, 0)

    def _struct(self, here: ValueType) -> ValueType | None:
        """Return a type with its struct by tag or body, or None when the struct is not known."""
        tagged = _TAGGED.fullmatch(here.type)
        if tagged is not None:
            return here if here.body is not None or tagged[2] else None
        named = _NAMED.fullmatch(here.type)
        if named is None or named[1] in INTEGER_WORDS:
            return None
        target = self._structs.typedef(named[1])
        stars = (named[2] or "") + "*" * target.count("*")
        return ValueType(f"{target.rstrip(' *')} {stars}".strip(), here.n_dimensions) if target else None

    def _lookup(self, spelled: str, here: ValueType, member: str, level: int) -> ValueType | None:
        tagged = _TAGGED.fullmatch(here.type)
        keyword, tag = (tagged[1], tagged[2] or "") if tagged else ("struct", "")
        body, doubt, label = here.body, "", f"{keyword} {tag}" if tag else f"the {keyword} `{spelled}`"
        if body is None:
            found = self._structs.find(keyword, tag)
            if found is None:
                self._note_unknown(label, member)
                return None
            body, doubt = found.body, found.doubt
            label += f" ({found.path})" if found.path != self._structs.path else ""
        doubt = doubt or (body.doubt and f"{body.doubt} in it is not understood")
        if member in body.members:
            return _shape(body.members[member])
        stands_for = self._structs.macro(member)
        if stands_for is not None:
            return self._through_macro(spelled, here, body, stands_for, level)
        if doubt:
            self._note(f"whether {label} has a member `{member}` is not known: {doubt}")
            return None
        close = difflib.get_close_matches(member, body.members, n=1)
        advice = f"; did you mean `{close[0]}`?" if close else ""
        raise NoSuchMemberError(f"{label} has no member `{member}`{advice}")

    def _through_macro(
        self, spelled: str, here: ValueType, body: Body, parts: tuple[str, ...], level: int
    ) -> ValueType | None:
        """Follow `#define sk_prot __sk_common.skc_prot`; the macro's expansion is assumed to be correct."""
        if level >= _MAX_MACROS or not parts or parts[0] not in body.members:
            return None
        at: ValueType | None = replace(here, type=here.type.rstrip(" *"), n_dimensions=0)
        for part in parts:
            found = self._struct(at) if at is not None else None
            if found is None:
                return None
            with contextlib.suppress(NoSuchMemberError):
                at = self._lookup(spelled, found, part, level + 1)
                continue
            return None
        return at

    def _note_unknown(self, label: str, member: str) -> None:
        where = "this file"
        if self._structs.has_headers:
            where = f"{self._structs.path} and what it includes"
        self._note(f"whether {label} has a member `{member}` is not known from {where}")

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def _shape(member: StructMember) -> ValueType:
    return ValueType(member.type, member.n_dimensions, member.body)
