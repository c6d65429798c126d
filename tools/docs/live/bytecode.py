"""Runs in Pyodide while the site is built: modules of an archive become bytecode of exactly that Python."""

import importlib.util
import marshal
import zipfile


def _bytecode(source: bytes, name: str) -> bytes:
    # Flags 1: valid whatever the source's hash is, since the source is not beside it.
    head = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8)
    return head + marshal.dumps(compile(source, name, "exec", dont_inherit=True))


def compile_archive(archive: str, target: str, left_out: str) -> int:
    """Write `target` with the `.py` of `archive` as `.pyc`; return how many.

    `left_out` are names of top modules, divided by spaces, that are not copied.
    """
    n_compiled = 0
    skipped = set(left_out.split())
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for name in sorted(old.namelist()):
            if name.endswith("/") or name.partition("/")[0].removesuffix(".py") in skipped:
                continue
            data = old.read(name)
            if name.endswith(".py"):
                new.writestr(zipfile.ZipInfo(f"{name}c"), _bytecode(data, name), zipfile.ZIP_DEFLATED)
                n_compiled += 1
            else:
                new.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return n_compiled
