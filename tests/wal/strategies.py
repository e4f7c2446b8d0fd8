"""Records, lines and chunks for property tests of the log format."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple
from zlib import crc32

from hypothesis import strategies as st

from memwatch.domain.record import Fault, Position, Record
from memwatch.wal import codec
from memwatch.wal.stream import SegmentStream

INT64_MAX = (1 << 63) - 1
OWN = {"lsn", "t", "m", "k", "crc"}

text = st.text(max_size=20)  # no surrogates: hypothesis makes none
finite = st.floats(allow_nan=False, allow_infinity=False)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-INT64_MAX, INT64_MAX)
    | finite
    | text
    | st.sampled_from(['{"lsn":1,"t":1,"m":1,"k":"x"}', ',"crc":"00000000"}', "\n", '"}\n', "\\"])
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)
members = st.dictionaries(text.filter(lambda name: name not in OWN), values, max_size=4)


class Body(NamedTuple):
    """A record without its number."""

    t_us: int
    m_us: int
    kind: str
    members: dict[str, Any]


times = st.integers(0, INT64_MAX - 1)
bodies = st.builds(Body, times, times, text, members)
body_lists = st.lists(bodies, min_size=1, max_size=8)


class Log(NamedTuple):
    """A healthy segment: its records and, one each, their lines."""

    first: int
    records: list[Record]
    lines: list[bytes]

    @property
    def data(self) -> bytes:
        return b"".join(self.lines)

    def ends(self) -> list[int]:
        """Return the offset behind each line."""
        total, ends = 0, []
        for line in self.lines:
            total += len(line)
            ends.append(total)
        return ends


def log_of(found: Iterable[Body], first: int = 1) -> Log:
    """Return the log that a writer makes of these."""
    records, lines = [], []
    for lsn, body in enumerate(found, first):
        line = codec.encode(lsn, body.t_us, body.m_us, body.kind, body.members)
        lines.append(line)
        head = {"lsn": lsn, "t": body.t_us, "m": body.m_us, "k": body.kind}
        records.append(Record(lsn, body.t_us, body.m_us, body.kind, head | body.members))
    return Log(first, records, lines)


logs = st.builds(log_of, body_lists, st.integers(1, 1 << 40))


@st.composite
def chunked(draw: st.DrawFn, data: bytes) -> list[bytes]:
    """Return `data` cut at any places."""
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=10)))
    edges = [0, *cuts, len(data)]
    return [data[a:b] for a, b in pairwise(edges)]


class Reading(NamedTuple):
    """What a stream made of some bytes."""

    records: list[Record]
    faults: list[Fault]
    stream: SegmentStream

    def kinds(self) -> list[str]:
        return [fault.kind for fault in self.faults]


def read(
    chunks: Iterable[bytes],
    first: int = 1,
    position: Position | None = None,
    max_line_bytes: int = codec.MAX_LINE_BYTES,
) -> Reading:
    """Feed the chunks to a new stream."""
    stream = SegmentStream(position or Position(first), max_line_bytes)
    items = [item for chunk in chunks for item in stream.feed(chunk)]
    records = [item for item in items if isinstance(item, Record)]
    faults = [item for item in items if isinstance(item, Fault)]
    return Reading(records, faults, stream)


def signed(body: bytes) -> bytes:
    """Return a line, its feed included, with a right checksum behind any bytes (no last brace)."""
    return b'%b,"crc":"%08x"}\n' % (body, crc32(body))
