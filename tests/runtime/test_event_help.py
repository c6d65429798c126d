"""What an editor, `dir()` and `help()` see of an event."""

from __future__ import annotations

import pydoc

import pytest

from tracepoint.model.python.types import u32

SEEN = {"register", "enable", "disable", "enabled", "filter", "format", "full_name", "n_faults", "name"}


@pytest.fixture
def sold(runtime):
    @runtime.trace_event(system="shop", printk='"n=%u", n')
    def sold(n: u32) -> None:
        """Somebody bought n things."""

    return sold


def test_dir_has_what_a_user_needs_and_nothing_that_is_not_there(sold):
    names = dir(sold)
    assert set(names) >= SEEN
    assert [name for name in names if not hasattr(sold, name)] == []
    assert "probes" not in names


def test_the_functions_docstring_is_kept_and_the_methods_follow(sold):
    assert sold.__doc__.startswith("Somebody bought n things.\n\nCalling it fires it")
    shown = pydoc.plain(pydoc.render_doc(sold))
    assert "Somebody bought n things." in shown
    assert "Record the event in `instance`, or in the top one; raises EventError when `reg` fails." in shown
    assert sold.enable.__doc__.startswith("Record the event")


def test_an_event_of_a_class_keeps_its_docstring(runtime):
    class Returned(runtime.TraceEvent, system="shop"):
        """Something came back."""

        n: u32
        printk = '"n=%u", n'

    assert Returned.__doc__.startswith("Something came back.\n\n")
    assert "TraceEvent" not in Returned.__doc__


def test_without_a_docstring_it_says_what_it_is(runtime):
    @runtime.trace_event(system="shop", printk='"n=%u", n')
    def quiet(n: u32) -> None: ...

    assert quiet.__doc__.startswith("The trace event shop:quiet.")
