"""The option `--suite`: where to look for kernels that are not in the machine's own package lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse


def add_argument(parser: argparse.ArgumentParser) -> None:
    """Add `--suite` to a command that fetches kernels."""
    parser.add_argument(
        "--suite",
        action="append",
        default=[],
        metavar="SUITE",
        help="look for kernels in this Debian suite (trixie, sid), not the system's; repeatable",
    )
