"""`tracepoint server`: a language server for editors, over stdin and stdout."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tracepoint.cli import settings
from tracepoint.cli.inputs import find_abi, make_reader
from tracepoint.cli.status import EXIT_DONE
from tracepoint.errors import TracepointError

if TYPE_CHECKING:
    import argparse

    from tracepoint.cli.output import Output


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    settings.add_arguments(parser, "select", "ignore", "include", "define", "abi")


def run(args: argparse.Namespace, out: Output) -> int:
    """Serve one editor until it says that it ends; raises TracepointError without pygls."""
    chosen = settings.read_settings(args)
    if settings.shows_settings(args, chosen, out):
        return EXIT_DONE
    try:
        from tracepoint.lsp.server import make_server  # noqa: PLC0415 - an extra
        from tracepoint.lsp.session import OpenFiles  # noqa: PLC0415 - it needs the rules and the simulation
    except ModuleNotFoundError as error:
        raise TracepointError(f"the server needs {error.name}: pip install 'tracepoint[lsp]'") from error
    session = OpenFiles(
        partial(make_reader, chosen), select=chosen.select, ignore=chosen.ignore, abi=find_abi(chosen.abi)
    )
    make_server(session).start_io()
    return EXIT_DONE
