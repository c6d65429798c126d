"""`tracepoint check --mbox`: the patches of a series in a mailbox or maildir."""

from __future__ import annotations

import email
import io
import json
import sys
from email.mime.text import MIMEText
from pathlib import Path

import pytest

from tracepoint.cli.declare.mailbox import read_mailbox
from tracepoint.cli.files import unified_diff
from tracepoint.cli.main import main
from tracepoint.errors import TracepointError

CLEAN = """#undef TRACE_SYSTEM
#define TRACE_SYSTEM demo

#if !defined(_TRACE_DEMO_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_DEMO_H

#include <linux/tracepoint.h>

/* caf\xe9 */
TRACE_EVENT(tick,

	TP_PROTO(int n),

	TP_ARGS(n),

	TP_STRUCT__entry(
		__field(	int,	n	)
	),

	TP_fast_assign(
		__entry->n	= n;
	),

	TP_printk("n=%d", __entry->n)
);

#endif /* _TRACE_DEMO_H */

#include <trace/define_trace.h>
"""
STEPS = [CLEAN, CLEAN.replace('"n=%d"', '"nr=%d"'), CLEAN.replace('"n=%d"', '"nr=%d\\n"')]
FROM = b"From mboxrd@z Thu Jan  1 00:00:00 1970\n"
COVER = "cover@example.org"


@pytest.fixture(autouse=True)
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    header = tmp_path / "include" / "demo.h"
    header.parent.mkdir()
    header.write_text(CLEAN, encoding="utf-8")
    return header


def patch(step: int) -> str:
    return "Why.\n---\n" + unified_diff(STEPS[step - 1], STEPS[step], "include/demo.h") + "-- \n2.39\n"


def mail(
    subject: str, body: str, ident: str, *, encoding: str = "quoted-printable", parent: str = COVER
) -> bytes:
    made = MIMEText("", _charset="us-ascii")
    del made["Content-Transfer-Encoding"]
    made["Subject"], made["Message-ID"] = subject, f"<{ident}>"
    if parent != ident:
        made["References"] = f"<{parent}>"
    made.replace_header("Content-Type", 'text/plain; charset="utf-8"')
    made["Content-Transfer-Encoding"] = encoding
    coders = {"quoted-printable": email.quoprimime.body_encode, "base64": None, "8bit": str}
    coder = coders[encoding]
    if coder is None:
        text = email.base64mime.body_encode(body.replace("\n", "\r\n").encode()).encode()
    elif coder is str:
        text = body.encode()
    else:
        text = coder(body.encode().decode("latin-1")).encode("latin-1")
    made.set_payload("")
    return made.as_bytes() + text


def mailbox(*mails: bytes) -> bytes:
    return b"".join(FROM + text.rstrip(b"\n") + b"\n\n" for text in mails)


COVER_LETTER = mail("[PATCH 0/2] demo: Two steps", "Hello\n", COVER, parent=COVER)
REPLY = mail("Re: [PATCH 2/2] demo: Break", patch(2), "reply@example.org")


def series(
    encoding: str = "quoted-printable", tag: str = "PATCH", host: str = "example.org"
) -> tuple[bytes, bytes]:
    return (
        mail(f"[{tag} 1/2] demo: Rename", patch(1), f"1@{host}", encoding=encoding),
        mail(f"[{tag} 2/2] =?utf-8?q?demo=3A_Br=C3=A9ak?=", patch(2), f"2@{host}", encoding=encoding),
    )


@pytest.mark.parametrize("encoding", ["quoted-printable", "base64", "8bit"])
def test_a_series_is_decoded_ordered_and_named(capsys, encoding: str) -> None:
    first, second = series(encoding)
    Path("s.mbox").write_bytes(mailbox(REPLY, second, COVER_LETTER, first, first))
    assert main(["check", "--mbox", "s.mbox", "--output-format", "concise"]) == 1
    out = capsys.readouterr()
    line = patch(2).split("\n").index('+	TP_printk("nr=%d\\n", __entry->n)') + 1
    assert out.out.startswith("include/demo.h:24:12: TP305 ")
    assert f"([PATCH 2/2] demo: Bréak <2@example.org>:{line})" in out.out
    assert "without" not in out.err
    assert "TP305" not in Path("include/demo.h").read_text(encoding="utf-8")


def test_stdin_and_maildir_say_the_same(capsys, monkeypatch) -> None:
    first, second = series()
    (Path("dir") / "new").mkdir(parents=True)
    (Path("dir") / "new" / "1").write_bytes(second)
    (Path("dir") / "new" / "2").write_bytes(first)
    assert main(["check", "--mbox", "dir", "--output-format", "json"]) == 1
    from_folder = json.loads(capsys.readouterr().out)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(mailbox(second, first))))
    assert main(["check", "--mbox", "-", "--output-format", "json"]) == 1
    assert json.loads(capsys.readouterr().out) == from_folder


def test_the_newest_version_counts_and_a_gap_is_named(capsys) -> None:
    old = series()
    new, _ = series(tag="PATCH v2", host="new.example.org")
    Path("s.mbox").write_bytes(mailbox(*old, new))
    found = read_mailbox(Path("s.mbox"))
    assert [name for name, _ in found.patches] == ["[PATCH v2 1/2] demo: Rename <1@new.example.org>"]
    assert found.missing == ("2/2",)
    assert main(["check", "--mbox", "s.mbox"]) == 0
    assert "without 2/2 of the series" in capsys.readouterr().err


def test_lines_that_begin_with_from_are_text() -> None:
    body = "From here on:\n\n>From a quote\n" + patch(1)
    Path("s.mbox").write_bytes(mailbox(mail("[PATCH] demo: Rename", body, "1@a", encoding="8bit")))
    ((name, text),) = read_mailbox(Path("s.mbox")).patches
    assert name == "[PATCH] demo: Rename <1@a>"
    assert text.startswith("From here on:\n\nFrom a quote\n")


def test_a_patch_that_does_not_apply_is_named(capsys) -> None:
    Path("s.mbox").write_bytes(mailbox(series()[1]))
    assert main(["check", "--mbox", "s.mbox"]) == 2
    assert "[PATCH 2/2] demo: Bréak <2@example.org>" in capsys.readouterr().err


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0\xff" * 100,
        FROM,
        FROM * 50,
        b"Subject: =?bad?q?=FF?=\nContent-Type: text/plain; charset=none\n\nx\n",
        b'Subject: =?utf-8?b?A?=\nContent-Type: multipart/mixed; boundary=""\n\n--\n',
        b"".join(b'Content-Type: multipart/mixed; boundary="%d"\n\n--%d\n' % (n, n) for n in range(2000)),
        b"References: <\n" + b"X: y\n" * 2000,
    ],
)
def test_hostile_mailboxes_are_errors(data: bytes) -> None:
    Path("s.mbox").write_bytes(data)
    with pytest.raises(TracepointError, match=r"no patch in it|too deep to read"):
        read_mailbox(Path("s.mbox"))


def test_a_mailbox_is_checked_alone(capsys) -> None:
    assert main(["check", "--mbox", "s.mbox", "include"]) == 2
    assert "patches are checked alone" in capsys.readouterr().err


def test_sarif_links_the_rules(capsys) -> None:
    Path("s.mbox").write_bytes(mailbox(*series()))
    assert (
        main(["check", "--mbox", "s.mbox", "--output-format", "sarif", "--docs-url", "https://example.org/"])
        == 1
    )
    driver = json.loads(capsys.readouterr().out)["runs"][0]["tool"]["driver"]
    assert driver["informationUri"] == "https://example.org/index.html"
    assert all(
        rule["helpUri"].startswith("https://example.org/reference/rules/TP") for rule in driver["rules"]
    )
