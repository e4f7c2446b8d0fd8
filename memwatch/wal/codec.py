r"""One record <-> one line of a write-ahead log, format 1. This page is the format.

A line is one JSON object in UTF-8, at most 16 MB (10^6), ended by a line feed:

    {"lsn":1,"t":1796028000123456,"m":98765432,"k":"note","text":"hello","crc":"787d271a"}\n

`lsn`  log sequence number, an integer from 1; the next record has the next number
`t`    wall time, an integer of microseconds since the epoch, UTC
`m`    CLOCK_BOOTTIME, an integer of microseconds: order and rates use it
`k`    the kind of record, text
`x`    number of the experiment in progress, an integer from 1, where there is one
`th`   thread (sub-agent), absent for the main one
`crc`  always the last member: CRC-32 (as zlib computes it) of all bytes of the line before
       `,"crc"`, eight lower-case hexadecimal digits

All other members belong to the kind. Unknown kinds and members are kept. The first four stand
first and in this order when we write; a reader does not rely on it. Damaged is a line whose
last bytes are not `,"crc":"xxxxxxxx"}` to the byte, whose checksum differs, which is not one JSON
object, which holds a member twice (at any depth), NaN or Infinity, or whose `lsn`, `t`, `m` are
not integers from 0 (`lsn`: 1) to 2^63 - 2 or `k` not text. A writer stores a number that is not
finite as null.

Kinds and members that `memwatch.agent` writes (`bytes` and `*_bytes` are bytes, `*_us` are
microseconds, hashes SHA-256 in hexadecimal; a member that says nothing is left out):

    run.begin          run_id start_id boot agent version pid limits up_us
    run.end            status reason
    recovery           full deltas records lost duration_us terms state_bytes files
    experiment.begin   title phase
    experiment.end     title status metrics duration_us
    step.begin         id name
    step.end           id name status duration_us bytes_out
    tool.begin         id name
    tool.end           id name status duration_us bytes_out
    put                tier key bytes tokens importance ttl_us type of, and its content
    update             tier key bytes tokens importance ttl_us type of, and its content
    delete             tier key bytes
    access             tier counts
    sample             tiers process
    file               path op hash bytes was blob blob_bytes
    call               id service request paid state again error type value blob blob_bytes
    checkpoint.begin   id kind base first_lsn last_lsn
    checkpoint.commit  id kind base first_lsn last_lsn bytes file_bytes state_bytes entries sha256
                       state_hash duration_us stall_us experiments open phase persisted unpersisted
    checkpoint.abort   id kind reason
    truncate           cause first_lsn last_lsn segments bytes
    purge.begin        tier how cause
    purge.end          tier how cause entries freed_bytes persisted dropped deleted duration_us
                       refused
    retention          tier what old new why
    command            id op state detail result origin dry_run
    mode               mode cause
    error              kind message, and what the agent adds
    note               text

The content of a `put` or `update` is one of: `value`, canonical JSON up to 4 KB; `blob` and
`blob_bytes`, hash and length of the canonical text in `blobs/`; `rebuildable` (true) with `source`,
`{"args":{…},"by":"…"}`; for an `update` also `diff`, a list of operations (`memwatch.wal.diff`),
with `from`, the lsn of the version that it applies to. `bytes` is what the entry holds in memory
after the change, 0 in a `delete`. `importance` is 0.5 where it is left out. `type` is the class of
a value that is not plain JSON. `of` is the experiment that the entry counts under, null for none,
where that is not `x`. Applied in the order of their lsn these three kinds make the state.

`state_hash` is a hash for each tier: over its entries sorted by key, each as
`key \0 lsn \0 hash of the canonical value or source \n`. `sample.tiers` has `entries`, `bytes`,
`tokens`, `limit` for each tier, absolute: what tiers hold is told by it, not by sums of puts.
`run.begin.up_us` is how long its process was there; unknown where it is left out. A `recovery`
has by term (load, read, replay) `us`, `bytes` and `records`; `state_bytes` is what the recovered
entries hold in memory. `call.request` is the hash of the request, `state` one of begun, done,
failed; `again` is the call of an earlier start that this one repeats or is answered by. `file.op`
is write, seen or delete, `was` the hash before. `retention.what` is count or experiments, whose
number follows what entries measure, or phase or asked: then `old` and `new` hold what differs of
the tier's `Keep`.
A checkpoint's `file_bytes` are those of its own files; `bytes` adds persisted values that it is the
first of its chain to refer to. A full one's `state_bytes` are what its entries held in memory.
`truncate.cause` is checkpoint (segments went) or torn (`bytes` were cut).

Kinds and members that the guard writes to its own log, `guard.wal`:

    guard.begin        epoch version policy mode
    engine.mode        mode allow until_us by why again
    engine.state       state boot
    engine.decision    what rule level resource value limit why dry
    level              level resource share why
    plan               id level resource rule why state detail dry effect at steps before_bytes
                       after_bytes
    intervention       id op state detail origin plan by why what dry_run result ttl_us
    policy             source changed error
    viewer             state by known
    alert              key state severity text raised_us lasted_us moot
    notify             channel key state tries detail again_s
    budget             what state
    probe              alive rss_bytes swap_bytes processes orphans threads fds unaccounted_bytes
                       limit_bytes limit_name members disk
    gap                from_us until_us why
    process            text severity
    estimate           low_s likely_s high_s terms grade work
    restart            t_us total_s kind terms bytes state_bytes memory_bytes cold_cache waited_s
                       matches lossy estimate expected
    efficacy           at, and those of `memwatch.domain.intervention.Intervention`
    store              event id kind bytes duration_us step thread count
    note               text

`engine.mode.again` marks one that only says again what is in force, for who reads from the end.
`engine.state.state` is the threshold engine's own and may change with each version; `boot` is the
boot id that its durations belong to. A plan's `steps` are `{op, args, id, state, detail}`; `at` is
the place of the one in work. `viewer.state` is came, left or kept; `known` is what was counted
since the last one left, a guard's own. `alert.state` is raised, cleared or stands (said again of
one that was raised), `moot` one that only ended with the run. `notify.state` is sent, failed or
held; `again_s` says that it is tried again. `engine.mode.until_us` is wall time, null for until the
run ends. `estimate` is what a crash would cost, when it moved and when the agent died: `terms` has
the seconds of each, `work` the bytes and records that they rest on. A `restart` is one that was
seen (`memwatch.domain.recovery.PastRecovery`), against the estimate that stood. `efficacy.at` is
10s, 10min or settled: one intervention is written again as more of it is known. `store` is of a
checkpoint store that has no log: `event` is committed, incomplete or deleted; with a `count` it
is of so many at once.

Source: requirement R7; the run directory around the log is described in `memwatch.wal.segment`.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn
from zlib import crc32

import msgspec

from memwatch.domain.record import Record

MAX_LINE_BYTES = 16_000_000
"""Longest line, line feed included."""

RECORD_START = b'{"lsn":'
"""How every line that we write begins; lets a reader find a record behind a broken one."""

_CRC_MARK = b',"crc":"'
_TAIL_BYTES = len(_CRC_MARK) + 8 + 2  # mark, digits, quote and brace
_INT64_MAX = (1 << 63) - 1

_encoder = msgspec.json.Encoder()
_encode = _encoder.encode  # bound once: an append is a few microseconds
_decoder = msgspec.json.Decoder()

Members = dict[str, Any]


OWN_MEMBERS: Final = frozenset({"lsn", "t", "m", "k", "crc"})
"""Of each line: no record that is written may name them."""


class DamagedLineError(ValueError):
    """A line that is not a record; the text says why."""


def encode(lsn: int, t_us: int, m_us: int, kind: str, members: Members) -> bytes:
    """Return the line of a record, line feed included.

    Raises TypeError for a value that JSON cannot hold and ValueError for a line over
    MAX_LINE_BYTES or a member that is the codec's own.
    """
    whole = {"lsn": lsn, "t": t_us, "m": m_us, "k": kind, **members}
    if len(whole) != 4 + len(members) or "crc" in members:
        raise ValueError("lsn, t, m, k and crc are the codec's own members")
    body = _encode(whole)[:-1]
    line = body + b',"crc":"%08x"}\n' % crc32(body)
    if len(line) > MAX_LINE_BYTES:
        raise ValueError(f"a record of {len(line)} bytes is over the {MAX_LINE_BYTES} of a line")
    return line


def decode(line: bytes) -> Record:
    """Return the record of a line without its line feed; raises DamagedLineError."""
    body, tail = line[:-_TAIL_BYTES], line[-_TAIL_BYTES:]
    if tail != b'%b%08x"}' % (_CRC_MARK, crc32(body)):
        whole = tail.startswith(_CRC_MARK) and tail.endswith(b'"}')
        raise DamagedLineError("checksum differs" if whole else "no checksum at the end")
    return _record(body + b"}")


def _record(text: bytes) -> Record:
    try:
        members = _decoder.decode(text)
        # Equal bytes after a round trip prove that no member stood twice; a line that spells a
        # value in another way than we do takes the slow road.
        if _encoder.encode(members) != text:
            _refuse_repeated_members(text)
    except (ValueError, RecursionError) as error:
        raise DamagedLineError(str(error) or "nested too deep") from None
    if type(members) is not dict:
        raise DamagedLineError("not an object")
    kind = members.get("k")
    if type(kind) is not str:
        raise DamagedLineError("k is not text")
    lsn, t_us, m_us = _int64(members, "lsn"), _int64(members, "t"), _int64(members, "m")
    if lsn == 0:
        raise DamagedLineError("lsn is not from 1")
    return Record(lsn, t_us, m_us, kind, members)


def _int64(members: Members, name: str) -> int:
    """Return an integer that fits 64 bits, as does the one behind it."""
    value = members.get(name)
    if type(value) is int and 0 <= value < _INT64_MAX:
        return value
    raise DamagedLineError(f"{name} is not an integer in range")


def _refuse_repeated_members(text: bytes) -> None:
    import json  # for lines of other writers and damaged ones only

    def unique(pairs: list[tuple[str, Any]]) -> Members:
        members = dict(pairs)
        if len(members) != len(pairs):
            raise ValueError("a member stands twice")
        return members

    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is not a number")

    json.loads(text, object_pairs_hook=unique, parse_constant=refuse)
