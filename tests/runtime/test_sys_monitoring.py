"""The recipes with sys.monitoring print what their page shows."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/howto/sys-monitoring.md").read_text(encoding="utf-8")
RECIPES = re.findall(
    r"^Save this as `([\w.]+)`:\n\n```python\n(.*?)^```\n\n```text\n(.*?)^```$",
    PAGE,
    re.MULTILINE | re.DOTALL,
)


def test_every_block_is_a_recipe():
    assert len(RECIPES) == PAGE.count("```python\n") == 3


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring came with Python 3.12")
@pytest.mark.parametrize(("name", "text", "shown"), RECIPES, ids=[name for name, _, _ in RECIPES])
def test_recipes_print_what_the_page_shows(name, text, shown, tmp_path):
    (tmp_path / name).write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", name],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout == shown
