"""Flag words of libata events: drivers/ata/libata-trace.c writes them with functions of its own.

The words are those of the functions named here; which bit is which comes from the enums of the tree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.printk import operators, ops
from tracepoint.printk.values import TextValue, Value
from tracepoint.source.types import INT, UINT

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.printk.expressions import Lowering

    Decoder = Callable[[Lowering, list[Value]], Value | None]

#: A prefix and, for each word, the constants of which the first that is known is its bit.
_STATUS = "ATA_", "BUSY DRDY DF DSC DRQ CORR SENSE ERR"
_HOST_STAT = "ATA_DMA_", "INTR ERR ACTIVE"
_EH_ACTION = "ATA_EH_", "REVALIDATE RESET=SOFTRESET+HARDRESET ENABLE_LINK PARK"
_EH_ERR_MASK = (
    "AC_ERR_",
    "DEV HSM TIMEOUT MEDIA ATA_BUS HOST_BUS SYSTEM INVALID OTHER NODEV_HINT NCQ",
)
_QC_FLAGS = (
    "ATA_QCFLAG_",
    "ACTIVE DMAMAP IO RESULT_TF CLEAR_EXCL QUIET RETRY FAILED=FAILED,EH SENSE_VALID EH_SCHEDULED",
)
_TF_FLAGS = "ATA_TFLAG_", "LBA48 ISADDR DEV=DEVICE WRITE LBA FUA POLL=POLLING"


def _mask(lowering: Lowering, prefix: str, names: str) -> ops.NumberOp:
    """Lower the bits of a word: `A+B` are both, `A,B` is the one that the tree has."""
    mask: ops.NumberOp = ops.Const(0)
    for part in names.split("+"):
        bit: ops.NumberOp = ops.Unknown(f"the value of {prefix}{part.split(',')[0]}")
        for name in reversed(part.split(",")):
            value = lowering.constants(prefix + name)
            bit = ops.Fact("constant", prefix + name, INT, bit) if value is None else ops.Const(value)
        mask = ops.Binary("|", mask, bit, UINT)
    return mask


def _words(prefix: str, text: str, *, has_number: bool) -> Decoder:
    """Make what lowers a function that writes `{ WORD WORD }`, after the number with `has_number`."""

    def lower_call(lowering: Lowering, arguments: list[Value]) -> Value | None:
        if len(arguments) != 2:
            return None
        number = operators.converted(lowering.as_integer(arguments[1]), UINT).op
        shown: list[ops.TextOp] = [ops.Number(number, "x")] if has_number else []
        shown.append(ops.Literal("{ "))
        for item in text.split():
            word, _, names = item.partition("=")
            is_shown = ops.Binary("&", number, _mask(lowering, prefix, names or word), UINT)
            shown.append(ops.IfText(is_shown, ops.Literal(f"{word} "), ops.Literal("")))
        made = ops.Joined((*shown, ops.Literal("}")))
        return TextValue(ops.IfText(number, made, ops.Literal("0")) if has_number else made)

    return lower_call


LIBATA_DECODERS: dict[str, Decoder] = {
    "libata_trace_parse_status": _words(*_STATUS, has_number=False),
    "libata_trace_parse_host_stat": _words(*_HOST_STAT, has_number=False),
    "libata_trace_parse_eh_action": _words(*_EH_ACTION, has_number=True),
    "libata_trace_parse_eh_err_mask": _words(*_EH_ERR_MASK, has_number=True),
    "libata_trace_parse_qc_flags": _words(*_QC_FLAGS, has_number=True),
    "libata_trace_parse_tf_flags": _words(*_TF_FLAGS, has_number=True),
}
