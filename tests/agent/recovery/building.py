"""Run directories written by hand, line by line, with the state that each record leaves.

Nothing of the agent's writers is used but the codec: recovery must not depend on them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from memwatch.wal import codec
from memwatch.wal.diff import difference
from memwatch.wal.segment import delta_name, full_name, segment_name

Kept = dict[str, dict[str, tuple[int, Any]]]
"""Tier -> key -> lsn of the last change, value."""

TEXT = "once upon a time there was a log" * 20
TIERS = ("recent", "verified")
_canonical = msgspec.json.Encoder(order="sorted").encode


class Builder:
    """Writes a run, and remembers its state after each record."""

    def __init__(self, path: Path, run_id: str = "run-1") -> None:
        self.path = path
        self.run_id = run_id
        self.lsn = 0
        self.kept: Kept = {tier: {} for tier in TIERS}
        self.truth: dict[int, Kept] = {0: _copy(self.kept)}
        self.base: str | None = None
        self.covered = 0
        """Last lsn of the newest checkpoint."""
        self._at_checkpoint: Kept = _copy(self.kept)
        self._blobs: dict[tuple[str, str], str] = {}
        for folder in ("wal", "checkpoints", "blobs"):
            (path / folder).mkdir(parents=True)
        (path / "run.json").write_bytes(
            msgspec.json.encode({"format": 1, "run_id": run_id, "agent": "tester"})
        )
        self.begin()

    def begin(self) -> int:
        """Start the run, or start it again: a segment of its own."""
        self.roll()
        return self.log("run.begin", {"start_id": f"s{self.lsn}", "run_id": self.run_id})

    def roll(self) -> None:
        """Begin a segment."""
        self.segment = self.path / "wal" / segment_name(self.lsn + 1)
        self.segment.touch()

    def log(self, kind: str, members: dict[str, Any]) -> int:
        """Append a record."""
        self.lsn += 1
        line = codec.encode(self.lsn, 1_000_000 + self.lsn, self.lsn, kind, members)
        with self.segment.open("ab") as file:
            file.write(line)
        self.truth[self.lsn] = _copy(self.kept)
        return self.lsn

    def put(self, tier: str, key: str, value: Any, *, blob: bool = False) -> int:
        """Put a value whole."""
        kind = "update" if key in self.kept[tier] else "put"
        return self._changed(kind, tier, key, value, self._home((tier, key), value, blob=blob))

    def update(self, tier: str, key: str, value: Any) -> int:
        """Put a value by its difference from the one before."""
        lsn, before = self.kept[tier][key]
        self._blobs.pop((tier, key), None)
        how = {"diff": difference(before, value), "from": lsn}
        return self._changed("update", tier, key, value, how)

    def delete(self, tier: str, key: str) -> int:
        """Delete an entry."""
        del self.kept[tier][key]
        self._blobs.pop((tier, key), None)
        return self.log("delete", {"tier": tier, "key": key, "bytes": 0})

    def full(self, *, commit: bool = True) -> Path:
        """Take a full checkpoint; returns its directory."""
        last, folder = self.lsn, self.path / "checkpoints" / full_name(self.lsn)
        self.roll()
        self.log("checkpoint.begin", {"id": folder.name, "kind": "full"})
        folder.mkdir()
        files = {f"{tier}.jsonl": b"".join(self._tier_lines(tier)) for tier in TIERS}
        for name, data in files.items():
            (folder / name).write_bytes(data)
        manifest = {
            "format": 1,
            "run_id": self.run_id,
            "id": folder.name,
            "kind": "full",
            "first_lsn": 1,
            "last_lsn": last,
            "tiers": {t: {"entries": len(self.kept[t]), "bytes": 100} for t in TIERS},
            "files": {n: {"bytes": len(d), "sha256": sha(d)} for n, d in files.items()},
            "began_us": 1,
            "committed_us": 2,
        }
        text = msgspec.json.encode(manifest)
        (folder / "MANIFEST.json").write_bytes(text)
        if commit:
            self._commit(folder.name, "full", 1, last, sha(text))
            self.base = folder.name
        return folder

    def delta(
        self, *, commit: bool = True, times: int = 1, extra: Sequence[tuple[int, bytes]] = ()
    ) -> Path:
        """Take an incremental checkpoint; returns its file, whose lines stand `times` times."""
        first, last = self.covered + 1, self.lsn
        path = self.path / "checkpoints" / delta_name(first, last)
        self.log("checkpoint.begin", {"id": path.stem, "kind": "incremental"})
        data = b"".join(line for _, line in sorted([*self._net_changes(), *extra])) * times
        path.write_bytes(data)
        if commit:
            self._commit(path.stem, "incremental", first, last, sha(data), len(data))
        return path

    def recommit(self, folder: Path) -> None:
        """Commit a full checkpoint again, as its files are now."""
        text = json.loads((folder / "MANIFEST.json").read_bytes())
        for name in text["files"]:
            data = (folder / name).read_bytes()
            text["files"][name] = {"bytes": len(data), "sha256": sha(data)}
        manifest = msgspec.json.encode(text)
        (folder / "MANIFEST.json").write_bytes(manifest)
        self._commit(folder.name, "full", 1, text["last_lsn"], sha(manifest))

    def hashes(self) -> dict[str, str]:
        """Return the state hash of each tier, as the format's page says."""
        return {tier: _state_hash(entries) for tier, entries in self.kept.items()}

    def _commit(
        self, name: str, kind: str, first: int, last: int, digest: str, size: int = 9
    ) -> None:
        about = {"id": name, "kind": kind, "base": self.base, "first_lsn": first, "last_lsn": last}
        figures = {"bytes": size, "sha256": digest, "state_hash": self.hashes()}
        self.log("checkpoint.commit", about | figures)
        self.covered, self._at_checkpoint = last, _copy(self.kept)

    def _changed(self, kind: str, tier: str, key: str, value: Any, how: dict[str, Any]) -> int:
        self.kept[tier].pop(key, None)
        self.kept[tier][key] = (self.lsn + 1, value)
        return self.log(kind, {"tier": tier, "key": key, "bytes": 100, **how})

    def _home(self, name: tuple[str, str], value: Any, *, blob: bool) -> dict[str, Any]:
        text = _canonical(value)
        self._blobs.pop(name, None)
        if not blob:
            return {"value": msgspec.Raw(text)}
        (self.path / "blobs" / sha(text)).write_bytes(text)
        self._blobs[name] = sha(text)
        return {"blob": sha(text), "blob_bytes": len(text)}

    def _kept_home(self, tier: str, key: str) -> dict[str, Any]:
        blob = (tier, key) in self._blobs
        return self._home((tier, key), self.kept[tier][key][1], blob=blob)

    def _tier_lines(self, tier: str) -> Iterator[bytes]:
        for key, (lsn, _) in self.kept[tier].items():
            line = {"key": key, "lsn": lsn, "bytes": 100, "importance": 0.5}
            yield msgspec.json.encode(line | self._kept_home(tier, key)) + b"\n"

    def _net_changes(self) -> Iterator[tuple[int, bytes]]:
        for tier in TIERS:
            before, after = self._at_checkpoint[tier], self.kept[tier]
            for key, (lsn, value) in after.items():
                how = self._kept_home(tier, key)
                if key in before and before[key][0] != lsn and "value" in how:
                    how = {"diff": difference(before[key][1], value), "from": before[key][0]}
                if before.get(key, (0,))[0] != lsn:
                    about = {"tier": tier, "key": key, "bytes": 100, **how}
                    kind = "update" if key in before else "put"
                    yield lsn, codec.encode(lsn, 1, 1, kind, about)
            for key in before.keys() - after.keys():
                about = {"tier": tier, "key": key, "bytes": 0}
                yield self.covered + 1, codec.encode(self.covered + 1, 1, 1, "delete", about)


def sha(data: bytes) -> str:
    """Return a SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def _copy(kept: Kept) -> Kept:
    return {tier: dict(entries) for tier, entries in kept.items()}


def _state_hash(entries: dict[str, tuple[int, Any]]) -> str:
    lines = (f"{key}\0{lsn}\0{sha(_canonical(value))}\n" for key, (lsn, value) in entries.items())
    return sha("".join(sorted(lines, key=lambda line: line.split("\0")[0])).encode())


def a_run(path: Path) -> Builder:
    """Return a run with two chains, every kind of change, and a tail."""
    run = Builder(path)
    run.put("recent", "a", {"n": 1, "text": TEXT})
    run.put("recent", "b", list(range(30)))
    run.put("verified", "proof", {"big": "x" * 500}, blob=True)
    run.full()
    run.update("recent", "a", {"n": 2, "text": TEXT})
    run.put("recent", "c", None)
    run.delta()
    run.delete("recent", "b")
    run.put("verified", "second", {"big": "y" * 500}, blob=True)
    run.full()
    run.update("recent", "a", {"n": 3, "text": TEXT})
    run.put("recent", "d", {"deep": [[1, [2.5, "ü"]]]})
    run.delta()
    run.begin()
    run.update("verified", "proof", {"big": "x" * 500, "more": True})
    run.delete("recent", "c")
    run.delta()
    run.update("recent", "a", {"n": 4, "text": TEXT})
    run.update("recent", "a", {"n": 5, "text": TEXT + "and so on"})
    run.put("recent", "e", 5)
    return run
