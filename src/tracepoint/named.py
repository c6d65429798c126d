"""`NamedTuple`, made in a ninth of the time: a command makes a hundred such classes before it begins.

`typing.NamedTuple` compiles a constructor for each class and each of its annotations: 0.1 ms a class with
Python 3.11.  Type checkers see that one.  Here a class is made of what its body says, and a constructor that
knows defaults and keywords is compiled when it is first called with some.  The module of such a class has
`from __future__ import annotations`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from inspect import Signature
    from typing import Any, Self
    from typing import NamedTuple as NamedTuple  # noqa: PLC0414 - for other modules
else:
    try:
        # What makes the fields of `collections.namedtuple`: twice as fast as a property.
        from _collections import _tuplegetter as _field
    except ImportError:
        from operator import itemgetter

        def _field(at: int, doc: str) -> property:
            return property(itemgetter(at), doc=doc)

    class _Made(type):
        """Makes the class: its annotations become fields, in their order."""

        def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> Self:
            """Make a class of fields, or one that is derived from such a class."""
            if bases[0].__bases__ == (tuple,):
                fields = tuple(body.get("__annotations__", ()))
                defaults = {field: body[field] for field in fields if field in body}
                for field in fields[: len(fields) - len(defaults)]:
                    if field in defaults:
                        raise TypeError(f"{name}: a field without a default follows {field}, which has one")
                for at, field in enumerate(fields):
                    body[field] = _field(at, f"Alias for field number {at}")
                body["_fields"] = body["__match_args__"] = fields
                body["_field_defaults"] = defaults
                body["__slots__"] = ()
            return super().__new__(cls, name, bases, body)

        @property
        def __signature__(cls) -> Signature:
            """The fields as parameters, for `inspect.signature` and `help`."""
            from inspect import Parameter, Signature  # noqa: PLC0415 - only documentation asks

            none, kinds, defaults = Parameter.empty, cls.__annotations__, cls._field_defaults
            return Signature(
                [
                    Parameter(
                        field,
                        Parameter.POSITIONAL_OR_KEYWORD,
                        default=defaults.get(field, none),
                        annotation=kinds.get(field, none),
                    )
                    for field in cls._fields
                ]
            )

    def _compiled_order(cls: type[NamedTuple]) -> Callable[..., tuple[Any, ...]]:
        """Return what puts values, keywords and defaults in the order of the fields; it refuses as calls."""
        # The names of fields come from the body of a class: they are identifiers.
        names = ", ".join(cls._fields)
        order = eval(f"lambda {names}: ({names},)", {"__builtins__": {}})  # noqa: S307
        order.__name__ = order.__qualname__ = cls.__name__
        order.__defaults__ = tuple(cls._field_defaults.values())
        cls._order = staticmethod(order)
        return order

    _new = tuple.__new__

    class NamedTuple(tuple, metaclass=_Made):
        """A tuple whose items have names; see `typing.NamedTuple`.

        >>> class Place(NamedTuple):
        ...     offset: int
        ...     size: int = 4
        >>> Place(8), Place(size=2, offset=0)._replace(size=1)
        (Place(offset=8, size=4), Place(offset=0, size=1))
        """

        __slots__ = ()
        # Without annotations: `typing.get_type_hints` takes those of all bases.
        _fields = ()
        _field_defaults = {}  # noqa: RUF012
        _order = None

        def __new__(cls, *values: Any, **named: Any) -> Self:
            """Make one of values in the order of the fields, of keywords, or of both."""
            if named or len(values) != len(cls._fields):
                values = (cls._order or _compiled_order(cls))(*values, **named)
            return _new(cls, values)

        @classmethod
        def _make(cls, values: Iterable[Any]) -> Self:
            """Make one of all its values."""
            return cls(*values)

        def _replace(self, /, **named: Any) -> Self:
            """Return a copy with other values for some fields."""
            return type(self)(**{**self._asdict(), **named})

        def _asdict(self) -> dict[str, Any]:
            """Return the values by the names of their fields."""
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self) -> str:
            """Show the fields with their names."""
            shown = ", ".join(f"{name}={value!r}" for name, value in self._asdict().items())
            return f"{type(self).__name__}({shown})"

        def __getnewargs__(self) -> tuple[Any, ...]:
            """Return what `__new__` takes, for `copy` and `pickle`."""
            return tuple(self)
