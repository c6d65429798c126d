"""What failed while the traced program ran, kept until it is asked for, as `csrc/module.c` keeps it."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_FAULTS = 64
MAX_TEXT = 1000
_faults: deque[tuple[str, str, str]] = deque(maxlen=MAX_FAULTS)
_n_faults = 0
_hooks: list[Callable[[str, str, str], object]] = []


def faults() -> tuple[int, list[tuple[str, str, str]]]:
    """Return how many faults there were, and the last 64 as (event, where, text)."""
    return _n_faults, list(_faults)


def clear_faults() -> None:
    """Forget all faults."""
    global _n_faults  # noqa: PLW0603 - one process, one count
    _n_faults = 0
    _faults.clear()


def set_fault_hook(hook: Callable[[str, str, str], object] | None) -> None:
    """Call a function with (event, where, text) at the first fault of each event; None for no more."""
    _hooks[:] = [] if hook is None else [hook]


def keep_fault(name: str, where: str, error: BaseException | None, *, is_first: bool) -> None:
    """Count and keep what failed at an event, and call the hook for its first."""
    global _n_faults  # noqa: PLW0603 - one process, one count
    _n_faults += 1
    is_interrupt = isinstance(error, KeyboardInterrupt)
    try:
        text = f"{type(error).__name__}: {f'{error}'[:MAX_TEXT]}"
    except BaseException as failure:  # noqa: BLE001 - an exception whose own text fails
        text = type(error).__name__
        is_interrupt = is_interrupt or isinstance(failure, KeyboardInterrupt)
    _faults.append((name, where, text))
    try:
        for hook in _hooks if is_first else ():
            hook(name, where, text)
    except BaseException as failure:  # noqa: BLE001 - nothing that it raises reaches the traced program
        is_interrupt = is_interrupt or isinstance(failure, KeyboardInterrupt)
    if is_interrupt:
        # Ctrl-C that came while a probe ran is the program's: it comes again at its next instruction.
        import _thread  # noqa: PLC0415 - hardly ever needed

        _thread.interrupt_main()
