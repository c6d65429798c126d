"""Our `NamedTuple` behaves as that of `typing` does."""

from __future__ import annotations

import copy
import inspect
import pickle
import typing

import pytest

from tracepoint.named import NamedTuple


class Ours(NamedTuple):
    """A place."""

    offset: int
    size: int = 4
    name: str = "x"

    @property
    def end(self) -> int:
        return self.offset + self.size


class Theirs(typing.NamedTuple):
    """A place."""

    offset: int
    size: int = 4
    name: str = "x"

    @property
    def end(self) -> int:
        return self.offset + self.size


class Derived(Ours):
    """One with a method more."""

    def twice(self) -> int:
        return 2 * self.size


CALLS = [((1,), {}), ((1, 2, "y"), {}), ((1,), {"name": "z"}), ((), {"name": "z", "offset": 3}), ((1, 2), {})]


@pytest.mark.parametrize(("values", "named"), CALLS)
def test_values_keywords_and_defaults(values, named):
    ours, theirs = Ours(*values, **named), Theirs(*values, **named)
    assert ours == theirs
    assert (ours.offset, ours.size, ours.name, ours.end) == (*theirs, theirs.end)
    assert repr(ours) == repr(theirs).replace("Theirs", "Ours")
    assert ours._asdict() == theirs._asdict()
    assert ours._replace(size=9) == theirs._replace(size=9)
    assert hash(ours) == hash(theirs)
    for same in (copy.copy(ours), copy.deepcopy(ours), pickle.loads(pickle.dumps(ours)), Ours._make(ours)):
        assert (type(same), same) == (Ours, ours)
    match ours:
        case Ours(offset, size, name=name):
            assert (offset, size, name) == ours


@pytest.mark.parametrize(
    ("values", "named"), [((), {}), ((1, 2, "a", 3), {}), ((1,), {"offset": 1}), ((1,), {"place": 1})]
)
def test_what_a_call_refuses_names_the_class(values, named):
    with pytest.raises(TypeError):
        Theirs(*values, **named)
    with pytest.raises(TypeError, match="Ours"):
        Ours(*values, **named)
    with pytest.raises(TypeError, match="place"):
        Ours(1)._replace(place=1)


def test_what_tools_ask_of_a_class():
    assert (Ours._fields, Ours._field_defaults) == (Theirs._fields, Theirs._field_defaults)
    assert Ours.__match_args__ == Theirs.__match_args__
    assert typing.get_type_hints(Ours) == typing.get_type_hints(Theirs)
    assert list(inspect.signature(Ours).parameters) == list(inspect.signature(Theirs).parameters)
    assert inspect.signature(Ours).parameters["size"].default == 4
    assert inspect.getdoc(Ours) == "A place."
    assert not hasattr(Ours(1), "__dict__")
    with pytest.raises(AttributeError):
        Ours(1).size = 3


def test_a_class_may_be_derived():
    made = Derived(1, name="y")
    assert (made, made.twice(), made.end) == ((1, 4, "y"), 8, 5)
    assert repr(made) == "Derived(offset=1, size=4, name='y')"


def test_a_default_comes_after_what_has_none():
    with pytest.raises(TypeError, match="without a default follows size"):

        class Wrong(NamedTuple):
            size: int = 4
            offset: int
