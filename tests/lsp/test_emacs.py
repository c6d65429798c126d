"""The server in Emacs, with eglot and without a screen."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.programs,
    pytest.mark.skipif(
        shutil.which("emacs") is None, reason="no emacs: apt-get install emacs-nox elpa-eglot"
    ),
]
EXAMPLE = Path(__file__).resolve().parents[2] / "src/tracepoint/examples/swap.h"
SCRIPT = """
(require 'json)
(unless (require 'eglot nil t) (princ "no eglot") (kill-emacs 3))
(setq eglot-sync-connect 120 eglot-connect-timeout 120 jsonrpc-default-request-timeout 120)
(define-derived-mode trace-header-mode c-mode "Trace header")
(add-to-list 'eglot-server-programs (list 'trace-header-mode (getenv "TP_PYTHON") "-m" "tracepoint" "server"))
(find-file (getenv "TP_HEADER"))
(trace-header-mode)
(apply #'eglot--connect (eglot--guess-contact))
(let ((end (+ (float-time) 120)))
  (while (and (not (flymake-diagnostics)) (< (float-time) end))
    (accept-process-output nil 0.1)
    (flymake-start)))
(search-forward "TRACE_EVENT(mm_page_swap_in")
(let* ((server (eglot--current-server-or-lose))
       (place (eglot--TextDocumentPositionParams))
       (hover (jsonrpc-request server :textDocument/hover place))
       (out (list :found (vconcat (mapcar #'flymake-diagnostic-text (flymake-diagnostics)))
                  :hover (plist-get (plist-get hover :contents) :value))))
  (with-temp-file (getenv "TP_ANSWERS") (insert (json-encode out)))
  (eglot-shutdown server))
"""


def test_findings_and_hovers_in_eglot(tmp_path: Path) -> None:
    text = EXAMPLE.read_text()
    close = text.index('",', text.index("TP_printk("))
    header, script, answers = tmp_path / EXAMPLE.name, tmp_path / "say.el", tmp_path / "answers.json"
    header.write_text(text[:close] + "\\n" + text[close:])
    script.write_text(SCRIPT)
    done = subprocess.run(
        ["emacs", "--batch", "-l", str(script)],
        env={
            "PATH": "/usr/bin:/bin",
            "HOME": str(tmp_path),
            "TP_PYTHON": sys.executable,
            "TP_HEADER": str(header),
            "TP_ANSWERS": str(answers),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    if done.stdout.endswith("no eglot"):
        pytest.skip("no eglot: apt-get install elpa-eglot")
    assert answers.exists(), done.stderr
    out = json.loads(answers.read_text())
    assert len(out["found"]) == 1
    assert "the print format ends in a newline" in out["found"][0]
    assert "void trace_mm_page_swap_in(" in out["hover"]
