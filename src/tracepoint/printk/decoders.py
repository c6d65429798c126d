"""Text-making functions of kernel subsystems that depend on their arguments alone.

Their meaning is stated from the kernel source named at each; what a function would add from
elsewhere is not here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.printk import operators, ops
from tracepoint.printk.libata import LIBATA_DECODERS
from tracepoint.printk.scsi import SCSI_DECODERS
from tracepoint.printk.values import TextValue, Value, is_set, place_of, text_of
from tracepoint.source.types import UCHAR, UINT

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.printk.expressions import Lowering


def _names(names: dict[int, str], otherwise: str) -> Callable[[Lowering, list[Value]], Value | None]:
    """Make what lowers a function that maps a number to a name."""

    def lower_call(lowering: Lowering, arguments: list[Value]) -> Value | None:
        if not arguments:
            return None
        number = operators.converted(lowering.as_integer(arguments[-1]), UINT).op
        cases = tuple((key, ops.Literal(name)) for key, name in names.items())
        return TextValue(ops.PickText(number, cases, ops.Literal(otherwise)))

    return lower_call


def _choice(yes: str, no: str) -> Callable[[Lowering, list[Value]], Value | None]:
    """Make what lowers a function that gives one of two words (include/linux/string_helpers.h)."""

    def lower_call(lowering: Lowering, arguments: list[Value]) -> Value | None:
        del lowering
        if len(arguments) != 1:
            return None
        return TextValue(ops.IfText(is_set(arguments[0]), ops.Literal(yes), ops.Literal(no)))

    return lower_call


_BLOCK_OPERATIONS = {0: "READ", 1: "WRITE", 2: "FLUSH", 3: "DISCARD"}


def _block_operation(lowering: Lowering, arguments: list[Value]) -> Value | None:
    """block/blk-core.c: blk_op_str(), for the operations whose numbers never changed."""
    if len(arguments) != 1:
        return None
    number = operators.converted(lowering.as_integer(arguments[0]), UINT).op
    cases = tuple((key, ops.Literal(name)) for key, name in _BLOCK_OPERATIONS.items())
    return TextValue(ops.PickText(number, cases, ops.Unknown("the name of this block operation")))


def _disk_name(lowering: Lowering, arguments: list[Value]) -> Value | None:
    """Lower a function that shows the name of a disk where there is one, after the buffer to print into."""
    del lowering
    if len(arguments) != 2:
        return None
    place = place_of(arguments[1])
    is_filled = ops.Both(ops.IsSet(place), ops.LoadAt(place, UCHAR))
    shown = ops.Joined((ops.Literal("disk="), ops.Padded(text_of(arguments[1])), ops.Literal(", ")))
    return TextValue(ops.IfText(is_filled, shown, ops.Literal("")))


DECODERS: dict[str, Callable[[Lowering, list[Value]], Value | None]] = {
    **LIBATA_DECODERS,
    **SCSI_DECODERS,
    # drivers/block/null_blk/trace.c, drivers/nvme/host/trace.c
    "nullb_trace_disk_name": _disk_name,
    "nvme_trace_disk_name": _disk_name,
    "blk_op_str": _block_operation,
    "str_yes_no": _choice("yes", "no"),
    "str_on_off": _choice("on", "off"),
    "str_enable_disable": _choice("enable", "disable"),
    "str_enabled_disabled": _choice("enabled", "disabled"),
    "str_true_false": _choice("true", "false"),
    "str_read_write": _choice("read", "write"),
    "str_high_low": _choice("high", "low"),
    # drivers/usb/host/xhci.h: xhci_ring_type_string()
    "xhci_ring_type_string": _names(
        {0: "CTRL", 1: "ISOC", 2: "BULK", 3: "INTR", 4: "STREAM", 5: "CMD", 6: "EVENT"}, "UNKNOWN"
    ),
    # include/ras/ras_event.h names; drivers/edac and include/linux/edac.h: mc_event_error_type()
    "mc_event_error_type": _names({0: "Corrected", 1: "Uncorrected", 2: "Deferred", 3: "Fatal"}, "Info"),
    # drivers/firmware/efi/cper.c: cper_severity_str()
    "cper_severity_str": _names({0: "recoverable", 1: "fatal", 2: "corrected", 3: "info"}, "unknown"),
    # drivers/firmware/efi/cper.c: cper_mem_err_type_str()
    "cper_mem_err_type_str": _names(
        dict(
            enumerate(
                (
                    "unknown",
                    "no error",
                    "single-bit ECC",
                    "multi-bit ECC",
                    "single-symbol chipkill ECC",
                    "multi-symbol chipkill ECC",
                    "master abort",
                    "target abort",
                    "parity error",
                    "watchdog timeout",
                    "invalid address",
                    "mirror Broken",
                    "memory sparing",
                    "scrub corrected error",
                    "scrub uncorrected error",
                    "physical memory map-out event",
                )
            )
        ),
        "unknown",
    ),
}
