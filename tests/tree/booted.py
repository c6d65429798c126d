"""What a booted kernel and its modules say about their events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from module_trees import with_events
from tracepoint.lab.guest import machine as lab_guest
from tracepoint.lab.kernels.modules import ModuleTree
from tracepoint.layout.compressed import decompress
from tracepoint.layout.format import EventFormat, read_format
from tracepoint.layout.objects import read_object
from tracepoint.source.text import decode

if TYPE_CHECKING:
    from tracepoint.lab.kernels.packages import KernelImage

SCRIPT = "cd /sys/kernel/tracing/events && for f in */*/format; do echo @@ $f; cat $f; done > /mnt/all"


def booted_formats(kernel: str) -> tuple[dict[str, EventFormat], KernelImage]:
    """The formats of a booted kernel by `system:event`, without those of the tracer itself, and its image."""
    with lab_guest.boot(kernel) as guest:
        guest.run(SCRIPT, timeout=120)
        text = decode(guest.get("/mnt/all"))
        image = guest.image
    formats = {}
    for part in text.split("@@ ")[1:]:
        name, _, body = part.partition("\n")
        system, event, _ = name.split("/")
        if system != "ftrace":
            formats[f"{system}:{event}"] = read_format(body, system)
    return formats, image


def module_formats(image: KernelImage) -> dict[str, EventFormat]:
    """The formats in the modules of a kernel, which are those that it shows once they are loaded."""
    infos = with_events(ModuleTree(image.modules))
    events = [event for info in infos for event in read_object(decompress(info.path.read_bytes()))]
    return {f"{event.system}:{event.name}": event for event in events}
