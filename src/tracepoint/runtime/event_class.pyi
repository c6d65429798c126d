"""What type checkers take the class of an event for; nothing of this is there at run time.

pyright checks the calls: the parameters are the fields, or those of `assign` where the class has one.
mypy does not look at `__call__` of a metaclass and would want the fields from a class with `assign`:
it sees the methods only.
"""

from typing import ParamSpec, Protocol

from typing_extensions import dataclass_transform

from tracepoint.runtime.declare.event import EventMethods

# mypy takes this for true.
MYPY: bool

_P = ParamSpec("_P")

class _Assigning(Protocol[_P]):
    def assign(self, *args: _P.args, **kwargs: _P.kwargs) -> None: ...

class _Methods(EventMethods, type):  # type: ignore[misc]  # the methods are there, not abstract
    # Again, for pyright: it knows no property of a protocol in a metaclass.
    @property
    def filter(cls) -> str: ...
    @filter.setter  # noqa: A003 - tracefs's word
    def filter(cls, text: str) -> None: ...

if MYPY:  # noqa: PYI002 - the only way to tell the two apart
    EventMaker = _Methods
else:
    @dataclass_transform()
    class EventMaker(_Methods):
        # Not for a class without `assign`: that of the base gives an object.
        def __call__(cls: type[_Assigning[_P]], *args: _P.args, **kwargs: _P.kwargs) -> None: ...
