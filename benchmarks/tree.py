"""Kernel trees: indexing them, with nothing saved and when nothing changed, and checking one header of one."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from benchmarks.harness import MissingError, Row, cpu_and_memory, cpu_of_a_million, wall_and_cpu
from tracepoint.tree.cache import cache_folder


def _trees() -> list[Path]:
    trees = sorted((cache_folder() / "sources").glob("linux-source-*"))
    if not trees:
        raise MissingError("no kernel source in the cache: `make test` as root fetches them")
    return trees


def _run(tree: Path, cache_home: str) -> tuple[float, float]:
    return wall_and_cpu(["index", str(tree), "--quiet"], cache_home)


@cache
def _figures() -> dict[str, tuple[float, float, float, float]]:
    """By series: wall and CPU seconds cold, wall and CPU seconds of the best of three warm runs."""
    figures = {}
    for tree in _trees():
        with tempfile.TemporaryDirectory(prefix="tp-bench-") as home:
            cold = _run(tree, home)
            figures[tree.name.removeprefix("linux-source-")] = (
                *cold,
                *min(_run(tree, home) for _ in range(3)),
            )
    return figures


def index_cold() -> Row:
    """CPU seconds of indexing a tree with all call sites for the first time, all processes: the slowest series.

    A busy machine makes the same work cost more of them: a loop measured in the same run tells how much.
    """
    figures = _figures()
    told = ", ".join(f"{name}: {row[1]:.1f} CPU s, {row[0]:.1f} s wall" for name, row in figures.items())
    told += f"; 10 million turns of a loop: {10 * cpu_of_a_million():.2f} CPU s"
    return Row("index of a tree, cold", max(row[1] for row in figures.values()), "CPU s", 25, True, told)


def index_warm() -> Row:
    """Wall seconds of indexing a tree that did not change: the slowest series."""
    figures = _figures()
    told = ", ".join(f"{name}: {row[2]:.2f} s wall, {row[3]:.2f} s CPU" for name, row in figures.items())
    return Row("index of a tree, warm", max(row[2] for row in figures.values()), "s", 0.3, True, told)


def one_header() -> Row:
    """CPU seconds of checking one header of a tree, with nothing saved: the best of three runs."""
    words = ["check", str(_trees()[0] / "include/trace/events/sched.h"), "--quiet"]
    with tempfile.TemporaryDirectory(prefix="tp-bench-") as home:
        wall, spent = min((wall_and_cpu(words, home) for _ in range(3)), key=lambda pair: pair[1])
    return Row("check of one header of a tree", spent, "CPU s", 0.5, True, f"{wall:.2f} s wall")


@cache
def _whole_tree() -> tuple[float, float]:
    """CPU seconds and most megabytes of checking all headers of the oldest tree, with nothing saved."""
    with tempfile.TemporaryDirectory(prefix="tp-bench-") as home:
        return cpu_and_memory(["check", str(_trees()[0]), "--quiet"], home)


def whole_tree() -> Row:
    """CPU seconds of checking all headers of a tree, with nothing saved."""
    return Row("check of all headers of a tree", _whole_tree()[0], "CPU s", 12, True)


def whole_tree_again() -> Row:
    """CPU seconds of checking all headers of a tree that did not change since it was checked: the best of three."""
    words = ["check", str(_trees()[0]), "--quiet"]
    with tempfile.TemporaryDirectory(prefix="tp-bench-") as home:
        cpu_and_memory(words, home)
        spent = min(cpu_and_memory(words, home)[0] for _ in range(3))
    return Row("check of all headers of a tree, again", spent, "CPU s", 0.5, True)


def whole_tree_memory() -> Row:
    """Most megabytes of checking all headers of a tree."""
    return Row("check of all headers of a tree, memory", _whole_tree()[1], "MB", 300, True)


ROWS = (index_cold, index_warm, one_header, whole_tree, whole_tree_again, whole_tree_memory)
