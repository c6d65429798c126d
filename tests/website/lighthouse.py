"""Lighthouse, run on one page: its scores, what it complains of, and what the page asked the network for."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

from generate.chromium import find_chromium
from website.conftest import installed_package, node_program

if TYPE_CHECKING:
    from pathlib import Path

CATEGORIES = ("accessibility", "best-practices", "seo", "performance")
_CHROMIUM = "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage"
_SECONDS = 300


class Judgement(NamedTuple):
    """`complaints` are of all categories but performance, which depends on the machine."""

    complaints: list[str]
    requests: list[str]
    performance: float


def judge(address: str, place: Path) -> Judgement:
    """Let Lighthouse look at a page as on a phone; skips with the reason where it cannot be had."""
    words = [str(node_program()), str(installed_package("lighthouse") / "cli/index.js"), address]
    words += ["--output=json", "--quiet", f"--chrome-flags={_CHROMIUM}"]
    # That file is of a server, and is asked for from within the page: a catalogue forbids itself any request.
    words += [f"--only-categories={','.join(CATEGORIES)}", "--skip-audits=robots-txt"]
    env = {"PATH": "/usr/bin:/bin", "HOME": str(place), "CHROME_PATH": find_chromium()}
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=_SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    audits = said["audits"]
    complaints = [
        f"{name}: {audits[one['id']]['title']}: {json.dumps(audits[one['id']].get('details', {}))[:1000]}"
        for name in CATEGORIES
        if name != "performance"
        for one in said["categories"][name]["auditRefs"]
        if audits[one["id"]]["score"] not in (None, 1)
    ]
    complaints += [
        f"{name}: {said['categories'][name]['score']}"
        for name in CATEGORIES
        if name != "performance" and said["categories"][name]["score"] != 1
    ]
    requests = [item["url"] for item in audits["network-requests"]["details"]["items"]]
    return Judgement(complaints, requests, said["categories"]["performance"]["score"])


def check(address: str, place: Path) -> None:
    """Assert that a page has full scores and needs no other server; say its performance, which is not judged."""
    judgement = judge(address, place)
    sys.stdout.write(f"lighthouse: {address}: performance {judgement.performance:.0%}\n")
    assert judgement.complaints == [], "\n".join(judgement.complaints)
    own = address[: address.index("/", len("http://"))]
    outside = [url for url in judgement.requests if not url.startswith((f"{own}/", "data:", f"blob:{own}/"))]
    assert judgement.requests
    assert outside == [], outside
