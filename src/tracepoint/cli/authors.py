"""The sender, date and file name of a patch, for all commands that write patches."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tracepoint.cli.git import git_setting
from tracepoint.errors import PlaceError

if TYPE_CHECKING:
    import argparse

    from tracepoint.place.message import Author


def add_author_arguments(group: argparse._ArgumentGroup) -> None:
    """Add the options for the sender of the patches."""
    group.add_argument(
        "--author", default="", metavar="'NAME <MAIL>'", help="default: git's user.name, user.email"
    )
    group.add_argument("--date", default="", help="as in mail, or ISO (default: now, or SOURCE_DATE_EPOCH)")
    group.add_argument("--no-sign-off", action="store_true", help="add no Signed-off-by")


def find_author(args: argparse.Namespace, given: str) -> Author:
    """Return the author of the patch: `given`, or git's user; raises PlaceError when there is neither."""
    from email.utils import parseaddr  # noqa: PLC0415 - slow, and --help does without

    from tracepoint.place.message import Author  # noqa: PLC0415 - see above

    name, mail = parseaddr(given) if given else (git_setting("user.name"), git_setting("user.email"))
    if not name or not mail:
        raise PlaceError(
            "who sends the patch? git config has no user.name and user.email: use --author 'NAME <MAIL>'"
        )
    return Author(name, mail, _date(args.date), is_signed=not args.no_sign_off)


def patch_file_name(subject: str) -> str:
    """Return a patch's file name as git format-patch makes it, without number and suffix."""
    return re.sub(r"[^A-Za-z0-9_.]+", "-", subject).strip("-.")[:52].rstrip("-.") or "patch"


def _date(given: str) -> str:
    from email.utils import format_datetime, parsedate_to_datetime  # noqa: PLC0415 - see above

    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    if not given:
        when = datetime.fromtimestamp(int(epoch), UTC) if epoch.isdigit() else datetime.now().astimezone()
        return format_datetime(when)
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            when = read(given)
        except (ValueError, TypeError):
            continue
        return format_datetime(when if when.tzinfo else when.astimezone())
    raise PlaceError(f"{given!r} is not a valid date")
