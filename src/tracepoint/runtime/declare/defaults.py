"""Defaults that are called when an event fires: where a field that the caller leaves out comes from."""

from __future__ import annotations

import sys
from typing import Any


def _task_name() -> str:
    """Return the name of the asyncio task that runs, or an empty text where none does.

    As a default of an event's parameter it is called when the event fires.

    >>> task_name()
    ''
    """
    # Not imported here: a program that has no tasks need not load all of asyncio.
    tasks: Any = sys.modules.get("asyncio.tasks")
    if tasks is None:
        return ""
    try:
        task = tasks.current_task()
    except RuntimeError:
        return ""
    return "" if task is None else str(task.get_name())


# To type checkers a default has the type of its parameter.
task_name: Any = _task_name
