"""The vectors of x86, and what tells of a signal which of them raised it."""

from __future__ import annotations

#: arch/x86/include/asm/trapnr.h, and the mnemonics of the processor.
VECTORS = {
    0: "DE divide error", 1: "DB debug", 2: "NMI", 3: "BP breakpoint", 4: "OF overflow", 5: "BR bound range",
    6: "UD invalid opcode", 7: "NM device not available", 8: "DF double fault",
    9: "coprocessor segment overrun", 10: "TS invalid TSS", 11: "NP segment not present",
    12: "SS stack segment", 13: "GP general protection", 14: "PF page fault", 15: "spurious",
    16: "MF x87 floating point", 17: "AC alignment check", 18: "MC machine check",
    19: "XF SIMD floating point", 20: "VE virtualization",
    21: "CP control protection", 29: "VC VMM communication", 32: "iret error",
}  # fmt: skip
PAGE_FAULT, NMI, MACHINE_CHECK = 14, 2, 18

#: arch/x86/include/uapi/asm/signal.h: those that a trap becomes.
SIGNALS = {4: "SIGILL", 5: "SIGTRAP", 7: "SIGBUS", 8: "SIGFPE", 11: "SIGSEGV"}
_KERNEL = 0x80
#: include/uapi/asm-generic/siginfo.h
_CODES = {
    4: "ILLOPC ILLOPN ILLADR ILLTRP PRVOPC PRVREG COPROC BADSTK",
    5: "BRKPT TRACE BRANCH HWBKPT UNK PERF",
    7: "ADRALN ADRERR OBJERR MCEERR_AR MCEERR_AO",
    8: "INTDIV INTOVF FLTDIV FLTOVF FLTUND FLTRES FLTINV FLTSUB",
    11: "MAPERR ACCERR BNDERR PKUERR ACCADI ADIDERR ADIPERR MTEAERR MTESERR CPERR",
}
_PREFIX = {4: "ILL", 5: "TRAP", 7: "BUS", 8: "FPE", 11: "SEGV"}
# What a signal of the kernel comes from: arch/x86/kernel/traps.c, arch/x86/mm/fault.c.
_LIKELY = {
    (4, 2): "UD", (5, 1): "DB", (5, 2): "DB", (5, 4): "DB", (5, _KERNEL): "BP", (7, 1): "AC", (7, 2): "PF",
    (7, 4): "MC or PF", (7, _KERNEL): "NP or SS", (8, 1): "DE", (11, 1): "PF", (11, 2): "PF", (11, 3): "BR",
    (11, 4): "PF", (11, 10): "CP", (11, _KERNEL): "GP, OF, BR or TS",
}  # fmt: skip


def vector_name(number: int) -> str:
    """Return what a vector is for.

    >>> vector_name(0), vector_name(77)
    ('DE divide error', 'vector 77')
    """
    return VECTORS.get(number, f"vector {number}")


def signal_name(number: int) -> str:
    """Return the name of a signal that a trap can become, else its number."""
    return SIGNALS.get(number, f"signal {number}")


def code_name(signal: int, code: int) -> str:
    """Return the name of the code of a signal; codes up to 0 are of senders, not of traps.

    >>> code_name(8, 1), code_name(11, 0x80), code_name(11, 0)
    ('FPE_INTDIV', 'SI_KERNEL', '0')
    """
    if code == _KERNEL:
        return "SI_KERNEL"
    names = _CODES.get(signal, "").split()
    return f"{_PREFIX[signal]}_{names[code - 1]}" if 0 < code <= len(names) else str(code)


def likely_vector(signal: int, code: int) -> str:
    """Return the vectors that a signal can come from; empty where a trap made none.

    >>> likely_vector(8, 1), likely_vector(8, 3), likely_vector(15, 0x80)
    ('DE', 'MF or XF', '')
    """
    found = _LIKELY.get((signal, code), "")
    return "MF or XF" if not found and signal == 8 and code > 1 else found
