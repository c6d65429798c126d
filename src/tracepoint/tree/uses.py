"""What a script uses of the events of two kernels, and how it reads each of them.

This understands bpftrace, BCC, BPF C, Python, and command lines of perf, trace-cmd and tracefs,
also mixed in one file. Only bpftrace is examined per probe; elsewhere every mentioned field counts for every
event with a field of that name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from tracepoint.layout.compare import Change, ChangeKind, Reader

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

_SPACE = re.compile(r"\s+")
_WORD = re.compile(r"\w+")
# Names are bounded: a script of one endless word would be searched from each of its letters.
_PAIR = re.compile(r"\b(\w[\w.-]{0,80})[:/](\w{1,160})\b(?![*?\[{])")
_OTHER_PAIRS = (
    re.compile(r"\bTRACEPOINT_PROBE\(\s*(\w+)\s*,\s*(\w+)\s*\)"),  # BCC
    re.compile(r"\bdef\s+([A-Za-z0-9]\w{0,80}?)__(\w{1,160})\("),  # perf script -s
)
#: `block:*`, and what a shell makes of `block:block_rq_{issue,complete}`.
_GLOB = re.compile(r"""(?<![\w/])(\w[\w.-]{0,80}):([\w?\[\]-]{0,160}\*[\w*?\[\]-]{0,160})""")
_BRACES = re.compile(r"\b(\w[\w.-]{0,80}:\w{0,160})\{(\w+(?:,\w+)+)\}(\w*)")
_COMMANDS = re.compile(r"\b(perf\s+trace|trace-cmd)\b((?:\\\n|[^\n|;])*)")
_WHOLE_SYSTEM = re.compile(r"\bevents/(\w[\w.-]{0,80})/(?:enable|filter)\b")
_NAMES = re.compile(r"(?:^|\s)(?:-e|--event)[\s=]+['\"]?(\w[\w,.-]*)(?![\w:*])")
_FIELD_USES = (
    re.compile(r"(?:->|\.)\s*([A-Za-z_]\w*)"),
    re.compile(r"""["']([A-Za-z_]\w*)["']"""),
    re.compile(r"\b([A-Za-z_]\w*)\s*(?:[=!<>]=|[<>&~])"),
    re.compile(r",\s*([A-Za-z_]\w*)\s*(?=[,)])"),
)
_KEYS = re.compile(r"\b(?:keys?|vals?|values|sort)=([\w.,]+)")
_PROBES = re.compile(
    r"\b(?:tp_btf|raw_tp|raw_tracepoint|rawtracepoint|RAW_TRACEPOINT_PROBE|BPF_PROG|register_trace_\w+)\b"
)
_MODULE = re.compile(r"\bregister_trace_\w+")
_STRUCTS = re.compile(r"\btrace_event_raw_\w+|SEC\(\s*\"(?:tp|tracepoint)/")
_RELOCATED = re.compile(r"vmlinux\.h|BPF_CORE_READ|preserve_access_index")
#: Programs that show printed lines, and programs that parse them.
_PRINTED = re.compile(
    r"(?:\bperf\s+script\b|\btrace-cmd\s+report\b|\btrace_pipe\b|\btracing/trace\b)[^\n]{0,400}\|\s*"
    r"(?:\w+=\S*\s+)*(?:awk|gawk|mawk|sed|grep|egrep|cut|perl|python3?|tr|sort|uniq)\b"
)
_SECTION = re.compile(r'SEC\(\s*"(tp_btf|raw_tp|raw_tracepoint|tp|tracepoint)(?:\.w)?/(?:\w+/)?(\w+)"\s*\)')
_BCC = re.compile(r"\b(RAW_)?TRACEPOINT_PROBE\(\s*(?:\w+\s*,\s*)?(\w+)\s*\)")
#: Helpers of eBPF with names like events.
_HELPERS = frozenset({"bpf_trace_printk"})
# bpftrace: the probes before a block; `t` and `rt` are its short names.
_BPFTRACE = re.compile(
    r"(?:^|(?<=[\s,'\"};]))(tracepoint|rawtracepoint|t|rt):([\w*?\[\]-]+)(?::([\w*?\[\]-]+))?"
)
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)|(?<!:)//[^\n]*", re.DOTALL)
_TEXT = re.compile(r'(?<=[(,])\s*"(?:[^"\\\n]|\\.)*"')
_ARGS = re.compile(r"\bargs\s*(?:->|\.)\s*([A-Za-z_]\w*)")
_BRACE = re.compile(r"[{}]")
#: Characters between the probes of a block and its brace; far more than any script has.
_MAX_HEAD = 4000


@dataclass(frozen=True, slots=True)
class Uses:
    """What a script uses: fields by `system:name`, and how it reads them.

    `unknown` are names written as `system:event` that neither kernel has; `missing` are
    fields that a probe uses and that neither kernel has, as `system:event field`; `ways` are the ways of
    reading by event; `is_module` says that prototypes must match exactly.
    """

    fields: dict[str, frozenset[str]]
    readers: frozenset[Reader]
    unknown: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    ways: dict[str, frozenset[Reader]] = field(default_factory=dict)
    is_module: bool = False

    def concerns(self, change: Change) -> bool:
        """Return whether a change affects an event, or field, that the script uses."""
        return change.event in self.fields and (not change.field or change.field in self.fields[change.event])

    def broken_by(self, change: Change) -> frozenset[Reader]:
        """Return the ways of reading that a change breaks."""
        if not self.concerns(change):
            return frozenset()
        if change.kind is ChangeKind.PROTO_CHANGED and not self.is_module and _are_alike(change):
            return frozenset()
        return change.breaks & self.ways.get(change.event, self.readers)

    def is_worth_telling(self, change: Change) -> bool:
        """Whether a change breaks the script, or breaks nothing: a field that is new, a type's other name."""
        return self.concerns(change) and (not change.breaks or bool(self.broken_by(change)))


def _are_alike(change: Change) -> bool:
    """Return whether two prototypes differ only in `const`, which only a compiler sees."""
    before, after = (_SPACE.sub("", re.sub(r"\bconst\b", "", text)) for text in (change.before, change.after))
    return before == after


def find_uses(text: str, known: Mapping[str, Collection[str]]) -> Uses:
    """Find the events and fields that a text names: bpftrace, BPF C, perf and trace-cmd lines, Python.

    `known` are the fields of every event by `system:name`, of the old and the new kernel.

    >>> uses = find_uses(
    ...     "tracepoint:sched:sched_switch { @[args->next_comm] = count(); }",
    ...     {"sched:sched_switch": ["prev_comm", "next_comm"]},
    ... )
    >>> uses.fields
    {'sched:sched_switch': frozenset({'next_comm'})}
    """
    events = _Events(known)
    found = _Found()
    rest = _read_bpftrace(text, events, found)
    if rest.strip():
        _read_text(rest, events, found)
    readers = frozenset().union(*found.ways.values()) or _readers_of(text)
    return Uses(
        {name: frozenset(fields) for name, fields in sorted(found.fields.items())},
        readers,
        tuple(sorted(found.unknown)),
        tuple(sorted(found.missing)),
        {name: frozenset(ways) for name, ways in found.ways.items()},
        _MODULE.search(text) is not None,
    )


class _Events:
    """The events of both kernels, by pattern."""

    def __init__(self, known: Mapping[str, Collection[str]]) -> None:
        self.known = known
        self.systems = {name.partition(":")[0] for name in known}

    def matching(self, system: str, event: str) -> list[str]:
        """Return `system:name` of all that match two patterns."""
        full = f"{system}:{event}"
        if not set(full) & set("*?["):
            return [full] if full in self.known else []
        return [name for name in self.known if fnmatchcase(name, full)]


class _Found:
    """The results found in a text so far."""

    def __init__(self) -> None:
        self.fields: dict[str, set[str]] = {}
        self.ways: dict[str, set[Reader]] = {}
        self.unknown: set[str] = set()
        self.missing: set[str] = set()

    def add(self, name: str, fields: Iterable[str], ways: Iterable[Reader]) -> None:
        self.fields.setdefault(name, set()).update(fields)
        self.ways.setdefault(name, set()).update(ways)


# bpftrace.


def _read_bpftrace(text: str, events: _Events, found: _Found) -> str:
    """Read the probes of a bpftrace script, alone or in a shell's; return the text without them."""
    if _BPFTRACE.search(text) is None:
        return text
    bare = _TEXT.sub(_blank, _COMMENT.sub(_blank, text))
    rest: list[str] = []
    at = 0
    for begin, opening, end in _blocks(bare):
        probes = list(_BPFTRACE.finditer(bare, begin, opening))
        if not probes:
            continue
        rest.append(bare[at : probes[0].start()])
        at = end
        asked = set(_ARGS.findall(bare, probes[0].start(), end))
        for probe in probes:
            _read_probe(probe, asked, events, found, is_alone=len(probes) == 1)
    return "".join([*rest, bare[at:]])


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _blocks(bare: str) -> Iterator[tuple[int, int, int]]:
    """Yield the outermost blocks: where the text before begins, the brace, the end."""
    depth = begin = opening = 0
    for match in _BRACE.finditer(bare):
        if match[0] == "{":
            if depth == 0:
                opening = match.start()
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                yield max(begin, opening - _MAX_HEAD), opening, match.end()
                begin = match.end()


def _read_probe(
    probe: re.Match[str], asked: set[str], events: _Events, found: _Found, *, is_alone: bool
) -> None:
    keyword, first, second = probe.groups()
    if keyword in ("rawtracepoint", "rt"):
        for name in events.matching("*", second or first):
            found.add(name, (), (Reader.PROBE,))
        return
    if second is None:
        return
    names = events.matching(first, second)
    for name in names:
        has = set(events.known[name])
        found.add(name, asked & has, (Reader.BY_NAME,))
        if is_alone and len(names) == 1:
            found.missing.update(f"{name} {other}" for other in asked - has)
    if not names:
        found.unknown.add(f"{first}:{second}")


# Everything else.


def _read_text(text: str, events: _Events, found: _Found) -> None:
    names = _named(text, events, found)
    mentioned = {m for pattern in _FIELD_USES for m in pattern.findall(text)}
    for keys in _KEYS.findall(text):
        mentioned.update(_WORD.findall(keys))
    ways = _ways_of_sections(text, names)
    others = _readers_of(text)
    for name in names:
        found.add(name, mentioned & set(events.known[name]), ways.get(name, others))


def _named(text: str, events: _Events, found: _Found) -> set[str]:
    """Return the events that a text names in one way or another."""
    whole = _BRACES.sub(lambda m: " ".join(f"{m[1]}{part}{m[3]}" for part in m[2].split(",")), text)
    pairs = {pair for pattern in (_PAIR, *_OTHER_PAIRS) for pair in pattern.findall(whole)}
    names = {name for system, event in pairs for name in events.matching(system, event)}
    found.unknown.update(
        f"{system}:{event}"
        for system, event in pairs
        if system in events.systems and "_" in event and f"{system}:{event}" not in events.known
    )
    for system, pattern in _GLOB.findall(whole):
        names.update(events.matching(system, pattern) if system in events.systems else ())
    for system in _WHOLE_SYSTEM.findall(whole):
        names.update(events.matching(system, "*"))
    for command, words in _COMMANDS.findall(whole):
        for word in {word for some in _NAMES.findall(words) for word in some.split(",")}:
            names.update(_of_command(command, word, events))
    return names | _by_event_alone(whole, events, {name.partition(":")[2] for name in names})


def _of_command(command: str, word: str, events: _Events) -> Iterator[str]:
    """Yield the meaning of `-e word`: a system for trace-cmd, a system call for perf trace."""
    if command == "trace-cmd":
        yield from events.matching(word, "*") if word in events.systems else ()
    else:
        for way in ("enter", "exit"):
            yield from events.matching("syscalls", f"sys_{way}_{word}")


def _by_event_alone(text: str, events: _Events, named: set[str]) -> set[str]:
    words = set(_WORD.findall(text)) - _HELPERS
    words.update(_after_prefixes(tuple(words)))
    names = set()
    for name in events.known:
        event = name.partition(":")[2]
        # A word without an underscore is rarely meant as an event.
        if event not in named and "_" in event and event in words:
            names.add(name)
    return names


def _after_prefixes(words: Iterable[str]) -> Iterator[str]:
    for word in words:
        for prefix in ("trace_event_raw_", "btf_trace_", "register_trace_", "trace_"):
            if word.startswith(prefix):
                yield word.removeprefix(prefix)


def _ways_of_sections(text: str, names: Iterable[str]) -> dict[str, set[Reader]]:
    """Return how eBPF programs read events, according to their sections."""
    structs = Reader.BPF_CORE if _RELOCATED.search(text) else Reader.OFFSETS
    by_event: dict[str, set[Reader]] = {}
    for kind, event in _SECTION.findall(text):
        by_event.setdefault(event, set()).add(structs if kind in ("tp", "tracepoint") else Reader.PROBE)
    for raw, event in _BCC.findall(text):
        by_event.setdefault(event, set()).add(Reader.PROBE if raw else Reader.BY_NAME)
    return {name: ways for name in names if (ways := by_event.get(name.partition(":")[2]))}


def _readers_of(text: str) -> frozenset[Reader]:
    readers = set()
    if _PROBES.search(text):
        readers.add(Reader.PROBE)
    if _STRUCTS.search(text):
        readers.add(Reader.BPF_CORE if _RELOCATED.search(text) else Reader.OFFSETS)
    if _PRINTED.search(text):
        readers.add(Reader.TEXT)
    return frozenset(readers or {Reader.BY_NAME})
