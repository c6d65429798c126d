"""What surrounds a record that a filter judges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class RecordContext:
    """What a filter may ask for beside the record: the CPU's number and the running task's name.

    `read_string` returns the NUL-terminated string at an address, or None when it cannot be read;
    its second argument says whether it is a user address.
    """

    cpu: int = 0
    comm: bytes = b""
    read_string: Callable[[int, bool], bytes | None] = lambda _address, _is_user: None


NO_CONTEXT = RecordContext()
