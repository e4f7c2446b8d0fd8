"""The bytes of a checkpoint: tier files with a manifest, or a file of net changes.

Both appear under their name only when they are complete and on the device.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from memwatch.agent.files import Files
from memwatch.agent.memory.tiers import Entry, Tier, Tiers
from memwatch.domain.clock import Clock
from memwatch.wal import codec
from memwatch.wal.manifest import CheckpointFile, CheckpointManifest, TierTotals
from memwatch.wal.segment import FORMAT, MANIFEST_FILE

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
_BUFFER_BYTES = 256_000

_canonical = msgspec.json.Encoder(order="deterministic").encode
_encode = msgspec.json.Encoder().encode


class Header(Struct, frozen=True, kw_only=True):
    """What a checkpoint is, before it is written."""

    run_id: str
    id: str
    name: str
    kind: Literal["full", "incremental"]
    base: str | None
    first_lsn: int
    last_lsn: int
    began_us: int


class Written(Struct, frozen=True):
    """What was written: all bytes, entries, and the checksum that the commit carries."""

    bytes: int
    entries: int
    sha256: str


def write_full(folder: Path, header: Header, tiers: Tiers, clock: Clock, files: Files) -> Written:
    """Write the directory of a full checkpoint; raises OSError, ValueError or TypeError."""
    draft = folder / f".{header.name}.draft"
    shutil.rmtree(draft, ignore_errors=True)
    try:
        draft.mkdir()
        parts = {
            f"{name}.jsonl": _write_lines(draft / f"{name}.jsonl", _entry_lines(tier), files)
            for name, tier in tiers.items()
        }
        manifest = CheckpointManifest(
            format=FORMAT,
            run_id=header.run_id,
            id=header.id,
            kind=header.kind,
            base=header.base,
            first_lsn=header.first_lsn,
            last_lsn=header.last_lsn,
            tiers={name: TierTotals(len(tier), tier.bytes) for name, tier in tiers.items()},
            files=parts,
            began_us=header.began_us,
            committed_us=clock.wall_us(),
        )
        text = _encode(manifest)
        files.write_new(draft / MANIFEST_FILE, text)
        files.sync_directory(draft)
        files.rename(draft, folder / header.name)
        files.sync_directory(folder)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    size = len(text) + sum(part.bytes for part in parts.values())
    return Written(size, sum(map(len, tiers.values())), hashlib.sha256(text).hexdigest())


def write_delta(folder: Path, header: Header, tiers: Tiers, clock: Clock, files: Files) -> Written:
    """Write the file of an incremental checkpoint; raises OSError, ValueError or TypeError."""
    draft = folder / f".{header.name}.draft"
    changed = [
        (change.lsn, tier, key) for tier in tiers.values() for key, change in tier.changes().items()
    ]
    changed.sort(key=lambda change: change[0])
    try:
        part = _write_lines(draft, _change_lines(changed, clock), files)
        files.rename(draft, folder / header.name)
        files.sync_directory(folder)
    except BaseException:
        files.discard(draft)
        raise
    return Written(part.bytes, len(changed), part.sha256)


def state_hashes(tiers: Tiers) -> dict[str, str]:
    """Return for each tier the SHA-256 over its entries, sorted by key.

    Each entry counts as `key NUL lsn NUL sha256(canonical value) LF`, the inner hash in
    hexadecimal; canonical is JSON with sorted members, bytes in base64.
    """
    return {name: _state_hash(tier) for name, tier in tiers.items()}


def _state_hash(tier: Tier) -> str:
    whole = hashlib.sha256()
    for entry in sorted(tier.entries(), key=lambda entry: entry.key):
        whole.update(f"{entry.key}\0{entry.lsn}\0{_digest(entry)}\n".encode())
    return whole.hexdigest()


def _digest(entry: Entry) -> str:
    if entry.digest is None:
        entry.digest = hashlib.sha256(_canonical(entry.value)).hexdigest()
    return entry.digest


def _members(entry: Entry) -> dict[str, Any]:
    """Return what recovery needs; the value of a rebuildable entry is made again instead."""
    members: dict[str, Any] = {
        "key": entry.key,
        "bytes": entry.bytes,
        "rebuildable": entry.rebuildable,
        "importance": entry.importance,
    }
    if entry.tokens is not None:
        members["tokens"] = entry.tokens
    if entry.group is not None:
        members["group"] = entry.group
    if not entry.rebuildable:
        members["value"] = msgspec.Raw(_canonical(entry.value))
    return members


def _entry_lines(tier: Tier) -> Iterator[bytes]:
    for entry in tier.entries():
        yield _encode({"lsn": entry.lsn, **_members(entry)}) + b"\n"


def _change_lines(changed: list[tuple[int, Tier, str]], clock: Clock) -> Iterator[bytes]:
    t_us, m_us = clock.wall_us(), clock.boot_us()
    for lsn, tier, key in changed:
        entry = tier.entry(key)
        if entry is None:
            gone = {"tier": tier.name, "key": key, "bytes": 0}
            yield codec.encode(lsn, t_us, m_us, "delete", gone)
        else:
            yield codec.encode(lsn, t_us, m_us, "put", {"tier": tier.name, **_members(entry)})


def _write_lines(path: Path, lines: Iterable[bytes], files: Files) -> CheckpointFile:
    """Write and sync a file, a piece at a time: a second copy of the tiers never exists."""
    digest, size = hashlib.sha256(), 0
    fd = files.open(path, _CREATE, 0o644)
    try:
        for piece in _pieces(lines):
            files.write_all(fd, piece)
            digest.update(piece)
            size += len(piece)
        files.fsync(fd)
    finally:
        files.close(fd)
    return CheckpointFile(size, digest.hexdigest())


def _pieces(lines: Iterable[bytes]) -> Iterator[bytes]:
    held: list[bytes] = []
    held_bytes = 0
    for line in lines:
        held.append(line)
        held_bytes += len(line)
        if held_bytes >= _BUFFER_BYTES:
            yield b"".join(held)
            held, held_bytes = [], 0
    if held:
        yield b"".join(held)
