"""Compile one C file as a kernel's Kbuild would, for the compiler's messages."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from tracepoint.errors import LabError
from tracepoint.lab.build.module import read_messages
from tracepoint.lab.programs import run_program
from tracepoint.source.text import decode

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tracepoint.lab.build.module import CompilerMessage
    from tracepoint.lab.build.stub import Compiler

_FLAGS = ("-fmax-errors=200", "-fno-diagnostics-show-caret")


def compile_file(
    compiler: Compiler, source: Path, before: Sequence[str] = (), after: Sequence[str] = ()
) -> tuple[CompilerMessage, ...]:
    """Return the errors of compiling a file, none if it compiles; the object is discarded.

    `before` and `after` are words before and after those of Kbuild.  Paths below the file's own
    folder are relative to it.  Raises LabError when the compiler cannot be run, or fails without a message.
    """
    words = list(compiler.words)
    command = [words[0], *before, *words[1:], *_FLAGS, *after, "-o", f"{source}.o", str(source)]
    done = run_program(command, f"{source.name} cannot be compiled", compiler.folder)
    if not done.returncode:
        return ()
    said = decode(done.stderr).replace(f"{source.parent}/", "")
    messages = read_messages(said)
    if not messages:
        tail = "\n".join(said.splitlines()[-6:])
        raise LabError(f"{source.name} cannot be compiled", shlex.join(command), done.returncode, tail)
    return messages
