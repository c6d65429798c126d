"""Check filters and triggers before the kernel does, with advice that the kernel does not give.

A filter is valid if any known kernel accepts it: the version of the running one does not
matter, and the kernel decides.
"""

from __future__ import annotations

import errno
import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

from tracepoint.errors import TracefsError
from tracepoint.filter.error import FilterError, FilterFault
from tracepoint.filter.parse import is_clear, parse_filter
from tracepoint.filter.profile import KERNEL_6_1, KERNEL_6_1_187, KERNEL_6_12
from tracepoint.trigger.command import TARGETED, parse_trigger, read_trigger_file
from tracepoint.trigger.error import HistError, TriggerError
from tracepoint.trigger.expression import BUCKETS, MODIFIERS, SHARES, SPECIAL, SYNONYMS
from tracepoint.trigger.hist import read_hist_trigger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracepoint.layout.format import EventFormat
    from tracepoint.trigger.command import Trigger

_PROFILES = (KERNEL_6_12, KERNEL_6_1, KERNEL_6_1_187)
# parse_field() in kernel/trace/trace_events_hist.c refuses it for every other field.
_ONLY_FIELD = {"execname": "common_pid"}
# `stacktrace` and `string` are for fields of synthetic events.
_MODIFIERS = (*MODIFIERS, *BUCKETS, *SHARES, "stacktrace", "string")
_NAME = re.compile(r"[A-Za-z_]\w*")


def check_filter(text: str, event: EventFormat, path: str = "") -> None:
    """Raise TracefsError when no known kernel accepts `text` as a filter for `event`.

    The error carries the caret that the kernel would show, and suggests a field for an
    unknown one.
    """
    if is_clear(text):
        return
    refused: FilterError | None = None
    for profile in _PROFILES:
        try:
            # Only the kernel knows its functions: any name is accepted here.
            parse_filter(text, event, profile, find_function=lambda _: (0, 1))
        except FilterError as error:
            refused = refused or error
        else:
            return
    if refused is not None:
        raise TracefsError(
            f"filter refused: {refused}{_advice(refused)}", path, text, refused.errno
        ) from refused


def _advice(error: FilterError) -> str:
    if error.fault is FilterFault.INVALID_VALUE:
        return "\na text needs quotes; names of enums and flags are not known to filters, only numbers"
    return ""


def read_trigger(text: str) -> Trigger:
    """Return a trigger in its parts, or raise TracefsError for what no event accepts."""
    try:
        trigger = parse_trigger(text)
        has_keys = trigger.command != "hist" or read_hist_trigger(trigger.parameters).keys
    except HistError as error:
        raise _refuse(text, str(error), error.errno) from error
    except TriggerError as error:
        raise TracefsError(str(error), wrote=text, errno=error.errno) from error
    if not has_keys:
        raise _refuse(text, "a histogram needs a key: hist:keys=FIELD[,FIELD...]")
    return trigger


def read_triggers(text: str) -> list[Trigger]:
    """Return the triggers that a `trigger` file shows; raises TracefsError for what no kernel shows."""
    try:
        return read_trigger_file(text)
    except TriggerError as error:
        raise TracefsError(str(error), errno=error.errno) from error


def _refuse(text: str, reason: str, number: int = errno.EINVAL) -> TracefsError:
    return TracefsError(f"trigger {text.strip()!r}: {reason}", wrote=text, errno=number)


def check_trigger(text: str, event: EventFormat, events: Sequence[str]) -> Trigger:
    """Return the trigger in its parts, or raise TracefsError saying what is wrong with it for `event`.

    `events` are the names (`system:event`) that it may switch.
    """
    trigger = read_trigger(text)
    if trigger.command in TARGETED and trigger.target not in events:
        close = get_close_matches(trigger.target, events, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise TracefsError(f"trigger {text.strip()!r}: no event {trigger.target!r}{hint}", wrote=text)
    if trigger.is_removal:
        return trigger
    if trigger.filter:
        check_filter(trigger.filter, event)
    if trigger.command == "hist":
        _check_hist(trigger, event)
    return trigger


def _check_hist(trigger: Trigger, event: EventFormat) -> None:
    hist = read_hist_trigger(trigger.parameters)
    known = [*(field.name for field in event.fields), *SPECIAL, *SYNONYMS]
    for item in (*hist.keys, *hist.values):
        name, _, modifier = item.partition(".")
        if not _NAME.fullmatch(name):
            continue  # an expression or a reference to a variable: the kernel checks it
        if name not in known:
            close = get_close_matches(name, known, n=1, cutoff=0.5)
            fields = ", ".join(field.name for field in event.event_fields)
            hint = f"did you mean {close[0]}?" if close else f"its fields: {fields}"
            raise TracefsError(f"{event.name} has no field {name!r} to count by; {hint}", wrote=trigger.text)
        if name != _ONLY_FIELD.get(modifier, name):
            raise TracefsError(
                f".{modifier} is for {_ONLY_FIELD[modifier]} only, not for {name}", wrote=trigger.text
            )
        if modifier and modifier.partition("=")[0] not in _MODIFIERS:
            known_ones = ", ".join(f".{word}" for word in _MODIFIERS)
            message = f"unknown modifier .{modifier} of {name}; there are: {known_ones}"
            raise TracefsError(message, wrote=trigger.text)
