"""The language server on ext4.h of 6.1: from a keystroke to the findings, and its memory."""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from functools import cache
from pathlib import Path

from lsprotocol import types
from pygls.lsp.client import LanguageClient

from benchmarks.harness import MissingError, Row, environment
from tracepoint.tree.cache import cache_folder

N_KEYS = 40
#: As people type: the check of the whole header, which comes after a pause, does not fall between two keys.
BETWEEN_S = 0.1


@cache
def _figures() -> tuple[list[float], list[float], float]:
    """Milliseconds from each keystroke to its findings, as a client over pipes sees them; those of them that
    the server had a processor; most megabytes.
    """
    header = cache_folder() / "sources/linux-source-6.1/include/trace/events/ext4.h"
    if not header.exists():
        raise MissingError("no source of 6.1 in the cache: `make test` as root fetches it")
    return asyncio.run(_type(header.as_uri(), header.read_text()))


async def _type(uri: str, text: str) -> tuple[list[float], list[float], float]:
    client = LanguageClient("bench", "1")
    came: asyncio.Queue[types.PublishDiagnosticsParams] = asyncio.Queue()
    client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(lambda params: came.put_nowait(params))  # noqa: PLW0108 - pygls marks it
    await client.start_io(sys.executable, "-m", "tracepoint", "server", env=environment())
    await client.initialize_async(types.InitializeParams(capabilities=types.ClientCapabilities()))
    client.initialized(types.InitializedParams())
    client.text_document_did_open(types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, "c", 0, text)))
    await came.get()
    pid = client._server.pid  # noqa: SLF001 - no other name leads to the process
    taken, computed = [], []
    for key in range(1, N_KEYS + 1):
        await asyncio.sleep(BETWEEN_S)
        at = text.index("__entry->", len(text) * key // (N_KEYS + 2)) + len("__entry->")
        text = text[:at] + "x" + text[at:]
        of = types.VersionedTextDocumentIdentifier(key, uri)
        whole = types.TextDocumentContentChangeWholeDocument(text)
        begin, computed_before = time.perf_counter(), _processor_ms(pid)
        client.text_document_did_change(types.DidChangeTextDocumentParams(of, [whole]))
        while (await came.get()).version != key:
            pass
        taken.append((time.perf_counter() - begin) * 1000)
        computed.append(_processor_ms(pid) - computed_before)
    most = _most_megabytes(pid)
    await client.shutdown_async(None)
    client.exit(None)
    await client.stop()
    return taken, computed, most


def _processor_ms(pid: int) -> float:
    """Milliseconds that a process has run on a processor: unlike time, they do not grow on a busy machine."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e6


def _most_megabytes(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024


def keystroke() -> Row:
    """Milliseconds from a keystroke in ext4.h to its findings: the median, each key in another declaration."""
    taken, computed, _ = _figures()
    told = (
        f"{N_KEYS} keys, slowest {max(taken):.0f} ms; of the server's processor time "
        f"{statistics.median(computed):.0f} ms, slowest {max(computed):.0f} ms"
    )
    return Row("editor: keystroke to findings, ext4.h", statistics.median(taken), "ms", 50, True, told)


def server_memory() -> Row:
    """Most megabytes of the server with ext4.h open."""
    return Row("editor: memory of the server, ext4.h", _figures()[2], "MB", 300, True)


ROWS = (keystroke, server_memory)
