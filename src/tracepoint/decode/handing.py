"""Giving Arrow arrays away as PyCapsules of the Arrow C data interface.

https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.errors import TracepointError
from tracepoint.record.decode import DECODE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from tracepoint.decode.arrow import ArrowNode


def _module() -> ModuleType:
    if DECODE is None:
        raise TracepointError("giving Arrow data away needs the C module tracepoint._decode")
    return DECODE


def hand_schema(node: ArrowNode) -> object:
    """Return a capsule `arrow_schema`."""
    return _module().arrow_schema(node)


def hand_array(node: ArrowNode) -> tuple[object, object]:
    """Return capsules `arrow_schema` and `arrow_array`."""
    schema, array = _module().arrow_array(node)
    return schema, array


def hand_stream(node: ArrowNode) -> object:
    """Return a capsule `arrow_array_stream` of one array."""
    return _module().arrow_stream(node)


def hand_parts(node: ArrowNode, parts: Iterator[ArrowNode]) -> object:
    """Return a capsule `arrow_array_stream` of arrays like `node`, each made when it is asked for.

    Raises NotImplementedError in a sub-interpreter, into which threads of others cannot call.
    """
    return _module().arrow_parts(node, parts)
