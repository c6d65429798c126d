"""perf.data for tests: records of a trace.dat as the samples of tracepoints, file and pipe mode."""

from __future__ import annotations

import struct

from tracepoint.tracefile import sections
from tracepoint.tracefile.perfrecords import RecordType, Sample

SAMPLE_TYPE = (
    Sample.IDENTIFIER | Sample.IP | Sample.TID | Sample.TIME | Sample.CPU | Sample.PERIOD | Sample.RAW
)
MAGIC = b"PERFILE2"
ATTR_SIZE = 128
HEAD_SIZE = 104


class PerfMaker:
    """Makes a perf.data of the records of `trace`; `sample_type` and `callchain` shape the samples."""

    def __init__(self, trace, sample_type=SAMPLE_TYPE, round_size=50):
        self.trace = trace
        self.big = trace.is_big_endian
        self.order = ">" if self.big else "<"
        self.sample_type = sample_type
        self.round_size = round_size
        self.records = list(trace.buffers[0].records())
        self.ids = sorted({record.id(is_big_endian=self.big) for record in self.records})

    def pack(self, code, *values):
        return struct.pack(self.order + code, *values)

    def record(self, kind, body):
        body += bytes(-len(body) % 8)
        return self.pack("IHH", kind, 0, 8 + len(body)) + body

    def attr(self, number):
        # disabled, comm, sample_id_all; bit fields begin at the other end in big endian.
        bits = (0, 9, 18)
        flags = sum(1 << (63 - bit if self.big else bit) for bit in bits)
        return self.pack("IIQQQQQ", 2, ATTR_SIZE, number, 1, self.sample_type, 0, flags).ljust(
            ATTR_SIZE, b"\0"
        )

    def sample(self, record):
        number, pid = record.id(is_big_endian=self.big), record.pid(is_big_endian=self.big)
        values = {
            Sample.IDENTIFIER: self.pack("Q", 5000 + number),
            Sample.IP: self.pack("Q", 0xFFFFFFFF81000000),
            Sample.TID: self.pack("II", pid, pid),
            Sample.TIME: self.pack("Q", record.timestamp),
            Sample.ADDR: bytes(8),
            Sample.ID: self.pack("Q", 5000 + number),
            Sample.STREAM_ID: bytes(8),
            Sample.CPU: self.pack("II", record.cpu, 0),
            Sample.PERIOD: self.pack("Q", 1),
            Sample.READ: self.pack("Q", 1),
            Sample.CALLCHAIN: self.pack(
                "QQQQ", 3, 0xFFFFFFFFFFFFFF80, 0xFFFFFFFF81000000, 0xFFFFFFFF81000010
            ),
        }
        body = b"".join(value for bit, value in values.items() if self.sample_type & bit)
        size = (len(record.data) + 4 + 7) // 8 * 8 - 4
        return self.record(RecordType.SAMPLE, body + self.pack("I", size) + record.data.ljust(size, b"\0"))

    def trailer(self, record):
        values = (
            (Sample.TID, bytes(8)), (Sample.TIME, self.pack("Q", record.timestamp)), (Sample.ID, bytes(8)),
            (Sample.STREAM_ID, bytes(8)), (Sample.CPU, self.pack("II", record.cpu, 0)),
            (Sample.IDENTIFIER, self.pack("Q", 5000 + self.ids[0])),
        )  # fmt: skip
        return b"".join(value for bit, value in values if self.sample_type & bit)

    def lost(self, record, n_lost):
        return self.record(RecordType.LOST, self.pack("QQ", 5000, n_lost) + self.trailer(record))

    def comm(self, pid, name):
        text = name.encode().ljust(len(name) // 8 * 8 + 8, b"\0")
        return self.record(RecordType.COMM, self.pack("II", pid, pid) + text + self.trailer(self.records[0]))

    def data(self, lost_at=None):
        """Samples in rounds, those of each CPU together, as perf reads the rings one after the other."""
        done = [self.comm(int(pid), name) for pid, _, name in self._names()]
        for start in range(0, len(self.records), self.round_size):
            part = self.records[start : start + self.round_size]
            for record in sorted(part, key=lambda r: r.cpu):
                if record is self.records[lost_at] if lost_at is not None else False:
                    done.append(self.lost(record, 9))
                done.append(self.sample(record))
            done.append(self.record(RecordType.FINISHED_ROUND, b""))
        return done

    def _names(self):
        return (line.partition(" ") for line in self.trace.saved_cmdlines.splitlines())

    def tracing_data(self):
        head = b"\x17\x08\x44tracing0.6\0" + bytes([self.big, self.trace.layout.long_size])
        used = [(s, t) for s, t in self.trace.formats if s != "ftrace"]
        return (
            head
            + self.pack("I", 4096)
            + sections.write_header_info(self.trace.header_page, self.trace.header_event, self.order)
            + self.pack("I", 0)
            + sections.write_system_formats(used, self.order)
            + self.pack("I", 0)
            + sections.write_sized(self.trace.printk_formats, self.order, is_wide=False)
            + self.pack("Q", 0)
        )

    def file(self, records=None):
        """File mode, with the formats as a feature."""
        data = b"".join(self.data() if records is None else records)
        ids_at = HEAD_SIZE
        ids = b"".join(self.pack("Q", 5000 + number) for number in self.ids)
        attrs_at = ids_at + len(ids)
        attrs = b"".join(
            self.attr(number) + self.pack("QQ", ids_at + 8 * index, 8)
            for index, number in enumerate(self.ids)
        )
        data_at = attrs_at + len(attrs)
        magic = MAGIC[::-1] if self.big else MAGIC
        head = magic + self.pack("QQ", HEAD_SIZE, ATTR_SIZE + 16)
        head += self.pack("QQQQQQ", attrs_at, len(attrs), data_at, len(data), 0, 0)
        head += self.pack("QQQQ", 1 << 1, 0, 0, 0)
        blob = self.tracing_data()
        features = self.pack("QQ", data_at + len(data) + 16, len(blob))
        return head + ids + attrs + data + features + blob

    def pipe(self, records=None):
        """Pipe mode: attributes and formats are records."""
        blob = self.tracing_data()
        blob += bytes(-len(blob) % 8)
        magic = MAGIC[::-1] if self.big else MAGIC
        done = [magic + self.pack("Q", 16)]
        done += [
            self.record(RecordType.ATTR, self.attr(number) + self.pack("Q", 5000 + number))
            for number in self.ids
        ]
        done += [self.pack("IHHII", RecordType.TRACING_DATA, 0, 16, len(blob), 0), blob]
        return b"".join(done + (self.data() if records is None else records))

    def compressed(self, records, compress, step=700):
        """The same records as pieces of one zstd stream; a record may go on in the next piece."""
        plain = b"".join(records)
        pieces = (compress(plain[at : at + step]) for at in range(0, len(plain), step))
        return [self.pack("IHH", RecordType.COMPRESSED, 0, 8 + len(piece)) + piece for piece in pieces]
