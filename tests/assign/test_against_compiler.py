"""The C compiler as judge: random assignments store the same values here and there."""

import random
import shutil
import subprocess

import pytest

from assign.common import fire
from tracepoint.source.cvalue import int_type_of

TYPES = {
    "u8": "unsigned char", "s8": "signed char", "u16": "unsigned short", "s16": "short",
    "u32": "unsigned int", "int": "int", "u64": "unsigned long long", "s64": "long long",
    "long": "long", "unsigned long": "unsigned long", "bool": "_Bool",
}  # fmt: skip
NUMBERS = [
    "0",
    "1",
    "-1",
    "7",
    "255u",
    "0x80",
    "0x7fffffff",
    "0x80000000",
    "1ul",
    "0xffffffffffffffff",
    "'A'",
]
BINARY = ["+", "-", "*", "&", "|", "^", "<", ">", "<=", ">=", "==", "!=", "&&", "||"]


def expression(rng, names, depth):
    if depth == 0 or rng.random() < 0.15:
        return rng.choice(names) if rng.random() < 0.6 else rng.choice(NUMBERS)
    inner = [expression(rng, names, depth - 1) for _ in range(3)]
    match rng.randrange(7):
        case 0:
            return f"({rng.choice('-~!')}({inner[0]}))"
        case 1:
            return f"(({rng.choice(list(TYPES))})({inner[0]}))"
        case 2:
            return f"(({inner[0]}) ? ({inner[1]}) : ({inner[2]}))"
        case 3:
            return f"((unsigned long)({inner[0]}) {rng.choice(['<<', '>>'])} {rng.randrange(0, 63)})"
        case 4:
            return f"(({inner[0]}) {rng.choice('/%')} (({inner[1]} & 15u) + 3u))"
    return f"(({inner[0]}) {rng.choice(BINARY)} ({inner[1]}))"


def cases(seed, count):
    rng = random.Random(seed)
    for _ in range(count):
        target = rng.choice(list(TYPES))
        kinds = {name: rng.choice([t for t in TYPES if t != "bool"]) for name in "abcd"}
        values = {}
        for name, ctype in kinds.items():
            kind = int_type_of(ctype)
            values[name] = kind.wrap(rng.choice([0, 1, -1, 127, 128, 1 << 31, rng.getrandbits(64)]))
        yield target, kinds, values, expression(rng, list("abcd"), 4)


def stored_by_compiler(tmp_path, made):
    functions, calls = [], []
    for index, (target, kinds, values, text) in enumerate(made):
        body = "".join(
            f"{kinds[name]} {name} = ({kinds[name]}){values[name] & ((1 << 64) - 1):#x}ull;" for name in kinds
        )
        functions.append(
            f"static long long f{index}(void) {{ {body} {target} x = {text}; return (long long)x; }}"
        )
        calls.append(f'printf("%lld\\n", f{index}());')
    types = "".join(
        f"typedef {c} {name};" for name, c in TYPES.items() if name[0] in "us" and " " not in name
    )
    source = tmp_path / "judge.c"
    source.write_text(
        f"#include <stdio.h>\n#include <stdbool.h>\n{types}\n"
        + "\n".join(functions)
        + f"\nint main(void) {{ {''.join(calls)} }}\n"
    )
    program = tmp_path / "judge"
    subprocess.run(["cc", "-w", "-O0", "-fwrapv", "-o", program, source], check=True, timeout=120)
    run = subprocess.run([program], check=True, capture_output=True, text=True, timeout=60)
    return [int(line) for line in run.stdout.split()]


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler (apt-get install gcc)")
def test_expressions_store_what_the_compiler_stores(tmp_path):
    made = list(cases(20261121, 400))
    expected = stored_by_compiler(tmp_path, made)
    for (target, kinds, values, text), wanted in zip(made, expected, strict=True):
        proto = ", ".join(f"{ctype} {name}" for name, ctype in kinds.items())
        fired = fire(f"__field({target}, x)", f"__entry->x = {text};", values, proto=proto)
        assert fired.reasons == [], text
        kind = int_type_of("s64")
        assert kind.wrap(fired["x"]) == wanted, (target, kinds, values, text)
