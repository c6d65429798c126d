"""What Python shows of an event: its names and signature, as a function has them, `dir()` and `help()`."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tracepoint.model.python.types import CArray, CScalar, CString

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tracepoint.layout.format import FieldFormat

#: How each is used; the sentence is that of the member's docstring.
_USES = {
    "register": "register(probe, data=..., prio=10)",
    "enable": "enable(instance=None)",
    "disable": "disable(instance=None)",
    "enabled": "enabled",
    "filter": "filter = 'FIELD > 1000'",
    "set_filter": "set_filter(text, instance)",
    "format": "format",
    "full_name": "full_name",
    "system": "system",
    "id": "id",
    "is_enabled_in": "is_enabled_in(instance)",
    "filter_in": "filter_in(instance)",
    "where": "",
    "event": "",
    "layout": "",
}
#: What it has as functions have it.
FUNCTION_NAMES = (
    "__doc__", "__module__", "__name__", "__qualname__", "__signature__", "__annotations__",
)  # fmt: skip
USER_NAMES = (*_USES, *FUNCTION_NAMES)
#: The module of events that no function or class declares: it finds events by name.
HOME = "tracepoint.runtime.declare.named"
_PLAIN_DEFAULTS = (str, bytes, int, float, type(None))


@dataclass(frozen=True, slots=True)
class Identity:
    """How an event can be found and called: `module` and `qualname` say where, as those of a function do."""

    module: str
    qualname: str
    signature: inspect.Signature
    #: The function that declares it, or `assign`: by it doctest takes the event for a routine, and names of
    #: types are looked up.
    wrapped: Callable[..., object] | None = None
    #: The types of a class without `assign`, whose names nothing else could look up.
    types: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The last part of the qualified name, of `shop:order_placed` too."""
        return self.qualname.rpartition(".")[2].rpartition(":")[2]

    def show_in(self, control: object, doc: str) -> None:
        """Give a control the attributes that a function has; its event answers with them."""
        values = (doc, self.module, self.name, self.qualname, self.signature, self.annotations)
        for name, value in zip(FUNCTION_NAMES, values, strict=True):
            # One by one: with __dict__, the interpreter finds all its attributes more slowly from then on.
            setattr(control, name, value)
        if self.wrapped is not None:
            control.__wrapped__ = self.wrapped  # type: ignore[attr-defined]

    @property
    def annotations(self) -> dict[str, Any]:
        """What `typing.get_type_hints()` reads: the types of the parameters, and of what a call returns."""
        found = {p.name: self.types.get(p.name, p.annotation) for p in self.signature.parameters.values()}
        known = {name: kind for name, kind in found.items() if kind is not inspect.Parameter.empty}
        return {**known, "return": self.signature.return_annotation}

    def usage(self) -> str:
        """Return the call as help() shows it: `order_placed(order: u32, customer: str) -> None`."""
        shown = [
            p.replace(annotation=_shown_type(p.annotation), default=_shown_default(p.default))
            for p in self.signature.parameters.values()
        ]
        return f"{self.name}{self.signature.replace(parameters=shown, return_annotation=None)}"


class _Bare(str):
    """A text that is shown without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _shown_type(annotation: Any) -> Any:
    """Return what stands for an annotation: the names that the user writes for the types of C."""
    for marker in getattr(annotation, "__metadata__", ()):
        match marker:
            case CScalar(ctype=ctype):
                return _Bare("float32" if ctype == "float" else ctype)
            case CArray(length=length):
                return _Bare(f"char_array[{length}]")
            case CString():
                return _Bare("str")
    if isinstance(annotation, type):
        return annotation if annotation is inspect.Parameter.empty else _Bare(annotation.__name__)
    return _Bare(annotation) if isinstance(annotation, str) else inspect.Parameter.empty


def _shown_default(default: object) -> object:
    is_plain = default is inspect.Parameter.empty or type(default) in (*_PLAIN_DEFAULTS, bool)
    return default if is_plain else _Bare("...")


def identity_without(full_name: str, names: Iterable[str]) -> Identity:
    """Return the identity of an event that no function or class declares; `names` are its parameters.

    >>> identity_without("shop:sold", ["n"]).usage()
    'sold(n) -> None'
    """
    return Identity(HOME, full_name, _signature(map(_parameter, names)))


def identity_of(
    declared_by: Callable[..., object], full_name: str, names: Iterable[str], method: Any = None
) -> Identity:
    """Return the identity of an event that a function or class declares.

    `names` are its parameters; `method` is what takes them in a class that has one.
    """
    module, qualname = (getattr(declared_by, name, None) for name in ("__module__", "__qualname__"))
    signature = _signature_of(declared_by, names, method)
    if not module or not qualname:
        return Identity(HOME, full_name, signature)
    wrapped = declared_by if inspect.isfunction(declared_by) else method
    # Names that cannot be resolved were refused when the event was made.
    types = {} if wrapped else inspect.get_annotations(declared_by, eval_str=True)
    return Identity(module, qualname, signature, wrapped, types)


def _signature_of(declared_by: Callable[..., object], names: Iterable[str], method: Any) -> inspect.Signature:
    if not isinstance(declared_by, type):
        return inspect.signature(declared_by)
    if method is not None:
        return _signature([*inspect.signature(method).parameters.values()][1:])
    hints = inspect.get_annotations(declared_by)
    return _signature(_parameter(name, hints.get(name, inspect.Parameter.empty)) for name in names)


def _parameter(name: str, annotation: object = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=annotation)


def _signature(parameters: Iterable[inspect.Parameter]) -> inspect.Signature:
    return inspect.Signature(list(parameters), return_annotation=None)


def event_doc(full_name: str, own: str, usage: str, fields: Iterable[FieldFormat], control: type) -> str:
    """Return the docstring of an event: the declaration's own, then what can be done with it.

    >>> print(event_doc("shop:sold", "Somebody bought.", "sold(n)", (), str).splitlines()[0])
    Somebody bought.
    """
    lines = [
        own.rstrip() or f"The trace event {full_name}.",
        "",
        "Calling it fires it: next to free while nothing listens, and it never raises.  It is true while",
        "something listens.",
        "",
        f"    {usage}",
        "",
        "Fields of its record:",
        "",
        *(f"    {field.name:36} {field.ctype}" for field in fields),
        "",
    ]
    for name, use in _USES.items():
        doc = getattr(getattr(control, name, None), "__doc__", None)
        if use and doc:
            lines.append(f"    {use:36} {doc.splitlines()[0]}")
    return "\n".join(lines)


def hook_doc(name: str, usage: str) -> str:
    """Return the docstring of a tracepoint without a record."""
    return f"The tracepoint {name}, without a record: `register(probe)` hears its calls.\n\n    {usage}"
