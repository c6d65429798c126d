"""What goes over the socket: frames of a head, which is JSON, and a body, which is bytes.

A frame is the length of its head (32 bits, little endian), that of its body (64 bits), the head, the body.
"""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any, BinaryIO

from tracepoint.runtime.shallow_json import read_shallow_json

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping

LENGTHS = struct.Struct("<IQ")
MAX_HEAD = PIECE = 1 << 20


class FrameError(Exception):
    """Bytes that are not a frame, or one that is longer than it may be."""


def _read(stream: BinaryIO, size: int) -> bytes:
    """Read as much as comes of a size that the other side only claims."""
    parts = []
    while size and (part := stream.read(min(size, PIECE))):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def send_frame(stream: socket.socket, head: Mapping[str, Any], body: bytes = b"") -> None:
    """Send a frame; raises OSError."""
    text = json.dumps(head).encode()
    stream.sendall(LENGTHS.pack(len(text), len(body)) + text)
    if body:
        stream.sendall(body)


def receive_frame(stream: BinaryIO, max_body: int) -> tuple[dict[str, Any], bytes] | None:
    """Return the head and the body of the next frame, or None at the end, also in the middle of a frame.

    Raises FrameError for a head that is not a JSON object and for one, or a body, that is too long; OSError.

    >>> import io
    >>> receive_frame(io.BytesIO(LENGTHS.pack(2, 3) + b"{}abc"), 3)
    ({}, b'abc')
    """
    lengths = stream.read(LENGTHS.size)
    if len(lengths) < LENGTHS.size:
        return None
    n_head, n_body = LENGTHS.unpack(lengths)
    if n_head > MAX_HEAD or n_body > max_body:
        raise FrameError(f"a frame of {n_head} and {n_body} bytes")
    text, body = stream.read(n_head), _read(stream, n_body)
    if len(text) < n_head or len(body) < n_body:
        return None
    try:
        head = read_shallow_json(text)
    except ValueError as error:
        raise FrameError(str(error)) from None
    if not isinstance(head, dict):
        raise FrameError("no JSON object")
    return head, body
