"""A record with one integer, for doctests and for trying out statements by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.assign.machine import Inputs
from tracepoint.layout.format import COMMON_FIELDS, EventFormat, FieldFormat

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracepoint.assign.machine import InputValue


def example_inputs(values: Mapping[str, InputValue]) -> Inputs:
    """Return inputs over a record with the one field `int n`, and these input values.

    >>> example_inputs({}).layout["n"].offset
    8
    """
    fields = (*COMMON_FIELDS, FieldFormat("n", "int", 8, 4, is_signed=True))
    layout = EventFormat("example", "one", fields, "", size_bytes=12)
    return Inputs(layout, (), {}, lambda input_: values.get(input_.text))
