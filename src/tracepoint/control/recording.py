"""Where a recording may go, and what it tells about itself when it is done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.errors import TracepointError

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class CpuStats:
    """What one CPU recorded: pages and records saved, and events lost to a full ring buffer.

    `overrun` counts those overwritten before they were read (with those of `commit overrun`),
    `dropped` those not written while the option `overwrite` is off.
    """

    cpu: int
    n_pages: int
    n_records: int
    overrun: int
    dropped: int


@dataclass(frozen=True, slots=True)
class Recording:
    """A trace.dat that was written, with the sums over its CPUs.

    `is_cut` says that what was recorded ended meanwhile: what was not read until then is in no count.
    """

    path: Path
    cpus: tuple[CpuStats, ...]
    is_cut: bool = False

    @property
    def n_records(self) -> int:
        """The records in the file."""
        return sum(cpu.n_records for cpu in self.cpus)

    @property
    def overrun(self) -> int:
        """The events overwritten before they could be read."""
        return sum(cpu.overrun for cpu in self.cpus)

    @property
    def dropped(self) -> int:
        """The events that found no room."""
        return sum(cpu.dropped for cpu in self.cpus)


def check_target(target: Path, *, replace: bool) -> None:
    """Raise TracepointError where no recording may be written."""
    if target.is_dir():
        raise TracepointError(f"{target} is a folder; nothing was saved")
    if not replace and target.exists():
        raise TracepointError(f"{target} is there already; nothing was saved (replace=True, or --force)")
