"""Check a whole kernel source in a process of its own, whose memory goes when it ends.

`whole_tree.py TREE [HEADER...]` prints JSON: what every rule says of all headers, or of some, and how long the
rules that are on by default took.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from oracles import headers_of
from pace import count_turns
from tracepoint.check.engine import check_headers
from tracepoint.tree.facts import read_facts
from tracepoint.tree.headers import paused_collector


@dataclass(frozen=True, order=True)
class Found:
    """A finding: the header's path in the tree, the line, the code and the message."""

    path: str
    line: int
    code: str
    message: str


@dataclass(frozen=True)
class Checked:
    """A source with what the rules say of it, and the million turns of a loop that the default rules took."""

    root: Path
    findings: list[Found]
    millions: float


def check_tree(root: Path, *paths: str) -> Checked:
    """Run this file as a program for a kernel source, or some headers of it."""
    done = subprocess.run(
        [sys.executable, __file__, str(root), *paths],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        check=True,
    )
    told = json.loads(done.stdout)
    return Checked(root, [Found(*words) for words in told["findings"]], told["millions"])


def main() -> None:
    root, wanted = Path(sys.argv[1]), set(sys.argv[2:])
    headers = []
    for header in headers_of(root):
        path = Path(header.path).relative_to(root)
        is_wanted = str(path) in wanted if wanted else path.parts[0] not in {"tools", "Documentation"}
        headers += [header] * is_wanted
    facts = read_facts(root)
    with paused_collector():
        findings = [
            (str(Path(d.span.path).relative_to(root)), d.span.line, d.code, d.message)
            for d in check_headers(headers, select=["ALL"], facts=facts)
        ]
        with count_turns() as taken:
            check_headers(headers, facts=facts)
    json.dump({"findings": findings, "millions": taken.millions}, sys.stdout)


if __name__ == "__main__":
    main()
