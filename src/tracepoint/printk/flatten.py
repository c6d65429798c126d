"""Ops to instructions: the tree of a print program flattened for a stack machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.printk import ops
from tracepoint.printk.packed import NO_SLOT, Flat, OpCode, PrintInstruction
from tracepoint.printk.texts import symbol_style

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.source.types import IntType

_MAX_SHORT = (1 << 16) - 1
_MAX_SLOTS = 1 << 15
# Each level holds one value at most; the stack has room for 64.
_MAX_NESTING = 48
_UNARY = {"-": OpCode.NEGATE, "~": OpCode.INVERT, "abs": OpCode.ABSOLUTE, "swap": OpCode.SWAP}
_BINARY = {
    "+": OpCode.ADD, "-": OpCode.SUBTRACT, "*": OpCode.MULTIPLY, "/": OpCode.DIVIDE, "%": OpCode.REMAINDER,
    "&": OpCode.AND, "|": OpCode.OR, "^": OpCode.XOR, "<<": OpCode.SHIFT_LEFT, ">>": OpCode.SHIFT_RIGHT,
    "==": OpCode.EQUAL, "!=": OpCode.UNEQUAL, "<": OpCode.LESS, ">": OpCode.GREATER, "<=": OpCode.AT_MOST,
    ">=": OpCode.AT_LEAST, "min": OpCode.MIN, "max": OpCode.MAX,
}  # fmt: skip
_ARRAYS = {"kernel_stack": OpCode.STACK, "user_stack": OpCode.USER_STACK, "raw_data": OpCode.DUMP}
_FLAG_BITS = {"-": 1, "0": 2, "+": 4, " ": 8, "#": 16}
_HAS_WIDTH, _HAS_PRECISION = 32, 64
_NO_FIELDS = ops.Unknown("the fields")
# What shows a NULL text: nothing, or `(null)`.
_NOTHING, _NULL = 0, 1


class _LeftError(Exception):
    """An op that has no instruction; the argument names it."""


def _type(kind: IntType) -> int:
    if kind.size > 8:
        raise _LeftError("128-bit numbers")
    return kind.size.bit_length() - 1 | kind.is_signed << 2


def _is_of_facts(op: ops.NumberOp) -> bool:
    """Return whether the facts alone give a number."""
    kinds = {type(found) for found in ops.walk(op)}
    known = {ops.Fact, ops.Const, ops.Convert, ops.Unary, ops.Binary, ops.Not, ops.Unknown}
    return ops.Fact in kinds and kinds <= known


class _Flattener:
    """Appends instructions for ops."""

    def __init__(self, machine: ops.RecordMachine) -> None:
        self.flat = Flat(machine)
        self.nesting = 0

    def add(self, code: OpCode, a: int = 0, b: int = 0, c: int = 0, words: object = "") -> int:
        if not (0 <= b <= _MAX_SHORT and -(1 << 31) <= c < 1 << 32):
            raise _LeftError("a program that is too large")
        self.flat.code.append(PrintInstruction(code, a, b, c, str(words)))
        return len(self.flat.code) - 1

    def land(self, *jumps: int) -> None:
        """Let jumps lead to the next instruction."""
        here = len(self.flat.code)
        for at in jumps:
            step = self.flat.code[at]
            self.flat.code[at] = PrintInstruction(step.code, step.a, step.b, here, f"to {here}")

    def pooled(self, number: int) -> int:
        if number not in self.flat.pool:
            self.flat.pool.append(number)
        return self.flat.pool.index(number)

    def stored(self, data: bytes) -> int:
        at = self.flat.data.find(data)
        if at < 0:
            at = len(self.flat.data)
            self.flat.data += data
        return at

    def slot(self, op: ops.NumberOp) -> int:
        if op not in self.flat.slots:
            if len(self.flat.slots) == _MAX_SLOTS:
                raise _LeftError("too many facts")
            self.flat.slots.append(op)
        return self.flat.slots.index(op)

    def emit(self, text: str) -> None:
        data = text.encode("latin-1", "replace")
        for at in range(0, len(data), _MAX_SHORT):
            part = data[at : at + _MAX_SHORT]
            self.add(OpCode.TEXT, 0, len(part), self.stored(part), repr(part.decode("latin-1")))

    def branch(self, test: ops.NumberOp, then: Callable[[], None], otherwise: Callable[[], None]) -> None:
        """Append `test ? then : otherwise`; each arm may turn out to be one for the twin."""
        if isinstance(test, ops.Const):
            (then if test.value else otherwise)()
            return
        self.number(test)
        skip = self.add(OpCode.JUMP_UNLESS)
        self.arm(then)
        end = self.add(OpCode.JUMP)
        self.land(skip)
        self.arm(otherwise)
        self.land(end)

    def arm(self, append: Callable[[], None]) -> None:
        """Append what may fail: then a record that comes here is left, and others are not."""
        length = len(self.flat.code)
        try:
            append()
        except _LeftError as left:
            del self.flat.code[length:]
            self.add(OpCode.LEAVE, words=left)

    # -- numbers ------------------------------------------------------------------------------

    def number(self, op: ops.NumberOp) -> None:
        if self.nesting == _MAX_NESTING:
            raise _LeftError("an expression that is too deep")
        self.nesting += 1
        try:
            if _is_of_facts(op):
                self.add(OpCode.FACT, c=self.slot(op), words=_facts_in(op))
            elif isinstance(op, ops.Unknown):
                self.unknown(op)
            else:
                self.computed(op)
        finally:
            self.nesting -= 1

    def unknown(self, op: ops.Unknown) -> None:
        """Append a fact that nothing tells: the line ends there."""
        self.add(OpCode.FACT, c=self.slot(op), words=op.reason)

    def computed(self, op: ops.NumberOp) -> None:
        match op:
            case ops.Const(value):
                self.add(OpCode.CONST, c=self.pooled(value), words=value)
            case ops.Load(offset, kind):
                self.add(OpCode.LOAD, _type(kind), c=offset, words=f"{_name(kind)} at {offset}")
            case ops.LoadAt(ops.At(offset), kind) if offset >= 0:
                self.add(OpCode.LOAD, _type(kind), c=offset, words=f"{_name(kind)} at {offset}")
            case ops.LoadAt(place, kind):
                self.place(place)
                self.add(OpCode.LOAD_AT, _type(kind), words=_name(kind))
            case ops.Convert(value, kind):
                self.number(value)
                self.add(OpCode.CONVERT, _type(kind), words=_name(kind))
            case ops.Unary(operator, value, kind):
                self.number(value)
                self.add(_UNARY[operator], _type(kind), words=_name(kind))
            case ops.Binary(operator, left, right, kind):
                self.number(left)
                self.number(right)
                self.add(_BINARY[operator], _type(kind), words=_name(kind))
            case ops.IfNumber(test, then, otherwise):
                self.branch(test, lambda: self.number(then), lambda: self.number(otherwise))
            case ops.Both(left, right) | ops.Either(left, right):
                self.logical(left, right, OpCode.JUMP_UNLESS if isinstance(op, ops.Both) else OpCode.JUMP_IF)
            case _:
                self.seldom(op)

    def seldom(self, op: ops.NumberOp) -> None:
        match op:
            case ops.Not(value):
                self.number(value)
                self.add(OpCode.NOT)
            case ops.IsSet(value) if isinstance(value, ops.PlaceOp):
                self.place(value)
                self.add(OpCode.IS_SET)
            case ops.CountBits(value):
                self.number(value)
                self.add(OpCode.COUNT_BITS)
            case ops.Log2(value):
                self.number(value)
                self.add(OpCode.LOG2)
            case ops.JiffiesTo(jiffies, hz, scale, kind):
                self.number(jiffies)
                self.number(hz)
                self.add(OpCode.JIFFIES_TO, _type(kind), c=self.pooled(scale), words=f"{scale} {_name(kind)}")
            case ops.Distance(left, right, size):
                self.place(left)
                self.place(right)
                self.add(OpCode.DISTANCE, c=size, words=size)
            case ops.Hashed(address):
                self.number(address)
                self.add(OpCode.HASHED)
            case ops.Width(value):
                self.number(value)
                self.add(OpCode.WIDTH)
            case _:
                raise _LeftError(_why(op))

    def logical(self, left: ops.NumberOp, right: ops.NumberOp, leave: OpCode) -> None:
        self.number(left)
        to_end = self.add(leave)
        self.number(right)
        second = self.add(leave)
        self.number(ops.Const(int(leave is OpCode.JUMP_UNLESS)))
        end = self.add(OpCode.JUMP)
        self.land(to_end, second)
        self.number(ops.Const(int(leave is OpCode.JUMP_IF)))
        self.land(end)

    # -- places -------------------------------------------------------------------------------

    def place(self, op: ops.PlaceOp) -> None:
        match op:
            case ops.At(offset):
                self.add(OpCode.AT, c=offset, words=offset)
            case ops.Bytes(data):
                self.add(OpCode.BYTES, 0, len(data), self.stored(data), repr(data))
            case ops.Moved(place, count, size):
                self.place(place)
                self.number(count)
                self.add(OpCode.MOVED, int(_is_above_int64(count)), c=size, words=f"by {size}")
            case ops.WordPlace(word, origin):
                self.number(word)
                self.add(OpCode.LOCATED, c=origin, words=origin)
            case ops.KernelPlace(address):
                self.number(address)
                self.add(OpCode.KERNEL)
            case ops.Unknown():
                self.unknown(op)
                self.add(OpCode.KERNEL)
            case ops.IfPlace(test, then, otherwise):
                self.branch(test, lambda: self.place(then), lambda: self.place(otherwise))
            case _:
                raise _LeftError(_why(op))

    # -- texts --------------------------------------------------------------------------------

    def text(self, op: ops.TextOp, null: int = _NOTHING) -> None:
        match op:
            case ops.Joined(parts):
                for part in parts:
                    self.arm(lambda part=part: self.text(part))  # type: ignore[misc]
            case ops.Literal(text):
                self.emit(text)
            case ops.Number():
                self.formatted(op)
            case ops.Padded():
                self.padded(op)
            case ops.String(place, limit):
                self.place(place)
                if limit is not None:
                    self.number(limit)
                self.add(OpCode.STRING, null, int(limit is not None))
            case ops.IfText(test, then, otherwise):
                self.branch(test, lambda: self.text(then, null), lambda: self.text(otherwise, null))
            case ops.Flags() | ops.Symbolic():
                self.named(op)
            case _:
                self.seldom_text(op, null)

    def seldom_text(self, op: ops.TextOp, null: int) -> None:
        match op:
            case ops.Hex(place, length, separator, group):
                self.place(place)
                self.number(length)
                self.add(OpCode.HEX, ord(separator or "\0"), group, words=repr(separator))
            case ops.Numbers(place, count, size):
                self.place(place)
                self.number(count)
                self.add(OpCode.NUMBERS, size, words=f"of {size} bytes")
            case ops.Bitmap(place, size, n_bits, is_list):
                self.place(place)
                self.number(size)
                self.number(n_bits)
                self.add(OpCode.BITMAP, int(is_list), words="as ranges" if is_list else "")
            case ops.PickText(index, cases, otherwise):
                self.pick(index, cases, otherwise, null)
            case ops.Character(value):
                self.number(value)
                self.add(OpCode.CHARACTER)
            case _:
                self.kernel_text(op, null)

    def kernel_text(self, op: ops.TextOp, null: int) -> None:
        match op:
            case ops.SymbolText(address, letters):
                style = symbol_style(letters)
                if not style:
                    raise _LeftError(f"%p{letters}")
                self.number(address)
                self.add(OpCode.SYMBOL, style, words=letters)
            case ops.KernelString(address):
                self.number(address)
                self.add(OpCode.KERNEL_STRING, null)
            case ops.Unknown():
                self.unknown(op)
                self.add(OpCode.KERNEL_STRING, null)
            case ops.WithoutNewline(text):
                self.add(OpCode.MARK)
                self.text(text)
                self.add(OpCode.CHOMP)
            case ops.Call(name, arguments) if name in _ARRAYS:
                self.array(name, *arguments)
            case ops.Call(name, arguments) if name in _CALLS:
                self.place(arguments[0])  # type: ignore[arg-type]
                letters = arguments[1].text  # type: ignore[attr-defined]
                self.add(_CALLS[name], null, self.variant(name, letters), words=letters)
            case _:
                raise _LeftError(_why(op))

    def array(self, name: str, at: ops.PrintOp, *more: ops.PrintOp) -> None:
        """Add what an array at the end of a record shows; `more` names the style of a kernel stack last."""
        letters = more[-1] if name == "kernel_stack" else None
        style = symbol_style(letters.text) if isinstance(letters, ops.Literal) else 0
        if not isinstance(at, ops.Const) or (letters is not None and not style):
            raise _LeftError(f"{name}()")
        self.add(_ARRAYS[name], style, c=at.value, words=f"at {at.value}")

    def variant(self, name: str, letters: str) -> int:
        """Return as bits how an address is shown; `csrc/decode/print.h` says which is which."""
        match name:
            case "ip4":
                order = letters[2:3]
                is_reversed = order == "l" or (order == "h" and not self.flat.machine.is_big_endian)
                return (letters[0] == "i") | is_reversed << 1
            case "ip6":
                return 2 if letters == "I6c" else int(letters[0] == "I")
            case "mac":
                separator = 0 if letters[0] == "m" else ord("-" if letters.endswith("F") else ":")
                return separator | letters.endswith("R") << 8
        return (letters[1:] in ("l", "L")) | (letters[1:] in ("B", "L")) << 1

    def options(self, op: ops.Number | ops.Padded) -> int:
        """Append width and precision; return them and the flags as bits."""
        bits = sum(_FLAG_BITS[flag] for flag in set(op.flags))
        if op.width is not None:
            self.number(op.width)
            bits |= _HAS_WIDTH
        if op.precision is not None:
            self.number(op.precision)
            bits |= _HAS_PRECISION
        return bits

    def formatted(self, op: ops.Number) -> None:
        self.number(op.value)
        bits = self.options(op)
        self.add(OpCode.NUMBER, ord(op.conversion), bits, words=f"%{op.flags}{op.conversion}")

    def padded(self, op: ops.Padded) -> None:
        if op.width is None and (op.precision is None or _cuts_itself(op)):
            self.text(op.text, _NULL)
            return
        self.add(OpCode.MARK)
        self.text(op.text, _NULL)
        self.add(OpCode.PAD, 0, self.options(op), words=op.flags)

    def table(self, table: ops.Table) -> int:
        entries = []
        for number, name in table:
            if not isinstance(name, ops.Literal):
                raise _LeftError("names that are not constant")
            data = name.text.encode("latin-1", "replace")
            if isinstance(number, ops.Const):
                entries.append((number.value, data, NO_SLOT))
            elif _is_of_facts(number):
                entries.append((0, data, self.slot(number)))
            else:
                raise _LeftError("numbers of names that are not constant")
        if entries not in self.flat.tables:
            self.flat.tables.append(entries)
        return self.flat.tables.index(entries)

    def named(self, op: ops.Flags | ops.Symbolic) -> None:
        table = self.table(op.table)
        self.number(op.value)
        words = ", ".join(name.text for _, name in op.table if isinstance(name, ops.Literal))
        if isinstance(op, ops.Symbolic):
            self.add(OpCode.SYMBOLIC, 0, table, words=words)
            return
        delimiter = op.delimiter or ops.Literal("")
        data = (
            delimiter.text.encode("latin-1", "replace") if isinstance(delimiter, ops.Literal) else b"\0" * 256
        )
        if len(data) > 255:
            raise _LeftError("a delimiter that is not constant")
        self.add(OpCode.FLAGS, len(data), table, self.stored(data), words)

    def pick(
        self, index: ops.NumberOp, cases: tuple[tuple[int, ops.TextOp], ...], otherwise: ops.TextOp, null: int
    ) -> None:
        table = self.table(tuple((ops.Const(key), _plain(case)) for key, case in cases))
        self.number(index)
        self.add(OpCode.NAMED, 0, table)
        found = self.add(OpCode.JUMP_IF)
        self.arm(lambda: self.text(otherwise, null))
        self.land(found)


_CALLS = {"ip4": OpCode.IP4, "ip6": OpCode.IP6, "mac": OpCode.MAC, "uuid": OpCode.UUID}


def _plain(op: ops.TextOp) -> ops.TextOp:
    """Return the text inside of a padding that does nothing."""
    is_idle = isinstance(op, ops.Padded) and op.width is None and op.precision is None
    return op.text if is_idle and isinstance(op, ops.Padded) else op


def _cuts_itself(op: ops.Padded) -> bool:
    """Return whether the text is never longer than the precision: that of memory which is not NULL."""
    return (
        isinstance(op.text, ops.String)
        and op.text.limit == op.precision
        and isinstance(op.text.place, ops.At | ops.WordPlace)
    )


def _is_above_int64(op: ops.NumberOp) -> bool:
    kind: IntType | None = getattr(op, "kind", None)
    return kind is None or (kind.size == 8 and not kind.is_signed)


def _name(kind: IntType) -> str:
    return f"{'s' if kind.is_signed else 'u'}{8 * kind.size}"


def _facts_in(op: ops.NumberOp) -> str:
    return ", ".join(dict.fromkeys(found.name for found in ops.walk(op) if isinstance(found, ops.Fact)))


def _why(op: ops.PrintOp) -> str:
    if isinstance(op, ops.Unknown):
        return op.reason
    return f"{op.name}()" if isinstance(op, ops.Call | ops.Apply) else type(op).__name__


def flatten(op: ops.TextOp, machine: ops.RecordMachine, fields: ops.TextOp = _NO_FIELDS) -> Flat:
    """Return a program as instructions; `fields` is the text where a fact is met that is not known.

    >>> from tracepoint.source.types import INT
    >>> line = ops.Joined((ops.Literal("a="), ops.Number(ops.Load(8, INT), "d")))
    >>> print(flatten(line, ops.RecordMachine()))
    0  text          'a='
    1  load          s32 at 8
    2  number        %d
    3  end
    """
    flattener = _Flattener(machine)
    flattener.arm(lambda: flattener.text(op))
    flattener.add(OpCode.END)
    flat = flattener.flat
    if flat.slots:
        flat.fields_at = len(flat.code)
        flattener.arm(lambda: flattener.text(fields))
        flattener.add(OpCode.END)
    return flat
