"""Flag words of libata events: drivers/ata/libata-trace.c writes them with functions of its own.

The words are those of the functions named here; which bit is which comes from the enums of the tree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.printk import operators
from tracepoint.printk.facts import UnknownPartError
from tracepoint.printk.values import Record, TextValue, Value
from tracepoint.source.cvalue import UINT

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.printk.evaluate import Evaluator

    Decoder = Callable[[Evaluator, list[Value]], Value | None]

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


def _mask(evaluator: Evaluator, prefix: str, names: str) -> Callable[[Record], int]:
    """Return what reads the bits of a word: `A+B` are both, `A,B` is the one that the tree has."""

    def read(record: Record) -> int:
        mask = 0
        for part in names.split("+"):
            for name in part.split(","):
                bit = evaluator.constants(prefix + name)
                bit = record.facts.constants(prefix + name) if bit is None else bit
                if bit is not None:
                    break
            else:
                raise UnknownPartError(f"the value of {prefix}{part.split(',')[0]}")
            mask |= bit
        return mask

    return read


def _words(prefix: str, text: str, *, has_number: bool) -> Decoder:
    """Make the compiler of a function that writes `{ WORD WORD }`, after the number with `has_number`."""

    def compile_call(evaluator: Evaluator, arguments: list[Value]) -> Value | None:
        if len(arguments) != 2:
            return None
        number = operators.converted(evaluator.as_integer(arguments[1]), UINT).read
        items = [item.partition("=") for item in text.split()]
        words = [(word, _mask(evaluator, prefix, names or word)) for word, _, names in items]

        def show(record: Record) -> str:
            value = number(record)
            if has_number and not value:
                return "0"
            shown = "".join(f"{word} " for word, mask in words if value & mask(record))
            return f"{value:x}{{ {shown}}}" if has_number else f"{{ {shown}}}"

        return TextValue(show)

    return compile_call


LIBATA_DECODERS: dict[str, Decoder] = {
    "libata_trace_parse_status": _words(*_STATUS, has_number=False),
    "libata_trace_parse_host_stat": _words(*_HOST_STAT, has_number=False),
    "libata_trace_parse_eh_action": _words(*_EH_ACTION, has_number=True),
    "libata_trace_parse_eh_err_mask": _words(*_EH_ERR_MASK, has_number=True),
    "libata_trace_parse_qc_flags": _words(*_QC_FLAGS, has_number=True),
    "libata_trace_parse_tf_flags": _words(*_TF_FLAGS, has_number=True),
}
