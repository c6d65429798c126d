"""Strict reading of JSON values: every access says which type it wants and where it is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tracepoint.errors import SourceError
from tracepoint.model.code_text import given_argument, given_code, given_event_name, given_name

if TYPE_CHECKING:
    from tracepoint.model.origin import Code

_INCLUDE = re.compile(r'<[^<>"\n\r]+>\Z|"[^<>"\n\r]+"\Z')
_SYSTEM = re.compile(r"[^\s\"'(){}\[\];,#\\/]*\Z")


class JsonPlace:
    """One JSON object or value, and its path for messages; `finish` refuses members not asked for."""

    def __init__(self, value: object, path: str) -> None:
        self.value = value
        self.path = path
        self._asked: set[str] = set()

    def _get(self, key: str) -> Any:
        if not isinstance(self.value, dict):
            raise SourceError(f"{self.path}: an object is wanted, not {_kind(self.value)}")
        self._asked.add(key)
        return self.value.get(key)

    def has(self, key: str) -> bool:
        """Return whether the object has the member."""
        return self._get(key) is not None

    def is_text(self, key: str) -> bool:
        """Return whether the member is a string."""
        return isinstance(self._get(key), str)

    def member(self, key: str) -> JsonPlace:
        """Return a member that is an object."""
        value = self._get(key)
        if not isinstance(value, dict):
            raise SourceError(f"{self.path}.{key}: an object is wanted, not {_kind(value)}")
        return JsonPlace(value, f"{self.path}.{key}")

    def list(self, key: str, *, optional: bool = False) -> list[JsonPlace]:
        """Return the items of a member that is a list."""
        value = self._get(key)
        if value is None and optional:
            return []
        if not isinstance(value, list):
            raise SourceError(f"{self.path}.{key}: a list is wanted, not {_kind(value)}")
        return [JsonPlace(item, f"{self.path}.{key}[{index}]") for index, item in enumerate(value)]

    def _string(self, key: str, default: str | None = None) -> str:
        value = self._get(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            raise SourceError(f"{self.path}.{key}: a string is wanted, not {_kind(value)}")
        return value

    def text(self, key: str, default: str | None = None) -> str:
        """Return a string that can be a system's name: one word without brackets or quotes."""
        value = self._string(key, default)
        if key != "schema" and not _SYSTEM.match(value):
            raise SourceError(f"{self.path}.{key}: {value!r} is not one word")
        return value

    def flag(self, key: str) -> bool:
        """Return a boolean member; False when it is missing."""
        value = self._get(key)
        if value is None:
            return False
        if not isinstance(value, bool):
            raise SourceError(f"{self.path}.{key}: true or false is wanted, not {_kind(value)}")
        return value

    def choice(self, key: str, allowed: tuple[str, ...]) -> str:
        """Return a string that is one of `allowed`."""
        value = self._string(key)
        if value not in allowed:
            raise SourceError(f"{self.path}.{key}: {value!r} is none of {', '.join(filter(None, allowed))}")
        return value

    def name(self, key: str, *, optional: bool = False) -> str:
        """Return a C identifier; an empty one when `optional`."""
        value = self._string(key, "" if optional else None)
        return value if optional and not value else given_name(value, f"{self.path}.{key}")

    def event_name(self, key: str) -> str:
        """Return the name of an event, class or tracepoint."""
        return given_event_name(self._string(key), f"{self.path}.{key}")

    def code(self, key: str, *, optional: bool = False) -> Code:
        """Return C text; it may be empty."""
        return given_code(self._string(key, "" if optional else None), f"{self.path}.{key}")

    def argument_code(self, key: str) -> Code:
        """Return the C text of one macro argument."""
        return given_argument(self._string(key), f"{self.path}.{key}")

    def argument(self, key: str, default: str | None = None) -> str:
        """Return the text of one macro argument; empty only when that is the default."""
        value = self._string(key, default)
        return value if not value and default == "" else given_argument(value, f"{self.path}.{key}").text

    def argument_text(self) -> str:
        """Return this value, the text of one macro argument."""
        if not isinstance(self.value, str):
            raise SourceError(f"{self.path}: a string is wanted, not {_kind(self.value)}")
        return given_argument(self.value, self.path).text

    def include(self) -> str:
        """Return this value, an included file's name with its brackets or quotes."""
        if not isinstance(self.value, str) or not _INCLUDE.match(self.value):
            raise SourceError(f'{self.path}: <file> or "file" is wanted')
        return self.value

    def finish(self) -> None:
        """Raise SourceError when the object has a member that nothing asked for."""
        unknown = sorted(set(self.value) - self._asked) if isinstance(self.value, dict) else []
        if unknown:
            raise SourceError(f"{self.path}: unknown member {unknown[0]!r}")


def _kind(value: object) -> str:
    match value:
        case None:
            return "nothing"
        case bool():
            return "true or false"
        case dict():
            return "an object"
        case list():
            return "a list"
        case str():
            return "a string"
        case _:
            return "a number"
