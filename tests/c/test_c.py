"""The C core without Python under sanitizers, and the extension under them with Python."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.programs

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [ROOT / "csrc" / name for name in ("clock.c", "ring.c", "ring_read.c", "thread.c", "filter.c")]
FLAGS = ["-std=gnu11", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-fno-omit-frame-pointer"]


def build(folder, *flags, name="test_core"):
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler: apt-get install gcc")
    program = folder / name
    sources = [ROOT / "tests" / "c" / f"{name}.c", *SOURCES]
    command = [
        compiler,
        *FLAGS,
        *flags,
        f"-I{ROOT / 'csrc'}",
        *map(str, sources),
        "-pthread",
        "-o",
        str(program),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "cannot find" in done.stderr and "san" in done.stderr:
        pytest.skip(
            "no sanitizer library: apt-get install libasan8 libubsan1 libtsan2 (libgcc-12-dev has them)"
        )
    assert (done.returncode, done.stderr) == (0, "")
    return program


def test_the_core_alone(tmp_path):
    program = build(tmp_path, "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    done = subprocess.run([program], capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stderr, done.stdout[-3:]) == (0, "", "ok\n")


# gcc knows no fences in ThreadSanitizer; what they order is checked by what is read.
RACES = {
    "thread": ["-fsanitize=thread", "-Wno-tsan"],
    "address": ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
    "none": ["-O2"],
}


@pytest.mark.parametrize("sanitizer", RACES)
def test_writers_a_reader_and_another_process(tmp_path, sanitizer):
    """No event is torn, out of order or unaccounted, and ThreadSanitizer sees no race."""
    program = build(tmp_path, *RACES[sanitizer], name="test_races")
    rings = tmp_path / "rings"
    rings.mkdir()
    command = [program, str(rings), "300000"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stderr, done.stdout[-3:]) == (0, "", "ok\n")


def sanitized(name, folder):
    spec = importlib.util.spec_from_file_location("build_core", ROOT / "tools" / "build_core.py")
    builder = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(builder)
    if reason := builder.why_not():
        pytest.skip(reason)
    return builder.build(
        folder, "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-O1", name=name
    )


STORM = """
import importlib.machinery, importlib.util, sys, threading, time
sys.path.insert(0, {source!r})
loader = importlib.machinery.ExtensionFileLoader("tracepoint._core", {core!r})
spec = importlib.util.spec_from_loader("tracepoint._core", loader)
sys.modules["tracepoint._core"] = module = importlib.util.module_from_spec(spec)
loader.exec_module(module)
from tracepoint import trace_event, tracing, u64

@trace_event(system="storm", printk='"%llu %s", n, name')
def step(n: u64, name: str) -> None: ...

step.enable()
step.filter = "n & 1 && name ~ 'a*'"
end, late, rounds = time.monotonic() + {seconds}, [], [0] * 4

def churn(k):
    # On a busy machine a thread may begin after the end of them all.
    while not rounds[k] or time.monotonic() < end:
        gone = []
        def probe(n, name):
            if gone:
                late.append(n)
        registration = step.register(probe)
        for i in range(20):
            step(i, "abc"); step(i, None); step("bad", 1)
        registration.unregister()
        tracing.synchronize()
        gone.append(True)
        rounds[k] += 1

threads = [threading.Thread(target=churn, args=(k,)) for k in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not late and min(rounds) > 0, (late, rounds)
tracing.records(); tracing.read_records()
print("ok", sum(rounds))
"""


@pytest.mark.parametrize("seconds", [2, pytest.param(60, marks=pytest.mark.bench)])
def test_a_storm_under_sanitizers(tmp_path, seconds):
    core = sanitized("_core", tmp_path)
    runtime = subprocess.run(
        ["cc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    environment = {
        **os.environ,
        "LD_PRELOAD": runtime,
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONMALLOC": "malloc",
        "TRACEPOINT_PURE": "",
    }
    text = STORM.format(source=str(ROOT / "src"), core=str(core), seconds=seconds)
    done = subprocess.run(
        # The storm contains wrong calls, which warn.
        [sys.executable, "-W", "ignore", "-c", text],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=seconds * 3 + 60,
    )
    assert (done.returncode, done.stderr, done.stdout[:3]) == (0, "", "ok ")


DAMAGE = """
import importlib.machinery, importlib.util, sys
sys.path[:0] = [{source!r}, {tests!r}]
loader = importlib.machinery.ExtensionFileLoader("tracepoint._decode", {decode!r})
spec = importlib.util.spec_from_loader("tracepoint._decode", loader)
sys.modules["tracepoint._decode"] = module = importlib.util.module_from_spec(spec)
loader.exec_module(module)
from tracepoint.record.decode import DECODE
assert DECODE is module
{calls}
print("ok")
"""
CALLS = {
    "prints": """
from printk import test_printer as tests
tests.test_damaged_records_are_rendered_alike()
tests.test_damaged_programs_are_refused_or_run()
tests.test_damaged_tables_of_texts_are_refused_or_searched()
tests.test_numbers_at_their_limits()
tests.test_long_lines_and_wide_fields()
from printk import test_own_events as own
for big in (False, True):
    for facts in (own.FACTS, own.RenderFacts()):
        own.test_arrays_are_shown_by_c_once_their_symbols_are_known(own.pytest.MonkeyPatch(), big, 4 + 4 * big, facts)
    tests.test_fields_are_shown_by_c_too_where_a_fact_is_not_known(tests.pytest.MonkeyPatch(), big, 8)
""",
    "sieve": """
from tracefile import test_sieve as tests
tests.test_wrong_arguments_are_errors()
tests.test_damaged_pages_are_sifted_alike()
tests.test_any_bytes_are_pages()
""",
    "lines": """
from tracefile import test_linewriter as tests
golden = tests.read_tracedat((tests.GOLDEN / "cut.v6.dat").read_bytes())
tests.test_wrong_arguments_are_errors()
tests.test_damaged_pages(tests.pytest.MonkeyPatch(), golden)
""",
    "graph": """
from tracefile import test_graphwriter as tests
tests.test_wrong_tables_are_errors()
tests.test_random_calls(tests.pytest.MonkeyPatch())
tests.test_damaged_pages()
tests.test_many_cpus_in_one_ring()
""",
    "sched": """
from analysis import test_sched_twin as tests
tests.test_both_forms_find_the_same_in_any_records()
tests.test_arrays_of_both_forms_are_the_same()
for message in tests.BAD_EVENTS:
    tests.test_a_damaged_event_is_refused(message)
tests.test_wrong_arguments_are_errors()
""",
    "columns": """
from decode import test_columns as tests
tests.test_damaged_pages_give_the_same_memory()
tests.test_damaged_pages_are_counted_alike()
for choice in range(4):
    tests.test_what_a_sieve_keeps_has_no_pages_of_its_own(tests.pytest.MonkeyPatch(), choice, None)
for n_records in (20, 700):
    tests.test_time_that_goes_back_is_put_in_order(tests.pytest.MonkeyPatch(), n_records, None)
tests.test_any_bytes_are_pages()
tests.test_any_clock_of_a_guest_is_shifted_by_c_as_by_the_twin()
tests.test_what_is_no_clock_is_an_error()
tests.test_damaged_tables_are_given_away()
tests.test_many_threads_read_at_once()
tests.test_wrong_arguments_are_errors()
""",
}


@pytest.mark.parametrize("name", CALLS)
def test_damage_under_sanitizers(tmp_path, name):
    decode = sanitized("_decode", tmp_path)
    runtime = subprocess.run(
        ["cc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    environment = {
        **os.environ,
        "LD_PRELOAD": runtime,
        "ASAN_OPTIONS": "detect_leaks=0",
        "TRACEPOINT_PURE": "",
    }
    text = DAMAGE.format(
        source=str(ROOT / "src"), tests=str(ROOT / "tests"), decode=str(decode), calls=CALLS[name]
    )
    done = subprocess.run(
        [sys.executable, "-c", text],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=300,
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "ok\n")
