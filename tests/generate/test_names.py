"""No parameter of an event collides with a name of the templates that modules and probes are made from."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from generate.samples import header_of_text
from tracepoint.errors import LabError
from tracepoint.generate import kernel_module, probe_module, read_facts
from tracepoint.generate.kernel_facts import FACT_FILES
from tracepoint.lab.build import build_modules
from tracepoint.lab.stub import find_kernel_headers
from tracepoint.tree.kernel_files import read_kernel_files

TEMPLATES = files("tracepoint.generate").joinpath("templates")
NAMES = ("module.c", "word.c", "number.c", "list.c", "text.c", "bytes.c", "format.c", "probe.c", "find.c")
KEYWORDS = {
    *"bool char const do else for if int long return sizeof static struct typeof unsigned void while".split(),
    *"loff_t size_t ssize_t s64 u8 u64 va_list typeof".split(),
}
# Macros of the kernel that take no arguments: no parameter can have such a name in a header either.
OF_THE_KERNEL = {"pr_fmt", "define", "include"}
PARAMETERS = {
    "number": "int {}",
    "text": "const char *{}",
    "list": "const u16 *{}",
    "bytes": "const void *{}",
    "format": "struct va_format *{}",
}


def template_words() -> list[str]:
    """Every identifier in the templates that a parameter can have as its name."""
    found: set[str] = set()
    for name in NAMES:
        text = TEMPLATES.joinpath(f"{name}.in").read_text("utf-8")
        bare = re.sub(r'/\*.*?\*/|//[^\n]*|"[^"\n]*"|<[^>\n]*>|@\w+@', " ", text, flags=re.DOTALL)
        found.update(re.findall(r"[A-Za-z_]\w*", bare))
    return sorted(word for word in found - KEYWORDS - OF_THE_KERNEL if not word.isupper() and word[0] != "_")


def declared() -> str:
    """A header with events of every kind of parameter under every name."""
    words = template_words()
    events = []
    for kind, form in PARAMETERS.items():
        for number in range(0, len(words), 8):
            names = words[number : number + 8]
            proto = ", ".join(form.format(name) for name in names)
            copies = " ".join(f"memcpy(__entry->a, {name}, 4);" for name in names) if kind == "bytes" else ""
            events.append(
                f"TRACE_EVENT({kind}_{number}, TP_PROTO({proto}), TP_ARGS({', '.join(names)}),\n"
                f"\tTP_STRUCT__entry(__array(u8, a, 4)),\n\tTP_fast_assign({copies}),\n"
                '\tTP_printk("%u", __entry->a[0])\n);\n'
            )
    return "#define TRACE_SYSTEM names\n#include <linux/tracepoint.h>\n" + "".join(events)


def test_there_are_names_to_collide_with() -> None:
    assert {"line", "error", "data", "probe_private", "fire_number", "fire_error", "text"} <= set(
        template_words()
    )


@pytest.mark.parametrize("name", ["line", "error", "fire_number", "memset", "trace_one"])
def test_locals_are_renamed(name: str) -> None:
    header = header_of_text(
        f"#define TRACE_SYSTEM demo\nTRACE_EVENT(one, TP_PROTO(int {name}, int {name}_arg, int n), TP_ARGS({name},"
        f" {name}_arg, n), TP_STRUCT__entry(__field(int, n)), TP_fast_assign(__entry->n = n;),"
        ' TP_printk("%d", __entry->n));'
    )
    text = kernel_module(header, name="m")["m.c"]
    body = text[text.index("static int fire_trace_one") :].partition("\n}\n")[0]
    declared = re.findall(r"^\tint (\w+);$", body, re.MULTILINE)
    assert len(set(declared)) == len(declared) == 4
    assert declared[-2:] == ["n", "error"]
    assert name not in declared[:-1]


@pytest.mark.oracle
def test_every_name_compiles_as_a_parameter() -> None:
    try:
        folder = find_kernel_headers()
    except LabError as error:
        pytest.skip(str(error))
    facts = read_facts(read_kernel_files(folder, FACT_FILES))
    header = header_of_text(declared())
    made = kernel_module(header, name="names", facts=facts, export=True)
    for number, event in enumerate(header.events):
        if event.name.startswith("number"):
            made = made.joined(probe_module(event, name=f"by_name{number}", by_name=True, facts=facts))
    built = build_modules(made, folder)
    assert "names.ko" in [path.name for path in built]
