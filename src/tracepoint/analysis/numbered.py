"""Numbers for words, keys and regions, so that rows have a number in place of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

Thing = TypeVar("Thing")


class Numbered(dict[Thing, int]):
    """The number of each thing, which it gets when it is looked up first; `all` has the things by number.

    >>> words = Numbered([""])
    >>> words["R"], words["W"], words["R"], words.all
    (1, 2, 1, ['', 'R', 'W'])
    """

    def __init__(self, things: Iterable[Thing] = ()) -> None:
        super().__init__()
        self.all: list[Thing] = []
        for thing in things:
            self[thing]

    def __missing__(self, thing: Thing) -> int:
        number = self[thing] = len(self.all)
        self.all.append(thing)
        return number
