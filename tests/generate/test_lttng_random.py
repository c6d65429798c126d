"""LTTng probes of random declarations: every field is recorded or has a note, and brackets match."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings

import strategies
from effort import examples
from tracepoint.errors import GenerateError
from tracepoint.generate.lttng.probe import lttng_probe
from tracepoint.model.event import TraceHeader
from tracepoint.source.lexer import lex
from tracepoint.source.text import SourceFile

PAIRS = {"(": ")", "[": "]", "{": "}"}


def unbalanced(text: str) -> bool:
    """Whether brackets of C text do not match."""
    expected: list[str] = []
    for token in lex(SourceFile("", text)):
        if token.text in PAIRS:
            expected.append(PAIRS[token.text])
        elif token.text in PAIRS.values() and (not expected or expected.pop() != token.text):
            return True
    return bool(expected)


@pytest.mark.parametrize("layout", ["2.13", "2013"])
@given(header=strategies.headers())
@settings(max_examples=examples(60), deadline=None)
def test_every_field_is_recorded_or_has_a_note(layout: str, header: TraceHeader) -> None:
    try:
        files = lttng_probe(header, name="demo", layout=layout)
    except GenerateError:
        assert not [e for e in header.events if e.proto.params and not e.is_nop and not e.is_custom]
        return
    path = (
        "include/instrumentation/events/demo.h"
        if layout == "2.13"
        else "instrumentation/events/lttng-module/demo.h"
    )
    text = files[path]
    assert not unbalanced(text)
    assert "__entry" not in text.split("TP_printk")[0] or layout == "2013"
    for event in header.events:
        if event.is_nop or event.is_custom or not event.proto.params:
            continue
        assert re.search(rf"\b{event.name}\b", text)
        for field in event.fields:
            noted = any(
                note.startswith(f"{event.event_class.name}.{field.name}: is left out") for note in files.notes
            )
            recorded = re.search(
                rf"(?:ctf_|__field|__array|__string|__dynamic_array)\w*\((?:[^()]*,\s*)?{field.name}\b", text
            )
            assert noted or recorded, field.name
