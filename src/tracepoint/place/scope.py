"""Check that the arguments of a call are valid at a place, as far as the file shows."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

from tracepoint.errors import PlaceError
from tracepoint.place.access import Follower, NoSuchMemberError, ValueType
from tracepoint.place.freed import freed_pointers
from tracepoint.place.members import count_dimensions
from tracepoint.place.names import all_declared, visible
from tracepoint.place.nulls import bad_pointers
from tracepoint.place.returns import RETURN_VALUE
from tracepoint.place.values import Certainty, has_value
from tracepoint.source.types import INTEGER_WORDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracepoint.place.arguments import Access, Argument
    from tracepoint.place.code import SourceCode
    from tracepoint.place.functions import Function
    from tracepoint.place.names import NamesOfFile
    from tracepoint.place.sites import Site
    from tracepoint.place.statements import StatementSpan
    from tracepoint.place.structs import Structs
    from tracepoint.place.variables import Variable

#: Names that every kernel file may use without naming them elsewhere.
_KERNEL_NAMES = frozenset(
    "current jiffies jiffies_64 init_mm init_task init_net nr_cpu_ids true false smp_processor_id "
    "__func__ system_wq boot_cpu_data swapper_pg_dir mem_map high_memory num_possible_cpus".split()
)
_MAX_COMPARED = 5000
_CONSTANT = re.compile(r"_*[A-Z][A-Z0-9_]*")
_CURRENT = "struct task_struct *"


class FunctionScope:
    """The names at one place of a function."""

    def __init__(
        self,
        code: SourceCode,
        function: Function,
        body: StatementSpan,
        site: Site,
        *,
        names: NamesOfFile,
        structs: Structs,
    ) -> None:
        self.code = code
        self.function = function
        self.body = body
        self.site = site
        self.names = names
        self.structs = structs
        self.visible = visible(code, site, function)
        self.notes: list[str] = []

    def check(self, arguments: Sequence[Argument], params: Sequence[tuple[str, str]]) -> list[str]:
        """Check all arguments; returns notes on what could not be checked.

        Raises PlaceError for an argument that cannot be evaluated at the place.
        """
        if params and len(params) != len(arguments):
            raise PlaceError(
                f"the event takes {len(params)} arguments ({', '.join(name for _, name in params)}), "
                f"not {len(arguments)}"
            )
        for argument in arguments:
            for name in argument.names:
                self._check_name(name, argument)
            for called in argument.called:
                self._check_called(called)
            for access in argument.accesses:
                self._follow(access)
        self._check_pointers(arguments)
        self._check_freed(arguments)
        for argument, (kind, name) in zip(arguments, params, strict=False):
            self._check_type(argument, kind, name)
        return self.notes

    def _check_pointers(self, arguments: Sequence[Argument]) -> None:
        """Refuse to follow a pointer that the `if` around the place has found to be invalid."""
        for name, (what, line) in bad_pointers(self.code, self.site).items():
            shape = self._shape_of(name)
            if shape is None or not shape.n_stars:
                continue
            for argument in arguments:
                if any(access.name == name and access.steps[0][1] for access in argument.accesses):
                    raise self._error(f"`{name}` is {what} here, as line {line} says: `{argument.text[:60]}`")
                if argument.plain == name:
                    said = f"`{name}` is {what} {self._where()}, as line {line} says"
                    self._note(f"{said}: the event must not follow it")

    def _check_freed(self, arguments: Sequence[Argument]) -> None:
        """Refuse to follow a pointer that was freed before the place; note one that may have been freed."""
        for name, (call, line, is_sure) in freed_pointers(self.code, self.site).items():
            for argument in arguments:
                follows = any(access.name == name and access.steps[0][1] for access in argument.accesses)
                if follows and is_sure:
                    raise self._error(
                        f"{call}() in line {line} has freed `{name}`: `{argument.text[:60]}` follows it"
                    )
                if follows or argument.plain == name:
                    said = "has freed" if is_sure else "may have freed"
                    self._note(f"{call}() in line {line} {said} `{name}`: the event must not follow it")

    def _check_called(self, name: str) -> None:
        is_known = name in self.names.used | self.names.declared or name in self.visible
        if not is_known and not self.structs.has_function(name):
            where = f"not declared in any include of {self.code.file.path}"
            if not self.structs.has_headers:
                where = f"not used elsewhere in {self.code.file.path}"
            self._note(f"{name}() is {where}: is its header included?")

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def _where(self) -> str:
        return f"in line {self.code.line(self.site.token)}"

    def _check_name(self, name: str, argument: Argument) -> None:
        variables = self.visible.get(name)
        if variables:
            self._check_variable(variables, is_addressed=name in argument.addressed)
            return
        if name in self.names.declared or name in _KERNEL_NAMES or _CONSTANT.fullmatch(name):
            return
        elsewhere = all_declared(self.code, self.body, self.function).get(name)
        if elsewhere:
            line = self.code.line(elsewhere[0].at)
            how = "only later" if elsewhere[0].at >= self.site.token else "in another block"
            raise self._error(f"`{name}` is declared {how}, in line {line}")
        if name in self.names.used:
            self._note(f"`{name}` is declared outside {self.code.file.path}: its type is not checked")
            return
        if self.structs.declares(name):
            return
        close = difflib.get_close_matches(name, [*self.visible, *self.names.declared][:_MAX_COMPARED], n=1)
        advice = f"; did you mean `{close[0]}`?" if close else ""
        raise self._error(f"`{name}` in the argument `{argument.text[:60]}` is not declared{advice}")

    def _error(self, reason: str) -> PlaceError:
        return self.code.error(f"{reason} (for the call {self._where()})", self.site.token)

    def _check_variable(self, variables: list[Variable], *, is_addressed: bool) -> None:
        variable = next((v for v in variables if self._is_compiled(v)), None)
        if variable is None:
            arm = self.code.arms[variables[0].at]
            text = arm.text if arm else ""
            if len(variables) < 2:
                raise self._error(f"`{variables[0].name}` is declared only under `{text}`")
            self._note(f"`{variables[0].name}` is declared under `{text}` and in other branches")
            return
        if variable.is_array:
            return
        certainty = has_value(self.code, self.body, variable, self.site)
        name = variable.name
        if certainty is Certainty.NEVER and is_addressed:
            self._note(
                f"`{name}` has no value {self._where()}: the event may record its address, not its value"
            )
        elif certainty is Certainty.NEVER:
            is_return = self.code.texts[self.site.token] == "return"
            advice = f": {RETURN_VALUE} is the returned value" if is_return else ""
            raise self._error(f"`{name}` has no value yet{advice}")
        if certainty is Certainty.SOMETIMES:
            self._note(
                f"`{name}` may have no value {self._where()}: it is assigned only on some paths before"
            )

    def _is_compiled(self, variable: Variable) -> bool:
        arm = self.code.arms[variable.at]
        return arm is None or arm.holds(self.site.arm)

    def _shape_of(self, name: str) -> ValueType | None:
        """Return the type of a variable, or None if it is not known."""
        variables = self.visible.get(name)
        if not variables:
            return ValueType(_CURRENT) if name == "current" and self.structs.has_headers else None
        variable = variables[0]
        return ValueType(variable.type, count_dimensions(self.code, variable)) if variable.type else None

    def _follow(self, access: Access) -> ValueType | None:
        """Return the type of an access, or None if it is not known."""
        first = self._shape_of(access.name)
        if first is None:
            return None
        follower = Follower(self.structs)
        try:
            return follower.follow(access, first)
        except NoSuchMemberError as error:
            raise self._error(str(error)) from None
        finally:
            for note in follower.notes:
                self._note(note)

    def _check_type(self, argument: Argument, wanted: str, param: str) -> None:
        """Compare the type of a variable or member with the parameter's, if both are known."""
        given = self._shape_of(argument.plain) if argument.plain else None
        if argument.plain == RETURN_VALUE:
            given = ValueType(self.function.returns)
        elif argument.access is not None:
            given = self._follow(argument.access)
        if given is None or not given.type or given.body is not None:
            return
        problem = type_problem(given.text, wanted)
        if problem is not None:
            shown = f"`{argument.text[:60]}` is `{given.text}`"
            raise self._error(f"{shown}, but the event's parameter `{param}` is `{wanted}`{problem}")


def type_problem(given: str, wanted: str) -> str | None:
    """Return why one type cannot be passed for another: None if it can, else a text that may be empty.

    Typedefs are not followed, so only obvious problems are reported.

    >>> type_problem("struct page *", "struct folio*"), type_problem("pgoff_t", "unsigned long")
    ('', None)
    """
    if "(" in given + wanted or "[" in given + wanted:  # pointers to functions and to arrays
        return None
    given_words, given_stars = _split_type(given)
    wanted_words, wanted_stars = _split_type(wanted)
    is_tagged, wants_tagged = _is_tagged(given_words), _is_tagged(wanted_words)
    drops = given.startswith("const ") and "const" not in wanted.split() and given_stars == 1
    if given_stars and wanted_stars:
        is_same = given_words == wanted_words and given_stars == wanted_stars
        is_other = is_tagged and wants_tagged and not is_same
        if is_other:
            return ""
        return ": this drops const" if drops and (is_same or "void" in wanted_words) else None
    if given_stars:
        return "" if wants_tagged or set(wanted_words) <= INTEGER_WORDS else None
    if wanted_stars:
        return "" if is_tagged or set(given_words) <= INTEGER_WORDS else None
    return "" if is_tagged and set(wanted_words) <= INTEGER_WORDS else None


def _split_type(text: str) -> tuple[list[str], int]:
    words = [word for word in text.replace("*", " ").split() if word not in {"const", "volatile"}]
    return words, text.count("*")


def _is_tagged(words: list[str]) -> bool:
    return words[:1] in (["struct"], ["union"])
