"""How much a test searches: plain `pytest` looks at a tenth of the examples that `make test` looks at."""

import os

IS_FULL = os.environ.get("TRACEPOINT_TESTS") == "all"


def examples(n):
    """Return `n` in `make test`, a tenth of it, but 10 at least, in plain `pytest`."""
    return n if IS_FULL else max(n // 10, 10)
