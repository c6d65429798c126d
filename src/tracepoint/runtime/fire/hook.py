"""Tracepoints without a record, as DECLARE_TRACE makes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tracepoint.runtime.declare.event_help import FUNCTION_NAMES, hook_doc, identity_without
from tracepoint.runtime.fire.probes import Probes, Registration
from tracepoint.wording import one_line

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class HookControl:
    """A tracepoint without a record: probes and nothing else."""

    name: str
    where: str
    parameters: tuple[str, ...]
    declared: object
    tracepoint: Any = None
    probes: Probes = field(init=False)

    def __post_init__(self) -> None:
        identity = identity_without(self.name, self.parameters)
        identity.show_in(self, hook_doc(self.name, identity.usage()))
        self.probes = Probes(self.name, self.parameters, {}, self._apply)

    def _apply(self, entries: tuple[tuple[Any, ...], ...]) -> None:
        self.tracepoint.set_entries(entries)

    def __repr__(self) -> str:
        return f"<tracepoint {one_line(self.name)}>"

    def __dir__(self) -> list[str]:
        return ["register", *FUNCTION_NAMES]

    def register(self, probe: Callable[..., object], **options: Any) -> Registration:
        """Call a probe whenever the tracepoint fires; see `Probes.register`."""
        return self.probes.register(probe, **options)
