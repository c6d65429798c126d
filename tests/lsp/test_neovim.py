"""The server in an editor that people use: Neovim, without a screen."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.programs,
    pytest.mark.skipif(shutil.which("nvim") is None, reason="no nvim: apt-get install neovim"),
]
EXAMPLE = Path(__file__).resolve().parents[2] / "src/tracepoint/examples/swap.h"
SCRIPT = """
local file, python, answers = unpack(vim.fn.json_decode(vim.env.TP_ARGUMENTS))
vim.cmd("edit " .. file)
local id = vim.lsp.start_client({ name = "tracepoint", cmd = { python, "-m", "tracepoint", "server" } })
vim.lsp.buf_attach_client(0, id)
local function codes()
  return vim.tbl_map(function(d) return d.code or d.user_data.lsp.code end, vim.diagnostic.get(0))
end
local function ask(method, params)
  local found = vim.lsp.buf_request_sync(0, method, params, 30000)
  return found and found[id] and found[id].result
end
local out = {}
vim.wait(30000, function() return #codes() > 0 end, 20)
out.opened = codes()
local row = vim.fn.search("\\\\\\\\n\\"", "w") - 1
local line = vim.api.nvim_buf_get_lines(0, row, row + 1, false)[1]
local document = { uri = vim.uri_from_bufnr(0) }
local at = { line = row, character = #line - 2 }
local actions = ask("textDocument/codeAction", {
  textDocument = document, range = { start = { line = row, character = 0 }, ["end"] = at },
  context = { diagnostics = {}, only = { "quickfix" } },
})
vim.lsp.util.apply_workspace_edit(actions[1].edit, "utf-16")
vim.wait(30000, function() return #codes() == 0 end, 20)
out.fixed = codes()
local name = vim.fn.search("TRACE_EVENT(mm_page_swap_in", "w") - 1
local hover = ask("textDocument/hover", { textDocument = document, position = { line = name, character = 15 } })
out.hover = hover.contents.value
out.text = vim.api.nvim_buf_get_lines(0, 0, -1, false)
vim.fn.writefile({ vim.fn.json_encode(out) }, answers)
vim.cmd("qall!")
"""


def test_findings_come_and_go_and_hovers_show_records(tmp_path: Path) -> None:
    text = EXAMPLE.read_text()
    at = text.index('"', text.index("TP_printk(") + len("TP_printk(") + 2)
    header, script, answers = tmp_path / EXAMPLE.name, tmp_path / "say.lua", tmp_path / "answers.json"
    close = text.index('",', text.index("TP_printk("))
    assert at <= close
    header.write_text(text[:close] + "\\n" + text[close:])
    script.write_text(SCRIPT)
    done = subprocess.run(
        ["nvim", "--headless", "-u", "NONE", "-n", "-c", f"luafile {script}"],
        env={
            "PATH": "/usr/bin:/bin",
            "HOME": str(tmp_path),
            "TP_ARGUMENTS": json.dumps([str(header), sys.executable, str(answers)]),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert answers.exists(), done.stderr
    out = json.loads(answers.read_text())
    assert out["opened"] == ["TP305"]
    assert out["fixed"] == []
    assert "\n".join(out["text"]) + "\n" == text
    assert "void trace_mm_page_swap_in(" in out["hover"]
