"""The list of rules: code to name, severity, page and function.

The hundreds digit is the area: 0 text and form of the header, 1 declaration, 2 record, 3 print format,
4 call sites, 5 compatibility.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from inspect import cleandoc
from typing import TYPE_CHECKING

from tracepoint.diagnostics import Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import ModuleType

    from tracepoint.check.across import Across
    from tracepoint.check.context import CheckContext
    from tracepoint.check.finding import Finding
    from tracepoint.check.python_source import PythonFile

    Check = Callable[[CheckContext], Iterator[Finding]]
    Candidates = Callable[[CheckContext], Iterator[object]]
    Decide = Callable[[Sequence[object], Across], Iterator[Finding]]
    CheckPython = Callable[[PythonFile], Iterator[Finding]]


@dataclass(frozen=True)
class Rule:
    """One rule: `name` states the fault, and its module in `check.rules` holds the page and the function.

    `fix` is the best grade of fix it offers: empty, `safe` or `unsafe`.
    """

    code: str
    name: str
    severity: Severity
    fix: str = ""
    is_default_on: bool = field(default=True)

    @cached_property
    def module(self) -> ModuleType:
        """The file of the rule."""
        return import_module(f"tracepoint.check.rules.{self.name.replace('-', '_')}")

    @property
    def check(self) -> Check | None:
        """The function that finds the fault; None when reading or the engine itself does."""
        return getattr(self.module, "check", None)

    @property
    def candidates(self) -> Candidates | None:
        """The function that collects possible faults from one header, for rules that look across files."""
        return getattr(self.module, "candidates", None)

    @property
    def decide(self) -> Decide:
        """The function that turns candidates into findings when all headers of the run are known."""
        return self.module.decide  # type: ignore[no-any-return]

    @property
    def check_python(self) -> CheckPython | None:
        """The function that finds the fault in Python files, for rules about them."""
        return getattr(self.module, "check_python", None)

    @property
    def summary(self) -> str:
        """One sentence: the first line of the page."""
        return self._text.splitlines()[0]

    @property
    def page(self) -> str:
        """The page as Markdown: what `tracepoint explain` prints and the reference holds."""
        state = "on by default" if self.is_default_on else "off by default"
        fix = {"": "no fix", "safe": "safe fix", "unsafe": "unsafe fix"}[self.fix]
        head = f"# `{self.name}` ({self.code})\n\n{self.severity}, {state}, {fix}\n\n"
        return head + self._text.rstrip() + "\n"

    def section(self, heading: str) -> str:
        """Return the text below one heading of the page, its lines joined; empty when there is none."""
        match = re.search(
            rf"^## {re.escape(heading)}\n\n(.*?)(?=^## |\Z)", self._text, re.MULTILINE | re.DOTALL
        )
        return " ".join(match[1].split()) if match else ""

    @property
    def _text(self) -> str:
        return cleandoc(self.module.__doc__ or "")


E, W, N = Severity.ERROR, Severity.WARNING, Severity.NOTE

RULES: tuple[Rule, ...] = (
    Rule("TP001", "unbalanced-parenthesis", E),
    Rule("TP002", "wrong-number-of-parts", E),
    Rule("TP003", "unterminated-conditional", E),
    Rule("TP004", "bad-directive", E),
    Rule("TP005", "condition-not-understood", W),
    Rule("TP006", "misplaced-part", W),
    Rule("TP007", "unknown-event-class", E),
    Rule("TP008", "stray-text-in-struct", E),
    Rule("TP009", "unknown-field-macro", E),
    Rule("TP010", "header-without-guard", E, fix="safe"),
    Rule("TP011", "header-without-multi-read", E, fix="safe"),
    Rule("TP012", "define-trace-missing", E, fix="safe"),
    Rule("TP013", "define-trace-inside-guard", W),
    Rule("TP014", "trace-system-missing", E),
    Rule("TP015", "trace-system-inside-guard", W, is_default_on=False),
    Rule("TP016", "trace-system-without-variable", E, fix="safe"),
    Rule("TP017", "trace-include-file-missing", E, fix="safe"),
    Rule("TP018", "declaration-read-again", E),
    Rule("TP019", "condition-not-decided", N),
    Rule("TP020", "non-ascii-in-code", E, fix="safe"),
    Rule("TP090", "suppression-without-effect", N),
    Rule("TP101", "proto-args-mismatch", E),
    Rule("TP102", "reserved-parameter-name", E),
    Rule("TP103", "name-declared-twice", W),
    Rule("TP104", "common-field-redeclared", W),
    Rule("TP105", "array-declarator-in-field", E, fix="unsafe"),
    Rule("TP106", "class-could-be-shared", N),
    Rule("TP107", "constant-condition", W),
    Rule("TP108", "record-outside-its-parts", E),
    Rule("TP109", "print-same-as-class", N),
    Rule("TP110", "class-without-event", W),
    Rule("TP111", "prototype-without-parameters", E),
    Rule("TP150", "legacy-declaration", N),
    Rule("TP201", "string-never-assigned", E, fix="unsafe"),
    Rule("TP202", "field-never-assigned", W, fix="unsafe"),
    Rule("TP203", "field-never-shown", N, is_default_on=False),
    Rule("TP204", "hole-in-record", N, fix="unsafe"),
    Rule("TP205", "record-too-large", W),
    Rule("TP206", "scratch-buffer-in-record", W),
    Rule("TP207", "copy-length-in-elements", E, fix="unsafe"),
    Rule("TP208", "unbounded-copy", W, fix="unsafe"),
    Rule("TP209", "sleeping-call-in-assign", E),
    Rule("TP211", "string-source-differs", W, fix="unsafe"),
    Rule("TP212", "unknown-field", E, fix="unsafe"),
    Rule("TP213", "copy-without-end", N, fix="unsafe", is_default_on=False),
    Rule("TP214", "copy-of-pointer-size", E, fix="unsafe"),
    Rule("TP215", "copy-longer-than-field", E),
    Rule("TP216", "missing-semicolon", E, fix="safe"),
    Rule("TP217", "value-cut-short", W),
    Rule("TP218", "assigned-from-other-parameter", N, fix="unsafe"),
    Rule("TP219", "number-followed-as-pointer", E),
    Rule("TP301", "pointer-dereference-in-printk", E),
    Rule("TP302", "string-pointer-in-record", W, is_default_on=False),
    Rule("TP303", "format-argument-count", E),
    Rule("TP304", "format-argument-type", W),
    Rule("TP305", "trailing-newline-in-printk", W, fix="unsafe"),
    Rule("TP306", "newline-in-printk", W),
    Rule("TP307", "enum-not-exported", W, fix="safe"),
    Rule("TP308", "not-evaluable-by-readers", W),
    Rule("TP309", "length-in-bytes", E, fix="unsafe"),
    Rule("TP310", "print-array-element-size", E),
    Rule("TP311", "flags-wider-than-long", W, fix="safe", is_default_on=False),
    Rule("TP312", "hashed-pointer", N, is_default_on=False),
    Rule("TP313", "side-effect-in-printk", E),
    Rule("TP314", "zero-in-print-flags", W),
    Rule("TP315", "value-listed-twice", W),
    Rule("TP316", "format-argument-width-on-32-bit", W),
    Rule("TP317", "printed-with-other-sign", N, is_default_on=False),
    Rule("TP318", "print-hex-of-wide-elements", E),
    Rule("TP319", "parameter-in-printk", E, fix="unsafe"),
    Rule("TP320", "sizeof-not-exported", W),
    Rule("TP321", "value-with-two-names", N, is_default_on=False),
    Rule("TP322", "printk-without-arguments", E),
    Rule("TP323", "star-before-pointer", W),
    Rule("TP324", "field-shown-twice", N),
    Rule("TP325", "arguments-exchanged", N),
    Rule("TP326", "string-pointer-not-exported", W),
    Rule("TP401", "side-effect-in-call", W),
    Rule("TP501", "assign-str-arity", E, fix="safe"),
    Rule("TP502", "enum-typed-field", N, fix="unsafe", is_default_on=False),
    Rule("TP503", "tracepoint-suffix", W),
)


@cache
def _by_word() -> dict[str, Rule]:
    return {word: rule for rule in RULES for word in (rule.code, rule.name)}


def rule_of(word: str) -> Rule | None:
    """Return the rule with this code or name, or None.

    >>> rule_of("TP301").name
    'pointer-dereference-in-printk'
    """
    return _by_word().get(word.upper() if word.upper().startswith("TP") else word)
