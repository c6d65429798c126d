"""An event is an object as functions are: an instance, with names and a signature, pickled by its name."""

from __future__ import annotations

import abc
import collections.abc
import copy
import ctypes
import doctest
import functools
import gc
import inspect
import pickle
import pydoc
import sys
import types
import typing
import weakref
from types import SimpleNamespace

import pytest

from tracepoint.model.python.declare import declare
from tracepoint.model.python.fields import scalar
from tracepoint.model.python.types import char_array, float32, u32

NAMES = ("__doc__", "__module__", "__name__", "__qualname__", "__signature__")
HOME = "tracepoint.runtime.declare.named"
MODULE = '''
"""A shop."""
from tracepoint.model.python.types import u32

@trace_event(system="shop", printk='"n=%u", n')
def sold(n: u32) -> None:
    """Somebody bought."""

class Returned(TraceEvent, system="shop"):
    n: u32
    printk = '"n=%u", n'

class Desk:
    @trace_event(system="shop", printk='"n=%u", n')
    def closed(n: u32) -> None: ...

'''


@pytest.fixture
def shop(runtime, monkeypatch):
    """A module that declares events as programs do."""
    module = types.ModuleType("shop_of_tests")
    module.__dict__.update(trace_event=runtime.trace_event, TraceEvent=runtime.TraceEvent)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(MODULE, "<shop>", "exec", dont_inherit=True), module.__dict__)
    return module


def test_types_and_source_are_those_of_the_declaration(shop, modelled, runtime):
    number = {"n": int, "return": type(None)}
    assert [typing.get_type_hints(event) for event in (shop.sold, shop.Returned)] == [number, number]
    assert typing.get_type_hints(modelled) == {"return": type(None)}
    assert inspect.get_annotations(shop.sold) == {"n": u32, "return": None}

    class Worked(runtime.TraceEvent, system="shop"):
        n: u32
        printk = '"n=%u", n'

        def assign(self, amount: SimpleNamespace) -> None:
            """Say what it was."""

    assert typing.get_type_hints(Worked)["amount"] is SimpleNamespace
    assert "Say what it was" in inspect.getsource(Worked)


def test_doctest_finds_those_of_functions(shop):
    shop.sold.__wrapped__.__doc__ = None
    assert "shop_of_tests.sold" in {
        test.name for test in doctest.DocTestFinder(exclude_empty=False).find(shop)
    }


def test_every_event_is_a_trace_event_and_nothing_else_is(shop, modelled, runtime):
    for event in (shop.sold, shop.Returned, shop.Desk.closed, modelled):
        assert isinstance(event, runtime.TraceEvent)
    for thing in (shop, shop.Desk, runtime.TraceEvent, print, None):
        assert not isinstance(thing, runtime.TraceEvent)


@pytest.fixture
def modelled(runtime):
    """An event that no function or class declares."""
    return runtime.make_tracepoint(
        declare("modelled", system="shop", proto="int n", struct=[scalar("int", "n")], printk='"n=%d", n')
    )


@pytest.fixture(params=["sold", "Returned", "Desk.closed", "modelled"])
def event(request, shop):
    """One of each way to declare an event."""
    if request.param == "modelled":
        return request.getfixturevalue("modelled")
    return functools.reduce(getattr, request.param.split("."), shop)


def test_it_is_an_instance(event):
    assert not inspect.isclass(event)
    assert not issubclass(type(event), type)
    assert event.__class__ is type(event)
    assert callable(event)
    assert isinstance(event, collections.abc.Callable)
    assert isinstance(event, collections.abc.Hashable)
    assert {event: 1}[event] == 1


def test_it_is_no_class_to_ask_or_build_on(event):
    for ask in (
        lambda: isinstance(1, event),
        lambda: issubclass(int, event),
        lambda: type("Sub", (event,), {}),
        lambda: types.new_class("Sub", (event,)),
        lambda: event[int],
        lambda: super(event, event),
    ):
        with pytest.raises(TypeError):
            ask()
    with pytest.raises(TypeError, match=f"{event.name} is an event, not a class"):

        class _Sub(event): ...

    with pytest.raises(TypeError):

        class _Both(SimpleNamespace, event): ...


def test_names_are_those_of_the_declaration(shop, modelled):
    assert [getattr(shop.sold, name) for name in NAMES[1:4]] == ["shop_of_tests", "sold", "sold"]
    assert [getattr(shop.Returned, name) for name in NAMES[1:4]] == ["shop_of_tests", "Returned", "Returned"]
    assert [getattr(shop.Desk.closed, n) for n in NAMES[1:4]] == ["shop_of_tests", "closed", "Desk.closed"]
    assert [getattr(modelled, name) for name in NAMES[1:4]] == [HOME, "modelled", "shop:modelled"]
    assert inspect.getmodule(shop.sold) is shop


def test_signatures(runtime):
    @runtime.trace_event(system="shop", printk='"%u", n')
    def sold(n: u32, who: str = "nobody") -> None: ...

    class Fields(runtime.TraceEvent, system="shop"):
        n: u32
        share: float32
        printk = '"%u", n'

    class Assigned(runtime.TraceEvent, system="shop"):
        n: u32
        printk = '"%u", n'

        def assign(self, order: object, extra: int = 0) -> None:
            self.n = order.n

    assert list(inspect.signature(sold).parameters) == ["n", "who"]
    assert inspect.signature(sold).parameters["who"].default == "nobody"
    assert str(inspect.signature(Fields)) == "(n: 'u32', share: 'float32') -> None"
    assert str(inspect.signature(Assigned)) == "(order: 'object', extra: 'int' = 0) -> None"


def test_the_signature_of_what_no_function_declares(modelled):
    assert str(inspect.signature(modelled)) == "(n) -> None"


def test_pickles_name_the_module_as_those_of_functions(shop):
    for event, name in ((shop.sold, b"sold"), (shop.Returned, b"Returned"), (shop.Desk.closed, b"closed")):
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            text = pickle.dumps(event, protocol)
            assert b"shop_of_tests" in text
            assert name in text
            assert pickle.loads(text) is event


def test_a_pickle_of_an_event_that_is_gone_says_so(shop):
    text = pickle.dumps(shop.sold)
    del shop.sold
    with pytest.raises(AttributeError, match="sold"):
        pickle.loads(text)
    del sys.modules[shop.__name__]
    with pytest.raises(ModuleNotFoundError, match="shop_of_tests"):
        pickle.loads(text)


def test_what_is_not_found_by_its_module_is_pickled_by_the_events_name(shop, modelled):
    sold = shop.sold
    shop.sold = None
    for event in (sold, modelled):
        text = pickle.dumps(event)
        assert pickle.loads(text) is event
        with pytest.raises(AttributeError, match=r"event 'shop:.*' is not declared in this process"):
            pickle.loads(text.replace(event.name.encode(), event.name[:-1].encode() + b"_"))


def test_copies_are_the_event(event):
    assert copy.copy(event) is event
    assert copy.deepcopy({"of": [event]}) == {"of": [event]}


def test_a_wrapper_takes_the_names_and_nothing_else(event):
    @functools.wraps(event)
    def wrapper(*args):
        return event(*args)

    assert (wrapper.__name__, wrapper.__module__) == (event.__name__, event.__module__)
    assert (wrapper.__qualname__, wrapper.__doc__) == (event.__qualname__, event.__doc__)
    assert set(vars(wrapper)) == {"__wrapped__"}
    assert inspect.signature(wrapper) == inspect.signature(event)
    with pytest.raises(TypeError, match="__dict__"):
        vars(event)


def test_dir_lists_what_is_there(event):
    names = dir(event)
    assert {*NAMES, "__call__", "enable", "filter", "name", "register"} <= set(names)
    assert [name for name in names if not hasattr(event, name)] == []
    assert len(names) == len(set(names))


def test_help_shows_the_call_the_docstring_and_the_fields(shop, runtime):
    shown = pydoc.plain(pydoc.render_doc(shop.sold))
    assert "in module shop_of_tests" in shown
    for line in ("Somebody bought.", "sold(n: u32) -> None", "Fields of its record:"):
        assert f"\n    {line}" in shown or f"\n        {line}" in shown
    assert "class Tracepoint" not in shown

    @runtime.trace_event(system="shop", printk='"%u", n')
    def many(n: u32, name: char_array[8] = "x", *, share: float32 = 0.5) -> None: ...

    assert "    many(n: u32, name: char_array[8] = 'x', *, share: float32 = 0.5) -> None\n" in many.__doc__
    assert f"    {'name':36} char[8]\n" in many.__doc__


class TestWhatTakesItForAType:
    """C code that asks PyType_Check() believes so; the core's events only."""

    @pytest.fixture
    def sold(self, request, c_core):
        event = c_core.Tracepoint("shop:sold", ("n",), (("n", 0, 0, 8, 8, 0, 0),), 16, 16)
        yield event
        # Whatever was asked, it fires and goes.
        heard = []
        event.set_entries((("probe", heard.append),))
        event(3)
        assert heard == [3]
        event.set_entries(())

    def test_it_is_taken_for_one(self, sold):
        flags = type(sold).__flags__
        assert flags & 1 << 31, "Py_TPFLAGS_TYPE_SUBCLASS: else the interpreter calls it the slow way"

    def test_it_cannot_be_used_as_one(self, sold):
        class Plain: ...

        def set_bases():
            Plain.__bases__ = (sold,)

        def set_class():
            Plain().__class__ = sold

        def raise_it():
            raise sold

        for use in (
            set_bases,
            set_class,
            raise_it,
            lambda: object.__new__(sold),
            lambda: type.__call__(sold),
            lambda: type.__subclasses__(sold),
            lambda: type.mro(sold),
            lambda: type.__dict__["__dict__"].__get__(sold),
            lambda: type.__dict__["__name__"].__get__(sold),
            lambda: type.__setattr__(sold, "x", 1),
            lambda: type("Sub", (Plain, sold), {}),
            lambda: abc.ABCMeta("Sub", (sold,), {}),
            lambda: ctypes.Structure.__new__(sold),
            lambda: ctypes.POINTER(sold),
            lambda: (n for n in ()).throw(sold),
        ):
            with pytest.raises(TypeError):
                use()

    def test_it_has_no_bases_and_no_members(self, sold):
        api = ctypes.pythonapi
        api._PyType_Lookup.restype = ctypes.c_void_p
        for name in ("__init__", "n_faults", "x", "__doc__"):
            assert api._PyType_Lookup(ctypes.py_object(sold), ctypes.py_object(name)) is None
        for other in (object, type, int, type(sold)):
            assert not issubclass(sold, other)
            assert not api.PyType_IsSubtype(ctypes.py_object(sold), ctypes.py_object(other))
        assert not isinstance(sold, type)

    def test_patterns_unions_and_handlers(self, sold):
        def match():
            match 1:
                case sold():
                    pass

        def handle():
            try:
                raise ValueError
            except sold:
                pass

        with pytest.raises(TypeError, match="is an event, not a class"):
            match()
        with pytest.raises(TypeError, match="catching classes"):
            handle()
        assert repr(int | sold) == "int | <tracepoint shop:sold>"

    def test_calls_and_attributes_that_the_interpreter_has_specialised(self, sold):
        heard = []

        def use(event):
            event(7)
            event(n=8)
            return event.n_faults, event.name, event.__copy__(), event.__doc__, bool(event)

        for _ in range(100):
            assert use(sold) == (0, "shop:sold", sold, None, False)
        sold.set_entries((("probe", heard.append),))
        for _ in range(100):
            assert use(sold) == (0, "shop:sold", sold, None, True)
        assert heard == [7, 8] * 100
        # The same places, now with a class and a function.
        for other in (lambda n: n, type("Other", (), {"__init__": lambda self, n: None})):
            with pytest.raises(AttributeError):
                use(other)

    def test_they_go_without_leaving_references(self, c_core):
        def make():
            event = c_core.Tracepoint("a:b", ("x",), (("x", 0, 1, 8, 4, 0, 0),), 16, 16)
            return weakref.ref(event)

        make()
        gc.collect()
        before = sys.getrefcount(c_core.Tracepoint), len(gc.get_objects())
        assert [make()() for _ in range(1000)] == [None] * 1000
        after = sys.getrefcount(c_core.Tracepoint), len(gc.get_objects())
        assert after[0] == before[0]
        assert after[1] - before[1] < 100
