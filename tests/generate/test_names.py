"""No parameter of an event collides with a name of the templates that modules and probes are made from."""

from __future__ import annotations

import re
import shutil
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from generate.samples import header_of_text
from guest import lttng_lab
from oracles import installed_headers
from tracepoint.errors import LabError
from tracepoint.generate import kernel_module, probe_module, read_facts
from tracepoint.generate.lttng.probe import lttng_probe
from tracepoint.lab.build.module import build_modules
from tracepoint.tree.headers import read_header
from tracepoint.tree.kernel_files import read_kernel_files
from tracepoint.tree.tracing_macros import FACT_FILES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracepoint.model.event import TraceHeader

TEMPLATES = files("tracepoint.generate").joinpath("templates")
NAMES = ("module.c", "word.c", "number.c", "list.c", "text.c", "bytes.c", "format.c", "probe.c", "find.c")
KEYWORDS = {
    *"bool char const do else for if int long return sizeof static struct typeof unsigned void while".split(),
    *"loff_t size_t ssize_t s64 u8 u64 va_list typeof".split(),
}
# Macros of the kernel that take no arguments: no parameter can have such a name in a header either.
OF_THE_KERNEL = {"pr_fmt", "define", "include"}
TESTS = Path(__file__).parents[1]
SAMPLES = (TESTS / "guest/lttng/kinds.h", TESTS.parent / "examples/every_field.h")
#: How LTTng's probes get at a parameter: as it is, as a text, and by code of their own.
LTTNG_KINDS = {
    "number": ("int {}", "__field(int, f)", "__entry->f = {};"),
    "text": ("const char *{}", "__string(f, {})", "__assign_str(f, {});"),
    "format": (
        "struct va_format *{}",
        "__vstring(f, {0}->fmt, {0}->va)",
        "__assign_vstr(f, {0}->fmt, {0}->va);",
    ),
}
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
    folder = installed_headers()
    facts = read_facts(read_kernel_files(folder, FACT_FILES))
    header = header_of_text(declared())
    made = kernel_module(header, name="names", facts=facts, export=True)
    for number, event in enumerate(header.events):
        if event.name.startswith("number"):
            made = made.joined(probe_module(event, name=f"by_name{number}", by_name=True, facts=facts))
    built = build_modules(made, folder)
    assert "names.ko" in [path.name for path in built]


def lttng_words(header: TraceHeader) -> list[str]:
    """Every name that the probe of a header has and the header does not, but for macros and keywords."""
    own = identifiers(header.source.text)
    made = lttng_probe(header)
    found = set().union(*(identifiers(text) for path, text in made.items() if path.endswith((".c", ".h"))))
    return sorted(word for word in found - own - KEYWORDS - OF_THE_KERNEL if not word.isupper())


def identifiers(text: str) -> set[str]:
    bare = re.sub(r'/\*.*?\*/|^\s*#[^\n]*|"[^"\n]*"', " ", text, flags=re.DOTALL | re.MULTILINE)
    return set(re.findall(r"[A-Za-z]\w*", bare))


def lttng_declared(words: Sequence[str]) -> str:
    """A header with events that record a number, a text and a format under every name."""
    events = [
        f"TRACE_EVENT(name_{kind}_{name}, TP_PROTO({form.format(name)}), TP_ARGS({name}),\n"
        f"\tTP_STRUCT__entry({field.format(name)}),\n\tTP_fast_assign({assign.format(name)}),\n"
        f'\tTP_printk("%s", "")\n);\n'
        for kind, (form, field, assign) in LTTNG_KINDS.items()
        for name in words
        if (kind, name) != ("format", "vsnprintf")  # the kernel's own __assign_vstr() calls it
    ]
    head = "#if !defined(_TRACE_NAMES_H) || defined(TRACE_HEADER_MULTI_READ)\n#define _TRACE_NAMES_H\n"
    tail = "#undef TRACE_INCLUDE_PATH\n#define TRACE_INCLUDE_PATH .\n#include <trace/define_trace.h>\n"
    lines = ["#undef TRACE_SYSTEM\n#define TRACE_SYSTEM names\n", head, "#include <linux/tracepoint.h>\n"]
    return "".join([*lines, *events, "#endif\n", tail])


def test_the_variable_that_every_probe_of_lttng_has_is_no_parameter() -> None:
    made = lttng_probe(header_of_text(lttng_declared(["tp_locvar", "copy"])), name="names")
    assert sum("tp_locvar is LTTng's own name" in note for note in made.notes) == len(LTTNG_KINDS)
    text = made["include/instrumentation/events/names.h"]
    assert "name_format_copy" in text
    assert "name_format_tp_locvar" not in text
    assert "va_copy(copy_arg, *copy->va)" in text


@pytest.mark.oracle
def test_every_name_of_a_probe_of_lttng_compiles_as_a_parameter(tmp_path: Path) -> None:
    folder = installed_headers()
    try:
        source = lttng_lab.source_tree()
    except LabError as error:
        pytest.skip(str(error))
    words = {word for path in SAMPLES for word in lttng_words(read_header(path))} | {*template_words()}
    assert {"copy", "ctf_integer", "tp_locvar", "line", "probe_private"} <= words
    (tmp_path / "names.h").write_text(lttng_declared(sorted(words)))
    for part in ("include", "scripts"):
        shutil.copytree(source / part, tmp_path / part)
    made = lttng_probe(read_header(tmp_path / "names.h"), include='"names.h"')
    made.write(tmp_path, overwrite=True)
    shutil.copy(source / "src/Kbuild.common", tmp_path / "src")
    build = "obj-$(CONFIG_LTTNG) += lttng-probe-names.o\n"
    flags = f"{lttng_lab.BASE_KBUILD}ccflags-y += -I{tmp_path}\n"
    (tmp_path / "src/probes/Kbuild").write_text(flags + build)
    lttng_lab.make(
        folder, tmp_path / "src/probes", "CONFIG_LTTNG=m", "KCFLAGS=-Werror", "KBUILD_MODPOST_WARN=1"
    )
    assert (tmp_path / "src/probes/lttng-probe-names.ko").is_file()
