"""Frames of the socket as a stranger writes and reads them: without the code under test."""

import json
import struct


def frame(head, body=b""):
    """Return a frame; a head that is bytes is sent as it is."""
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    return struct.pack("<IQ", len(text), len(body)) + text + body


def read_frame(stream):
    """Return the head and the body of the next frame; ValueError at the end."""
    lengths = stream.read(12)
    if len(lengths) < 12:
        raise ValueError("the other side has hung up")
    n_head, n_body = struct.unpack("<IQ", lengths)
    return json.loads(stream.read(n_head)), stream.read(n_body)
