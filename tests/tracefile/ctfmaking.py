"""CTF traces made by hand: a metadata text, and packets packed with `struct`."""

from __future__ import annotations

import struct
from uuid import UUID

UUID_TEXT = "09731f23-d160-4df3-90b0-ffbebbec013e"
_INTEGERS = "".join(
    f"typealias integer {{ size = {size}; align = 8; signed = {'true' if kind == 's' else 'false'}; }}"
    f" := {kind}{size};\n"
    for size in (8, 16, 32, 64)
    for kind in "us"
)
_HEADERS = {
    "compact": """struct header {
        enum : integer { size = 5; align = 1; } { compact = 0 ... 30, extended = 31 } id;
        variant <id> {
            struct { integer { size = 27; align = 1; map = clock.mono.value; } timestamp; } compact;
            struct { u32 id; integer { size = 64; align = 8; map = clock.mono.value; } timestamp; } extended;
        } v;
    } align(8);
    """,
    "large": """struct header {
        enum : u16 { compact = 0...65534, extended = 65535 } id;
        variant <id> {
            struct { integer { size = 32; align = 8; map = clock.mono.value; } timestamp; } compact;
            struct { u32 id; integer { size = 64; align = 8; map = clock.mono.value; } timestamp; } extended;
        } v;
    } align(8);
    """,
}


def metadata(
    events: str = "",
    *,
    order: str = "<",
    header: str = "compact",
    context: str = "",
    env: str = 'tracer_name = "lttng-modules";',
    clock: str = "freq = 1000000000; offset_s = 100; offset = 7;",
) -> str:
    """Return the metadata of a trace as LTTng writes it, with the events of a text."""
    return f"""/* CTF 1.8 */
{_INTEGERS}
trace {{
    major = 1; minor = 8; uuid = "{UUID_TEXT}"; byte_order = {"le" if order == "<" else "be"};
    packet.header := struct {{ u32 magic; u8 uuid[16]; u32 stream_id; }};
}};
env {{ {env} }};
clock {{ name = "mono"; {clock} }};
{_HEADERS[header]}
stream {{
    id = 0;
    event.header := struct header;
    packet.context := struct {{
        integer {{ size = 64; align = 8; map = clock.mono.value; }} timestamp_begin;
        integer {{ size = 64; align = 8; map = clock.mono.value; }} timestamp_end;
        u64 content_size; u64 packet_size; u64 packet_seq_num; u64 events_discarded; u32 cpu_id;
    }};
    event.context := struct {{ {context} }};
}};
{events}
"""


def event(number: int, name: str, fields: str = "", context: str = "") -> str:
    """Return the block of an event."""
    return (
        f'event {{ id = {number}; stream_id = 0; name = "{name}"; context := struct {{ {context} }};\n'
        f"fields := struct {{ {fields} }}; }};\n"
    )


class CtfPacker:
    """Packs events and packets in a byte order, with the header `compact` or `large`."""

    def __init__(self, order: str = "<", header: str = "compact") -> None:
        self.order = order
        self.header = header
        self.n_packets = 0

    def event(self, number: int, stamp: int, payload: bytes = b"", *, is_extended: bool = False) -> bytes:
        """Return an event; its header holds the lowest bits of the time, or all of them."""
        bits = 5 if self.header == "compact" else 16
        low = stamp & ((1 << (32 - bits if bits == 5 else 32)) - 1)
        mark = (1 << bits) - 1 if is_extended else number
        rest = struct.pack(f"{self.order}IQ", number, stamp) if is_extended else b""
        if self.header == "large":
            return (
                struct.pack(f"{self.order}H", mark) + (rest or struct.pack(f"{self.order}I", low)) + payload
            )
        if is_extended:
            return bytes([mark if self.order == "<" else mark << 3]) + rest + payload
        word = mark | low << 5 if self.order == "<" else mark << 27 | low
        return struct.pack(f"{self.order}I", word) + payload

    def packet(
        self,
        events: bytes,
        begin: int,
        cpu: int = 0,
        *,
        discarded: int = 0,
        n_bytes: int = 4096,
        **sizes: int,
    ) -> bytes:
        """Return a packet; `sizes` are other bits than those it has, as damage."""
        head = 24 + 6 * 8 + 4
        content = 8 * (head + len(events))
        size = sizes.get("packet_size", 8 * n_bytes)
        self.n_packets += 1
        return (
            struct.pack(f"{self.order}I", 0xC1FC1FC1)
            + UUID(UUID_TEXT).bytes
            + struct.pack(
                f"{self.order}IQQQQQQI",
                sizes.get("stream_id", 0),
                begin,
                sizes.get("end", begin + 1_000_000),
                sizes.get("content_size", content),
                size,
                sizes.get("number", self.n_packets - 1),
                discarded,
                cpu,
            )
            + events
        ).ljust(n_bytes, b"\xaa")


def packed_metadata(text: str, order: str = "<", n_bytes: int = 4096) -> bytes:
    """Return metadata in packets, as LTTng writes them."""
    data, made = text.encode(), []
    for at in range(0, len(data), n_bytes - 37):
        part = data[at : at + n_bytes - 37]
        head = struct.pack(
            f"{order}I16sIIIBBBBB",
            0x75D11D57,
            UUID(UUID_TEXT).bytes,
            0,
            8 * (37 + len(part)),
            8 * n_bytes,
            0,
            0,
            0,
            1,
            8,
        )
        made.append((head + part).ljust(n_bytes, b"\0"))
    return b"".join(made)


def write_ctf(folder, text: str | bytes, **streams: bytes):
    """Write a trace and return its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metadata").write_bytes(text if isinstance(text, bytes) else text.encode())
    for name, data in streams.items():
        (folder / name).write_bytes(data)
    return folder
