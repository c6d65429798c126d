"""The script with which a guest verifies events of a loaded module: one script, one archive of answers.

Every event is examined (format, id, enable, filter), then all are enabled and fired in order, then
the trace is read as text and as raw sub-buffers.
"""

from __future__ import annotations

import io
import re
import shlex
import tarfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.errors import LabError
from tracepoint.record.layout import PageLayout
from tracepoint.record.pages import read_pages, records_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracepoint.record.raw import RawRecord

_FOLDER = "/tmp/verify"  # noqa: S108  (inside the guest)
ARCHIVE = f"{_FOLDER}.tar"
_LINE = re.compile(r"^ *.{1,16}-\d+ +(?:\(.{7}\) )?\[\d+\] \S{4,5} +\d+\.\d+: ")
_SCRIPT = """\
cd /sys/kernel/tracing
rm -rf @FOLDER@ && mkdir @FOLDER@
look() {
  to=@FOLDER@/$1 from=events/$2
  mkdir $to
  [ -d $from ] || return
  grep -cxF "$3" available_events >$to/listed
  cat $from/format >$to/format
  cat $from/id >$to/id
  echo 1 >$from/enable && cat $from/enable >$to/enable
  if [ -n "$4" ]; then
    printf '%s' "$4" >$from/filter && cat $from/filter >$to/filter
    cat $from/filter >$to/filter_text
    echo 0 >$from/filter
  fi
  echo 0 >$from/enable && cat $from/enable >$to/disabled
}
fire() {
  cat @FOLDER@/$1.lines >"$2" 2>@FOLDER@/$1/refused || :
}
"""
# dd reads one sub-buffer at a time; reading an empty buffer again would wait forever.
_READ = """\
echo 0 >tracing_on
cat trace >@FOLDER@/trace
for cpu in per_cpu/cpu*; do
  left=$(sed -n 's/^entries: //p' $cpu/stats)
  sed -n 's/^\\(overrun\\|dropped events\\): //p' $cpu/stats >>@FOLDER@/lost
  while [ "$left" -gt 0 ]; do
    dd if=$cpu/trace_pipe_raw bs=@PAGE@ count=1 2>/dev/null >>@FOLDER@/raw || break
    before=$left
    left=$(sed -n 's/^entries: //p' $cpu/stats)
    [ "$left" -lt "$before" ] || break
  done
done
"""


@dataclass(frozen=True, slots=True)
class EventToFire:
    """One event to verify: its names, the file that fires it and the lines to write there.

    `filter` is an expression to try (empty: none).
    """

    system: str
    name: str
    fire_path: str
    lines: tuple[str, ...]
    filter: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """The kernel's answer about one event.

    `id` is 0 and `format` empty when there is no such event; `enable` and `disabled` are what the
    file read after 1 and 0 were written, `filter` what it read after the expression was (empty when
    it was refused, then `filter_text` says why); `refused` is what the module said of the lines;
    `count` is the probe's (-1: not said); `records`, `lines` of the trace and `texts` (what the print
    format made of them) are those of all firings in order.
    """

    is_listed: bool
    id: int
    format: str
    enable: str
    disabled: str
    filter: str
    filter_text: str
    refused: str
    count: int
    records: tuple[bytes, ...]
    lines: tuple[str, ...]
    texts: tuple[str, ...]


def write_script(targets: Sequence[EventToFire], counters: Sequence[str], buffer_kb: int) -> str:
    """Return the shell script that examines the targets, fires them, and packs up the results.

    `counters` are files that register the modules' own probes when 1 is written, and contain one count
    per target in order; `buffer_kb` is the size of the ring buffer for all records.
    """
    parts = [_SCRIPT]
    for number, target in enumerate(targets):
        event = f"{target.system}/{target.name}"
        words = [str(number), event, f"{target.system}:{target.name}", target.filter]
        parts.append(f"look {shlex.join(words)}\n")
        lines = "".join(f"{line}\n" for line in target.lines)
        parts.append(f"cat >@FOLDER@/{number}.lines <<'END-OF-LINES'\n{lines}END-OF-LINES\n")
    parts.append(f"echo {buffer_kb} >buffer_size_kb\necho 1 >tracing_on\necho >trace\n")
    parts += [f"echo 1 >events/{target.system}/{target.name}/enable\n" for target in targets]
    parts += [f"echo 1 >{path}\n" for path in counters]
    for number, target in enumerate(targets):
        parts.append(f"fire {number} {shlex.quote(target.fire_path)}\n")
    parts.append(_READ)
    for path in counters:
        parts.append(f"cat {path} >>@FOLDER@/counts\necho 0 >{path}\n")
    parts += [f"echo 0 >events/{target.system}/{target.name}/enable\n" for target in targets]
    parts.append(f"cd @FOLDER@ && tar cf {ARCHIVE} . && rm -r @FOLDER@\n")
    return "".join(parts).replace("@FOLDER@", _FOLDER).replace("@PAGE@", str(PageLayout().page_size))


def read_records(data: bytes) -> list[RawRecord]:
    """Return the records of whole pages that a guest recorded a moment ago: 64 bits, nothing lost.

    A record may carry up to three bytes more than were written: lengths are multiples of four.
    Raises LabError when the bytes are not pages.
    """
    pages = read_pages(data, PageLayout())
    for head in pages.heads:
        if head.fault:
            raise LabError(f"the guest's ring buffer at byte {head.fault_at} cannot be read: {head.fault}")
    return list(records_of([(data, pages)]))


def read_answers(archive: bytes, targets: Sequence[EventToFire]) -> list[Answer]:
    """Return the answers about each target from the script's archive.

    Raises LabError when records were lost, or when text and records do not match.
    """
    files = _files(archive)
    if any(int(word) for word in files.get("lost", b"").split()):
        raise LabError("the guest's ring buffer was too small: records were lost")
    records = read_records(files.get("raw", b""))
    lines = read_lines(files.get("trace", b"").decode("utf-8", "surrogateescape"))
    if len(records) != len(lines):
        raise LabError(f"the guest's trace has {len(lines)} lines for {len(records)} records")
    counts = [int(word) for word in files.get("counts", b"").split()]
    answers = []
    for number, target in enumerate(targets):
        kept = {name: files.get(f"{number}/{name}", b"") for name in ("format", "id", "enable", "disabled")}
        event_id = int(kept["id"] or b"0")
        mine = [i for i, r in enumerate(records) if r.id() == event_id]
        answers.append(
            Answer(
                files.get(f"{number}/listed", b"").strip() == b"1",
                event_id,
                kept["format"].decode("utf-8", "surrogateescape"),
                kept["enable"].decode().strip(),
                kept["disabled"].decode().strip(),
                files.get(f"{number}/filter", b"").decode("utf-8", "surrogateescape").strip(),
                files.get(f"{number}/filter_text", b"").decode("utf-8", "surrogateescape").strip(),
                files.get(f"{number}/refused", b"").decode(errors="replace").strip(),
                counts[number] if number < len(counts) else -1,
                tuple(records[i].data for i in mine),
                tuple(lines[i] for i in mine),
                tuple(body_of(lines[i], target.name) for i in mine),
            )
        )
    return answers


def read_lines(text: str) -> list[str]:
    r"""Return one text for each event in the text of `trace`; continuation lines are joined.

    >>> read_lines("# head\n  sh-97  [000] ..... 12.000001: an_event: a\nb\n")
    ['  sh-97  [000] ..... 12.000001: an_event: a\nb']
    """
    lines: list[str] = []
    for line in text.split("\n")[:-1]:
        if _LINE.match(line):
            lines.append(line)
        elif lines:
            lines[-1] += "\n" + line
    return lines


def body_of(line: str, event_name: str) -> str:
    """Return the part of a trace line that the print format made.

    >>> body_of("  worker-1-12  [001] .....   100.000001: an_event: n=1", "an_event")
    'n=1'
    """
    return line.partition(f": {event_name}: ")[2]


def _files(archive: bytes) -> Mapping[str, bytes]:
    found = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            for member in tar:
                file = tar.extractfile(member) if member.isfile() else None
                if file is not None:
                    found[member.name.removeprefix("./")] = file.read()
    except tarfile.TarError as error:
        raise LabError(f"what the guest packed up cannot be read: {error}") from None
    return found
