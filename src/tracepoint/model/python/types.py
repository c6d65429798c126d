"""Events from annotated Python functions and classes; no event fires here.

The integer types are `Annotated` aliases: a type checker sees `int`, the model sees `u32`.
"""

from __future__ import annotations

import inspect
import re
import typing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from tracepoint.errors import SourceError, TracepointError
from tracepoint.model.event import Event, Param, Proto
from tracepoint.model.python.declare import declare
from tracepoint.model.python.fields import array, scalar, string

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tracepoint.model.field import Field


class DeclarationTypeError(TracepointError, TypeError):
    """A Python function or class that cannot be an event: its message says which parameter."""


@dataclass(frozen=True, slots=True)
class CScalar:
    """What an annotation carries for one value: the C type of field and parameter."""

    ctype: str


@dataclass(frozen=True, slots=True)
class CString:
    """What an annotation carries for a string of any length (`__string`)."""


@dataclass(frozen=True, slots=True)
class CArray:
    """What an annotation carries for `length` elements inside the record (`__array`)."""

    ctype: str
    length: int


u8 = Annotated[int, CScalar("u8")]
u16 = Annotated[int, CScalar("u16")]
u32 = Annotated[int, CScalar("u32")]
u64 = Annotated[int, CScalar("u64")]
s8 = Annotated[int, CScalar("s8")]
s16 = Annotated[int, CScalar("s16")]
s32 = Annotated[int, CScalar("s32")]
s64 = Annotated[int, CScalar("s64")]
float32 = Annotated[float, CScalar("float")]
double = Annotated[float, CScalar("double")]
string_t = Annotated[str, CString()]


# mypy takes this for true.
MYPY = False

if TYPE_CHECKING:
    if MYPY:
        from tracepoint.model.char_arrays import char_array as char_array  # noqa: PLC0414 - mypy wants it so
    else:

        class char_array(Protocol):  # noqa: N801 - it is used as a function
            """What takes any text, and a length in brackets."""

            def isidentifier(self) -> bool:
                """Be a text."""

            def __class_getitem__(cls, length: int) -> Any: ...


class _CharArray:
    """Makes `char_array[16]`, an annotation for at most 15 characters and a NUL in the record."""

    def __getitem__(self, length: int) -> Any:
        if not isinstance(length, int) or isinstance(length, bool) or not 0 < length <= 0xFFFF:
            raise DeclarationTypeError(f"char_array[{length!r}]: a length from 1 to 65535 is wanted")
        return Annotated[str, CArray("char", length)]


if not TYPE_CHECKING:
    #: `name: char_array[16]`.
    char_array = _CharArray()

_PLAIN: dict[object, CScalar | CString] = {
    bool: CScalar("bool"),
    int: CScalar("s64"),
    float: CScalar("double"),
    str: CString(),
}


def annotation_named(name: str) -> Any:
    """Return the annotation with a name, of this module or built in; None for other names.

    >>> annotation_named("u32") == u32, annotation_named("str"), annotation_named("list")
    (True, <class 'str'>, None)
    """
    plain = {kind.__name__: kind for kind in _PLAIN if isinstance(kind, type)}
    found = globals().get(name)
    is_ours = any(isinstance(extra, (CScalar, CString)) for extra in getattr(found, "__metadata__", ()))
    return found if is_ours else plain.get(name)


def event_from_function(
    function: Callable[..., object], *, system: str, printk: str, name: str = "", assign: str = ""
) -> Event:
    """Make an event of a function's signature: each parameter is recorded in a field of its name.

    Parameters are annotated with the types of this module, or with `bool`, `int` (s64), `float`
    (double) and `str`.  `name` is the function's own unless given.  Raises DeclarationTypeError
    for a parameter that cannot be recorded.

    >>> def order_placed(order_id: u64, customer: str) -> None: ...
    >>> event = event_from_function(order_placed, system="shop", printk='"%llu %s", order_id, customer')
    >>> [f.macro for f in event.fields], event.printk.text
    (['__field', '__string'], '"%llu %s", __entry->order_id, __get_str(customer)')
    """
    name = name or getattr(function, "__name__", "")
    params, struct = [], []
    signature = _signature(function)
    hints = _hints(function, name)
    for parameter in signature.parameters.values():
        what = f"{name}(): parameter {parameter.name!r}"
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise DeclarationTypeError(
                f"{what} stands for any number of arguments; a record has a fixed number"
            )
        if parameter.name not in hints:
            raise DeclarationTypeError(f"{what} has no annotation; say which type is recorded, such as u32")
        marker = _marker(hints[parameter.name], what)
        params.append(Param(_param_type(marker), parameter.name))
        struct.append(_field(marker, parameter.name))
    return declare(
        name, system=system, proto=Proto(tuple(params)), struct=struct, assign=assign or {}, printk=printk
    )


def event_from_class(cls: type, *, system: str = "", name: str = "") -> Event:
    """Make an event of a class whose annotations are the fields and whose `printk` is the format.

    With a method `assign(self, ...)`, its parameters are the prototype and the assignment is the
    method's own (the model's is then empty: Python assigns); without one, each field is a parameter.
    `system` is the class's attribute of that name, `name` the class's name in snake case, unless
    given.  Raises DeclarationTypeError for what cannot be recorded.

    >>> class OrderPlaced:
    ...     system = "shop"
    ...     order_id: u64
    ...     printk = '"order=%llu", order_id'
    >>> event_from_class(OrderPlaced).full_name
    'shop:order_placed'
    """
    name = name or snake_case(cls.__name__)
    printk = getattr(cls, "printk", None)
    if not isinstance(printk, str):
        raise DeclarationTypeError(f"class {cls.__name__} has no text printk; it is the print format")
    system = system or getattr(cls, "system", "")
    if not isinstance(system, str) or not system:
        raise DeclarationTypeError(f"class {cls.__name__} has no system; give system='...'")
    markers = {
        field: _marker(hint, f"class {cls.__name__}: field {field!r}")
        for field, hint in _hints(cls, cls.__name__).items()
        if field not in ("printk", "system") and not field.startswith("_")
    }
    struct = [_field(marker, field) for field, marker in markers.items()]
    method = cls.__dict__.get("assign")
    if method is None:
        proto = Proto(tuple(Param(_param_type(marker), field) for field, marker in markers.items()))
        return declare(name, system=system, proto=proto, struct=struct, assign={}, printk=printk)
    if not inspect.isfunction(method):
        raise DeclarationTypeError(f"class {cls.__name__}: assign is not a method")
    return declare(name, system=system, proto=_method_proto(method, cls), struct=struct, printk=printk)


def snake_case(name: str) -> str:
    """Return a class's name as events are named.

    >>> snake_case("HTTPRequestDone")
    'http_request_done'
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def _method_proto(method: Callable[..., object], cls: type) -> Proto:
    """Return the parameters of `assign`; an object of another class is passed by address, as in C."""
    params = []
    found = list(inspect.signature(method).parameters.values())
    if not found:
        raise DeclarationTypeError(f"class {cls.__name__}: assign takes nothing; its first parameter is self")
    for parameter in found[1:]:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise DeclarationTypeError(
                f"class {cls.__name__}: assign takes any number of arguments; a prototype has a fixed number"
            )
        params.append(Param(_method_type(method, parameter), parameter.name))
    return Proto(tuple(params))


def _method_type(method: Callable[..., object], parameter: inspect.Parameter) -> str:
    annotation = parameter.annotation
    if annotation is parameter.empty:
        return "void *"
    if isinstance(annotation, str):
        resolved = method.__globals__.get(annotation, annotation)
        annotation = {"int": int, "str": str, "bool": bool, "float": float}.get(annotation, resolved)
    try:
        return _param_type(_marker(annotation, parameter.name))
    except DeclarationTypeError:
        name = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
        return f"struct {name} *" if name.isidentifier() else "void *"


def _signature(function: Callable[..., object]) -> inspect.Signature:
    if not callable(function) or isinstance(function, type):
        raise DeclarationTypeError(f"an event is declared by a function, not by {function!r}")
    try:
        return inspect.signature(function)
    except (ValueError, TypeError) as error:
        raise DeclarationTypeError(f"{function!r} tells no parameters: {error}") from None


def _hints(thing: Any, name: str) -> Mapping[str, Any]:
    try:
        return typing.get_type_hints(thing, include_extras=True)
    except (NameError, TypeError, SyntaxError, AttributeError) as error:
        raise DeclarationTypeError(f"{name}: an annotation cannot be understood: {error}") from None


def _marker(hint: Any, what: str) -> CScalar | CString | CArray:
    for extra in getattr(hint, "__metadata__", ()):
        if isinstance(extra, (CScalar, CString, CArray)):
            return extra
    try:
        marker = _PLAIN.get(hint)
    except TypeError:  # an annotation that is not hashable
        marker = None
    if marker is None:
        raise DeclarationTypeError(
            f"{what}: {getattr(hint, '__name__', hint)!s} cannot be recorded; {_use_instead(hint)}"
        )
    return marker


def _use_instead(hint: Any) -> str:
    if hint in (bytes, bytearray, memoryview):
        return "use str: bytes may be given too"
    origin = typing.get_origin(hint) or hint
    if origin in (list, tuple, set, dict):
        return "arrays are declared with declare() and dynamic_array(), see make_tracepoint()"
    if isinstance(hint, type) and issubclass(hint, int):
        return "use int, or u8 to u64 and s8 to s64: a value of it may be given"
    if isinstance(hint, type(char_array)):
        return "say how long it is, such as char_array[16]"
    return "use u8 to u64, s8 to s64, bool, double, str or char_array[N]"


def _param_type(marker: CScalar | CString | CArray) -> str:
    match marker:
        case CScalar(ctype):
            return ctype
        case CString():
            return "const char *"
        case CArray(ctype, _):
            return f"const {ctype} *"


def _field(marker: CScalar | CString | CArray, name: str) -> Field:
    try:
        match marker:
            case CScalar(ctype):
                return scalar(ctype, name)
            case CString():
                return string(name)
            case CArray(ctype, length):
                return array(ctype, name, length)
    except SourceError as error:
        raise DeclarationTypeError(str(error)) from None
