"""Format texts for tests, of our own events, in the form tracefs prints."""

from __future__ import annotations

COMMON = (
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
    "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
)


def format_text(fields: str, print_fmt: str = '"", ', name: str = "tick", number: int = 7) -> str:
    return f"name: {name}\nID: {number}\nformat:\n{COMMON}\n{fields}\nprint fmt: {print_fmt}\n"
