"""Run TP_fast_assign text over a small record."""

from tracepoint.assign.inputs import find_inputs
from tracepoint.assign.program import Inputs, read_program, run_program
from tracepoint.layout.abi import Abi
from tracepoint.layout.compute import compute_layout
from tracepoint.model.read import read_header_text
from tracepoint.source.ctype import parse_ctype


class Fired:
    """One event fired with given input values."""

    def __init__(self, result, layout):
        self.result = result
        self.layout = layout

    def __getitem__(self, name):
        """The field's number, its text when it is char[], else its bytes."""
        field = self.layout[name]
        raw = self.raw(name)
        order = "big" if self.layout.is_big_endian else "little"
        if field.element_ctype == "char" and field.is_array:
            return raw.split(b"\0", 1)[0].decode()
        if field.is_array or len(raw) not in (1, 2, 4, 8):
            return raw
        return int.from_bytes(raw, order, signed=field.is_signed)

    def raw(self, name):
        field = self.layout[name]
        record = self.result.record
        raw = record[field.offset : field.offset + field.size]
        if not field.is_data_loc:
            return raw
        word = int.from_bytes(raw, "big" if self.layout.is_big_endian else "little")
        offset = (word & 0xFFFF) + (field.offset + 4 if field.is_rel_loc else 0)
        return record[offset : offset + (word >> 16)]

    @property
    def reasons(self):
        return [item.reason for item in self.result.unfollowed]


def declare(
    struct, assign, proto="struct foo *p, int n, unsigned int u, u64 w, const char *s", macro="", head=""
):
    args = ", ".join(part.split()[-1].lstrip("*") for part in proto.split(","))
    kind = "TRACE_EVENT_CONDITION" if macro else "TRACE_EVENT"
    text = (
        f"#define TRACE_SYSTEM demo\n{head}\n{kind}(one, TP_PROTO({proto}), TP_ARGS({args}), {macro}"
        f'TP_STRUCT__entry({struct}), TP_fast_assign({assign}), TP_printk("x"));'
    )
    header = read_header_text(text)
    return header, header["one"]


def fire(struct, assign, values=None, *, abi=Abi.X86_64, **more):
    header, event = declare(struct, assign, **more)
    layout = compute_layout(event, abi, environment=header.environment)
    params = {p.name: parse_ctype(p.ctype) for p in event.proto.params}
    values = values or {}
    asked = []

    def resolve(input_):
        asked.append(input_)
        return values.get(input_.text)

    inputs = Inputs(layout, event.fields, params, resolve, header.environment.constant)
    fired = Fired(run_program(read_program(event), inputs), layout)
    fired.asked = asked
    return fired


def inputs(struct, assign, **more):
    header, event = declare(struct, assign, **more)
    layout = compute_layout(event, Abi.X86_64, environment=header.environment)
    return {
        input_.text: input_ for input_ in find_inputs(event, layout, constant=header.environment.constant)
    }
