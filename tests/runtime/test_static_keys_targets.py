"""Where static keys look for call sites, how code gets to them, and what they leave alone."""

import doctest
import functools
import importlib
import importlib.machinery
import importlib.util
import inspect
import marshal
import runpy
import subprocess
import sys
import types
import zipfile
from pathlib import Path

import pytest

from runtime.static_sites import heard, make
from tracepoint.runtime.declare.load import load
from tracepoint.runtime.fire import mechanism
from tracepoint.runtime.hierarchy import Tracing

SOURCE = Path(__file__).resolve().parents[2] / "src"


class Notes(list):
    def __call__(self, x):
        self.append(x)
        return x


def is_off(call, notes):
    """Whether the arguments are left alone."""
    notes.clear()
    call()
    return notes == []


def module_of(text, hit, name="sk_text", **names):
    module = types.ModuleType(name)
    vars(module).update(hit=hit, note=Notes(), **names)
    exec(compile(text, f"<{name}>", "exec"), vars(module))
    return module


class TestWrappers:
    TEXT = """
import functools, contextlib
def plain(f):
    @functools.wraps(f)
    def inner(*args): return f(*args)
    return inner
@plain
@plain
def wrapped(): hit(note(1))
@functools.lru_cache
def cached(): hit(note(1))
@contextlib.contextmanager
def managed():
    hit(note(1))
    yield
@functools.singledispatch
def single(x): hit(note(1))
partial = functools.partial(lambda x: (hit(note(x)), None)[1], 1)
def by_partial(x):
    hit(note(x))
partly = functools.partial(by_partial, 1)
del by_partial
class C:
    @functools.cached_property
    def lazy(self): hit(note(1)); return 7
    def _base(self, x):
        hit(note(x))
    part = functools.partialmethod(_base, 1)
    @functools.singledispatchmethod
    def many(self, x): hit(note(1))
    @functools.lru_cache
    def kept(self): hit(note(1))
def enter():
    with managed(): pass
"""

    @pytest.mark.parametrize(
        "call",
        [
            lambda m: m.wrapped(),
            lambda m: m.cached(),
            lambda m: m.enter(),
            lambda m: m.single(1),
            lambda m: m.partly(),
            lambda m: m.C().lazy,
            lambda m: m.C().part(),
            lambda m: m.C().many(1),
            lambda m: m.C().kept(),
        ],
        ids="wraps cache contextmanager singledispatch partial cached_property partialmethod dispatchmethod cachedmethod".split(),
    )
    def test_of_the_standard_library(self, keys, hit, call):
        module = module_of(self.TEXT, hit)
        assert keys.patch(module) >= 9
        assert is_off(lambda: call(module), module.note)
        fresh = module_of(self.TEXT, hit)
        keys.patch(fresh)
        assert heard(hit, lambda: call(fresh)) == [(1, 0)]

    def test_methods_bound_to_an_object(self, keys, hit):
        module = module_of("class C:\n def go(self): hit(note(1))\n", hit)
        assert keys.patch(module.C().go) == 1
        assert is_off(module.C().go, module.note)

    def test_wraps_and_partial_made_afterwards_share_the_sites(self, keys, hit):
        module = module_of("def go(x): hit(note(x))\n", hit)
        keys.patch(module)

        @functools.wraps(module.go)
        def again(x):
            module.go(x)

        assert is_off(lambda: again(1), module.note)
        assert heard(hit, functools.partial(again, 3)) == [(3, 0)]


class TestStrangers:
    """Things that break who looks at them carelessly."""

    def test_classes_that_hold_themselves_and_others(self, keys, hit):
        text = (
            "class Node:\n def go(self): hit(note(1))\n"
            "Node.kind = Node\n"
            "class Form:\n model = Node\n def go(self): hit(note(1))\n"
            "Node.form = Form\n"
        )
        module = module_of(text, hit)
        assert keys.patch(module.Form) == 1, "a class that only has a name here is not its part"
        assert keys.patch(module) == 1

    def test_functions_that_wrap_themselves(self, keys, hit):
        module = module_of("def go(): hit(note(1))\ngo.__wrapped__ = go\n", hit)
        assert keys.patch(module) == 1

    def test_objects_that_raise_when_they_are_looked_at(self, keys, hit):
        class Raises:
            def __getattribute__(self, name):
                raise RuntimeError("working outside of request context")

        class Property:
            __dict__ = property(lambda self: 1 / 0)

        module = module_of("def go(): proxy.hit(1); other.hit(1); hit(note(1))\n", hit)
        module.proxy, module.other = Raises(), Property()
        assert keys.patch(module) == 1

    def test_modules_that_load_when_they_are_looked_at(self, keys, hit, tmp_path, monkeypatch):
        (tmp_path / "sk_lazy.py").write_text("raise AssertionError('loaded')\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        spec = importlib.util.find_spec("sk_lazy")
        spec.loader = importlib.util.LazyLoader(spec.loader)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "sk_lazy", module)
        spec.loader.exec_module(module)
        assert keys.static_keys("sk_lazy")

    @pytest.mark.thorough
    def test_every_module_of_a_program(self, keys, hit):
        """The one line, with much of the standard library loaded."""
        for (
            name
        ) in "asyncio enum typing json logging unittest.mock http.server email.message sqlite3".split():
            importlib.import_module(name)
        assert keys.static_keys()

    def test_functions_of_other_modules_are_theirs(self, keys, hit):
        owner = module_of("def go(): hit(note(1))\n", hit, "sk_owner")
        borrower = module_of("", hit, "sk_borrower", go=owner.go)
        assert keys.patch(borrower) == 0
        assert not is_off(owner.go, owner.note)

    def test_code_that_no_compiler_wrote(self, keys, hit):
        run = make("def run(note):\n hit(note(1))\n", hit)
        broken = run.__code__.replace(co_code=b"\xff\xff" * 8, co_linetable=b"\x80" * 3)
        keys.patch(types.FunctionType(broken, run.__globals__))


class TestKindsOfCode:
    def test_module_level_and_class_bodies_stay_calls(self, keys, hit, tmp_path, monkeypatch):
        text = (
            "from sk_events import hit, note\nhit(note(1))\nclass C:\n    hit(note(2))\n"
            "    def go(self):\n        hit(note(3))\n"
        )
        (tmp_path / "sk_level.py").write_text(text)
        monkeypatch.syspath_prepend(str(tmp_path))
        notes = Notes()
        monkeypatch.setitem(sys.modules, "sk_events", types.SimpleNamespace(hit=hit, note=notes))
        assert keys.static_keys("sk_level")
        module = importlib.import_module("sk_level")
        monkeypatch.delitem(sys.modules, "sk_level")
        assert notes == [1, 2]
        assert is_off(module.C().go, notes)

    def test_code_without_a_source(self, keys, hit):
        run = keys.sites(make("def run(note):\n hit(note(1))\n", hit))
        notes = Notes()
        assert is_off(lambda: run(notes), notes)
        with pytest.raises(OSError, match="source"):
            inspect.getsource(run)

    def test_generator_expressions_and_lambdas_are_expressions(self, keys, hit):
        run = make("def run(note):\n list(hit(note(i)) for i in (1, 2))\n (lambda: hit(note(3)))()\n", hit)
        assert keys.patch(run) == 0
        assert heard(hit, lambda: run(int)) == [(1, 0), (2, 0), (3, 0)]

    def test_every_closure_of_one_code(self, keys, hit):
        text = "def run(note):\n def inner(x):\n  hit(note(x))\n return inner\n"
        run = make(text, hit)
        notes = Notes()
        before = run(notes)
        assert keys.patch(run) == 1
        after = run(notes)
        assert before.__code__ is after.__code__
        assert is_off(lambda: (before(1), after(2)), notes)
        assert heard(hit, lambda: (before(1), after(2))) == [(1, 0), (2, 0)]

    def test_functions_that_share_their_code(self, keys, hit):
        run = make("def run(note):\n hit(note(1))\n", hit)
        keys.patch(run)
        same = types.FunctionType(run.__code__, run.__globals__, "same")
        notes = Notes()
        assert is_off(lambda: same(notes), notes)
        assert heard(hit, lambda: same(int)) == [(1, 0)]
        assert keys.patch(same) == 0, "the code is known"

    def test_the_attribute_of_a_header(self, keys, hit, tmp_path):
        path = tmp_path / "toy.h"
        path.write_text(
            "#undef TRACE_SYSTEM\n#define TRACE_SYSTEM skey\n#include <linux/tracepoint.h>\n"
            "TRACE_EVENT(skey_one, TP_PROTO(int n), TP_ARGS(n), TP_STRUCT__entry(__field(int, n)),\n"
            'TP_fast_assign(__entry->n = n;), TP_printk("%d", __entry->n));\n#include <trace/define_trace.h>\n'
        )
        header = load(path, tracing=Tracing(mechanism.DEFAULT))
        run = keys.sites(make("def run(note):\n kmem.trace_skey_one(note(1))\n", hit, kmem=header))
        notes = Notes()
        assert is_off(lambda: run(notes), notes)
        with header.trace_skey_one.register(lambda n: None):
            run(notes)
        assert notes == [1]

    def test_a_global_that_comes_later(self, keys, hit):
        run = make("def run(note):\n late(note(1))\n", hit)
        assert keys.patch(run) == 0
        run.__globals__["late"] = hit
        assert keys.patch(run) == 1
        assert keys.patch(run) == 0


class TestImports:
    @pytest.fixture
    def notes(self, hit, monkeypatch):
        made = Notes()
        monkeypatch.setitem(sys.modules, "sk_events", types.SimpleNamespace(hit=hit, note=made))
        yield made
        for name in [name for name in sys.modules if name.startswith("sk_mod")]:
            del sys.modules[name]

    TEXT = "from sk_events import hit, note\ndef run():\n    hit(note(1))\n"

    def test_the_loader_is_the_modules_own(self, keys, notes, tmp_path, monkeypatch):
        (tmp_path / "sk_mod.py").write_text(self.TEXT)
        monkeypatch.syspath_prepend(str(tmp_path))
        keys.static_keys("sk_mod")
        module = importlib.import_module("sk_mod")
        assert type(module.__loader__) is importlib.machinery.SourceFileLoader
        assert module.__spec__.loader is module.__loader__
        assert "def run" in inspect.getsource(module)
        assert is_off(module.run, notes)
        again = importlib.reload(module)
        assert is_off(again.run, notes)

    def test_packages_and_submodules(self, keys, notes, tmp_path, monkeypatch):
        folder = tmp_path / "sk_mod_pack"
        folder.mkdir()
        (folder / "__init__.py").write_text(self.TEXT)
        (folder / "sub.py").write_text(self.TEXT)
        (tmp_path / "sk_mod_packer.py").write_text(self.TEXT)
        monkeypatch.syspath_prepend(str(tmp_path))
        keys.static_keys("sk_mod_pack")
        assert is_off(importlib.import_module("sk_mod_pack").run, notes)
        assert is_off(importlib.import_module("sk_mod_pack.sub").run, notes)
        assert not is_off(importlib.import_module("sk_mod_packer").run, notes)

    def test_out_of_a_zip_file(self, keys, notes, tmp_path, monkeypatch):
        with zipfile.ZipFile(tmp_path / "x.zip", "w") as file:
            file.writestr("sk_mod_a.py", self.TEXT)
            file.writestr("sk_mod_b.py", self.TEXT)
        monkeypatch.syspath_prepend(str(tmp_path / "x.zip"))
        keys.static_keys("sk_mod_a", "sk_mod_b")
        for name in ("sk_mod_a", "sk_mod_b"):
            assert is_off(importlib.import_module(name).run, notes)

    def test_byte_code_without_source(self, keys, notes, tmp_path, monkeypatch):
        code = compile(self.TEXT, "gone.py", "exec")
        head = importlib.util.MAGIC_NUMBER + bytes(12)
        (tmp_path / "sk_mod.pyc").write_bytes(head + marshal.dumps(code))
        monkeypatch.syspath_prepend(str(tmp_path))
        keys.static_keys("sk_mod")
        assert is_off(importlib.import_module("sk_mod").run, notes)

    @pytest.mark.thorough
    def test_frozen_modules_and_extensions_are_imported_as_ever(self, keys, hit, monkeypatch):
        keys.static_keys()
        for name in ("__hello__", "_bisect"):
            monkeypatch.delitem(sys.modules, name, raising=False)
            assert importlib.import_module(name).__spec__.loader is not None

    def test_a_module_that_fails_fails_as_ever(self, keys, notes, tmp_path, monkeypatch):
        (tmp_path / "sk_mod.py").write_text("1 / 0\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        keys.static_keys("sk_mod")
        with pytest.raises(ZeroDivisionError):
            importlib.import_module("sk_mod")
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("sk_mod_nosuch")

    @pytest.mark.thorough
    def test_runpy_and_doctest(self, keys, notes, tmp_path, monkeypatch):
        path = tmp_path / "sk_mod_main.py"
        path.write_text(self.TEXT + 'run()\n"""\n"""\n')
        monkeypatch.syspath_prepend(str(tmp_path))
        keys.static_keys()
        runpy.run_module("sk_mod_main", run_name="__main__")
        assert notes == [1], "the main module is run without being imported: its calls are calls"
        text = ">>> from sk_events import hit, note\n>>> def run():\n...     hit(note(2))\n...     return 3\n>>> run()\n3\n"
        test = doctest.DocTestParser().get_doctest(text, {}, "text", None, 0)
        assert doctest.DocTestRunner().run(test).failed == 0
        assert notes == [1, 2]


@pytest.mark.parametrize(
    "flags", [[], ["-O"], ["-OO"], ["-X", "dev"], ["-W", "error"], ["-X", "frozen_modules=on"]]
)
def test_in_a_program_of_its_own(c_core, keys, tmp_path, flags):
    text = f"""
import sys; sys.path.insert(0, {str(SOURCE)!r})
import tracepoint
from tracepoint import u64
@tracepoint.trace_event(system="own", printk='"%llu", n')
def hit(n: u64) -> None: ...
notes = []
@tracepoint.sites
def run():
    hit(notes.append(1) or 1)
    return 5
if not tracepoint.static_keys():
    print("off")
def repeat():
    return [run() for _ in range(100)] == [5] * 100
print(repeat(), len(notes))
hit.enable()
print(repeat(), len(notes), len(tracepoint.tracing.records()))
hit.disable()
print(repeat(), len(notes))
"""
    if not c_core.__file__.startswith(str(SOURCE)):
        pytest.skip("the core is not installed: run setup.py build_ext --inplace")
    done = subprocess.run([sys.executable, *flags, "-c", text], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("True 0\nTrue 100 100\nTrue 100\n", "")
