"""C type names: `struct task_struct *`, `unsigned  int`, `char[16]` to a normal form."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CType:
    """A C type without a name.

    `base` is the type below all pointers, qualifiers removed and words in canonical order
    (`unsigned long`, `struct page`, `enum zone_type`, `u32`); `pointers` counts `*`;
    `array` holds the text of each array length, outermost first; `qualifiers` are those of the
    base (`const`, `volatile`, `__user`, `__rcu`, `__iomem`).
    """

    base: str
    pointers: int = 0
    array: tuple[str, ...] = ()
    qualifiers: frozenset[str] = frozenset()

    def __str__(self) -> str:
        words = [*sorted(self.qualifiers), self.base]
        text = " ".join(words)
        if self.pointers:
            text += " " + "*" * self.pointers
        return text + "".join(f"[{length}]" for length in self.array)

    @property
    def is_pointer(self) -> bool:
        """Whether a value of this type is an address."""
        return self.pointers > 0
