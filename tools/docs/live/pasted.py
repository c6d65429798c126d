"""What the live page runs: `tracepoint try --json` on the pasted text, in Pyodide."""

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from tracepoint.cli.main import main

_PATH = Path("/tmp/pasted.h")


def simulate(text: str, abi: str, values: list[str]) -> str:
    """Return JSON: `document` as `try --json` prints it, or None, and the `errors` as text."""
    _PATH.write_bytes(text.encode("utf-8", "surrogatepass"))
    words = ["try", "--json", "--color", "never", "--abi", abi, str(_PATH)]
    for value in values:
        words += ["--set", value]
    out, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(errors):
        main(words)
    printed = out.getvalue()
    document = json.loads(printed) if printed.startswith("{") else None
    return json.dumps({"document": document, "errors": errors.getvalue()})
