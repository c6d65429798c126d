"""JSON from outside the process, read where the stack may be small."""

from __future__ import annotations

import json
from typing import Any

#: A request is an object of plain values, with a few lists or objects in it at most.
MOST_BRACKETS = 8


def read_shallow_json(data: bytes) -> Any:
    r"""Return the value of JSON in UTF-8 that opens at most 8 objects and lists; raises ValueError.

    Python's reader calls itself for each bracket, and counts these calls as if every stack had megabytes: a
    thread has 128 KiB where the C library is musl, which some thousand brackets overflow.

    >>> read_shallow_json(b'{"names": ["[[[[[[[[\\"["]}')
    {'names': ['[[[[[[[["[']}
    >>> read_shallow_json(b"[" * 9)
    Traceback (most recent call last):
    ValueError: more than 8 objects and lists
    """
    text = data.decode("utf-8", "surrogatepass")  # as json.loads() decodes bytes
    if text.count("[") + text.count("{") > MOST_BRACKETS:
        # Not those in strings.  A backslash elsewhere ends the reading: what follows may be miscounted.
        outside = text.replace("\\\\", "").replace('\\"', "").split('"')[::2]
        if sum(part.count("[") + part.count("{") for part in outside) > MOST_BRACKETS:
            raise ValueError(f"more than {MOST_BRACKETS} objects and lists")
    return json.loads(text)
