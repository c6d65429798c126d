"""Filter expressions to ask a kernel about: those that the specifications name, and generated ones."""

from __future__ import annotations

import random

EVENTS = {
    "sched:sched_switch": ("prev_pid", "prev_state", "next_prio", "prev_comm", "next_comm"),
    "sched:sched_process_exec": ("filename", "pid", "old_pid"),
    "irq:softirq_entry": ("vec",),
    "irq:irq_handler_entry": ("irq", "name"),
    "kmem:kmalloc": ("call_site", "ptr", "bytes_req", "gfp_flags"),
    "syscalls:sys_enter_openat": ("dfd", "filename", "flags", "mode"),
    "signal:signal_generate": ("sig", "comm", "pid"),
    "sched:sched_stat_runtime": ("comm", "pid", "runtime"),
}
GENERIC = (
    "common_pid",
    "common_type",
    "cpu",
    "CPU",
    "COMM",
    "comm",
    "common_cpu",
    "stacktrace",
    "nosuch",
    "common_flags",
)
# The pairs of spec/control.md, spec/lab.md and the recorded control log, for sched_switch.
KNOWN = (
    *(
        "prev_pid == 1",
        "prev_pid==1",
        " prev_pid  ==  1 ",
        "  prev_pid == 0x10 && next_pid > 5",
        "prev_pid == 1 &&",
    ),
    *(
        "(prev_pid == 1",
        "prev_pid == 1)",
        "nosuch == 1",
        "prev_comm == foo",
        'prev_comm == "foo"',
        "prev_comm ~ 'fo*'",
    ),
    *(
        'prev_comm ~ "*o*"',
        'prev_comm ~ "f?o[a-c]*"',
        'prev_comm != "x"',
        'prev_comm !~ "x"',
        '!(prev_comm ~ "x")',
    ),
    *(
        'prev_comm > "x"',
        "prev_comm == 5",
        'prev_pid == "x"',
        "prev_pid ~ 5",
        "prev_pid & 5",
        "prev_pid & 5 == 5",
    ),
    *(
        "prev_pid = 5",
        "prev_pid === 5",
        "prev_pid == -1",
        "prev_pid == 5abc",
        "prev_pid == 99999999999999999999",
    ),
    *(
        "prev_pid == 123456789012345678901234",
        'prev_comm == "abc',
        'comm == "bash"',
        'COMM == "bash"',
        "cpu == 1",
    ),
    *("CPU == 1", "common_cpu == 0", "cpu & 1", "common_pid == 1", "common_type == 1", "common_flags & 1"),
    *("common_preempt_count == 0", "prev_pid == 1 || prev_pid == 2 && next_pid == 3", "!prev_pid == 1"),
    *(
        "! ! prev_pid == 1",
        "prev_pid == 1 | prev_pid == 2",
        "prev_pid == 1 prev_pid == 2",
        "prev_pid",
        "1",
        "0",
        "none",
    ),
    *(" ", "()", "((prev_pid == 1))", "prev_pid == CPUS{1}", "CPU & CPUS{0}", 'prev_comm.ustring == "a"'),
    *(
        "prev_pid == prev_pid",
        "prev_state == S",
        'prev_comm == "a\\"b"',
        "stacktrace == 1",
        "prev_comm.x == 1",
    ),
    *(
        'prev_comm == "' + "a" * 254 + '"',
        'prev_comm == "' + "a" * 255 + '"',
        'prev_comm == "' + "a" * 256 + '"',
    ),
    *(
        'common_pid < 10 && (prev_comm ~ "a*" || !(next_prio >= 100))',
        "prev_pid == ",
        "nosuch ==",
        "!",
        "&& 1",
        "!()",
    ),
    *(
        "prev_pid == 1 ||",
        "prev_pid == 1 && !",
        "prev_pid == 1 || next_pid == 2 &&",
        "(prev_pid == 1 &&)",
        "(",
        ")",
        '"',
        "a",
    ),
)


def generate(seed: int, n: int) -> list[tuple[str, str]]:
    """Return `n` pairs of event and expression; about half of the expressions are wrong somewhere."""
    source = random.Random(seed)
    found: dict[tuple[str, str], None] = {}
    while len(found) < n:
        event = source.choice(list(EVENTS))
        text = _expression(source, event, 0)
        if source.random() < 0.35:
            text = _damage(source, text)
        if text.strip("\0") and len(text.encode(errors="surrogateescape")) < 900 and "\0" not in text:
            found[event, text] = None
    return list(found)


def _expression(source: random.Random, event: str, depth: int) -> str:
    kind = source.random()
    if depth < 3 and kind < 0.3:
        operator = source.choice(("&&", "||", " && ", " || ", " &&  "))
        return operator.join(_expression(source, event, depth + 1) for _ in range(2))
    if depth < 4 and kind < 0.5:
        return (
            source.choice(("(", "!(", "! (", "( "))
            + _expression(source, event, depth + 1)
            + source.choice((")", " )"))
        )
    if depth < 4 and kind < 0.55:
        return source.choice(("!", "! ", "!!")) + _predicate(source, event)
    return _predicate(source, event)


def _predicate(source: random.Random, event: str) -> str:
    field = source.choice(EVENTS[event]) if source.random() < 0.85 else source.choice(GENERIC)
    suffix = source.choice((".ustring", ".function", ".x")) if source.random() < 0.04 else ""
    is_text = "comm" in field.lower() or "name" in field
    if source.random() < 0.04:
        is_text = not is_text
    operators = ("==", "!=", "~") if is_text else ("==", "!=", "<", "<=", ">", ">=", "&")
    if source.random() < 0.04:
        operators = ("~", "<", "&", "=", "!~", "===")
    space = source.choice(("", " ", " ", "  ", "\t"))
    value = _text(source) if is_text else _number(source)
    if source.random() < 0.04:
        value = source.choice(CPUS)
    return f"{field}{suffix}{space}{source.choice(operators)}{space}{value}"


CPUS = (
    "CPUS{0}",
    "CPUS{0-1}",
    "CPUS{}",
    "CPUS{99999}",
    "CPUS{1",
    "CPUS 1",
    "CPUS{x}",
    "CPUS{all}",
    "CPUS{0-N:1/2}",
)
ODD_NUMBERS = (
    *("-1", "08", "0x", "4294967296", "-2147483649", "9223372036854775807", "9223372036854775808"),
    *(
        "-9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
        "1e5",
        "TIMER",
        "--1",
        "- 1",
        "+1",
    ),
    *("0b1", "1_000", "-0x10", "-", "1.5", "do_sys_openat2", "schedule", "nosuchfunction"),
)


def _number(source: random.Random) -> str:
    if source.random() < 0.12:
        return source.choice(ODD_NUMBERS)
    if source.random() < 0.03:
        return str(source.randrange(10 ** source.randint(17, 26)))
    return source.choice(
        ("0", "1", "255", "0x1f", "017", "4294967295", "0XfF", "00", str(source.randrange(10**9)))
    )


def _text(source: random.Random) -> str:
    quote = source.choice("\"'")
    letters = "abz019*?[]!\\ -_.(){}&|," + ("'" if quote == '"' else '"')
    return quote + "".join(source.choice(letters) for _ in range(source.choice((0, 1, 3, 8, 15, 40)))) + quote


def _damage(source: random.Random, text: str) -> str:
    at = source.randrange(len(text) + 1)
    match source.randrange(6):
        case 0:
            return text[:at]
        case 1:
            return text[at:]
        case 2:
            return text[:at] + source.choice("()!&|=<>~\"' \t.{}\\-#;\udcff\udcc1") + text[at:]
        case 3:
            return text[:at] + text[at + 1 :]
        case 4:
            return text + source.choice((" &&", " ||", "&&", "||", ")", " (", " !", "  x", " 1", "\n", "\v"))
        case _:
            return source.choice(("!", "(", ")", "&&", "||", " ", "\t")) + text
