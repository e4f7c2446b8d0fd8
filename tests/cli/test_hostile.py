"""Names that want to act on a terminal never reach it raw, whatever command shows them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memwatch.domain.text import inert
from memwatch.wal import codec
from memwatch.wal.segment import segment_name
from tests.e2e.stage import Stage
from tests.waiting import wait_for

TITLE = "\x1b]0;owned\x07"
EVIL = f"{TITLE}\x1b[2J\x9b31m\u202egnp.exe\u2066[bold red]\r\n\x00\x7f\u200b\ue000"


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with Stage() as stage:
        yield stage


@pytest.fixture(scope="module")
def run_dir(stage: Stage) -> Path:
    """Return a run directory of a stranger: every text in it wants to act."""
    place = stage.folder / f"evil{TITLE}\u202e"
    wal = place / "wal"
    wal.mkdir(parents=True)
    manifest = {
        "format": 1,
        "run_id": EVIL,
        "agent": EVIL,
        "profile": EVIL,
        "host": EVIL,
        "boot_id": EVIL,
        "started_us": 1_796_000_000_000_000,
        "ops": {EVIL: {"about": EVIL}},
        "argv": [EVIL],
    }
    (place / "run.json").write_text(json.dumps(manifest))
    (wal / segment_name(1)).write_bytes(b"".join(_lines()))
    return place


def _lines() -> Iterator[bytes]:
    tiers = {EVIL: {"entries": 1, "bytes": 5}}
    records: list[tuple[str, dict[str, Any]]] = [
        ("run.begin", {"start_id": EVIL, "agent": EVIL, "version": EVIL, "boot": "x"}),
        ("experiment.begin", {"x": 1, "title": EVIL, "phase": EVIL}),
        ("note", {"text": EVIL}),
        ("error", {"kind": EVIL, "message": EVIL}),
        ("mode", {"mode": EVIL, "cause": EVIL}),
        (EVIL, {"strange": EVIL}),
        ("checkpoint.begin", {"id": EVIL, "kind": EVIL, "base": EVIL}),
        ("checkpoint.abort", {"id": EVIL, "kind": EVIL, "reason": EVIL}),
        ("purge.end", {"tier": EVIL, "how": EVIL, "cause": EVIL, "freed_bytes": 1}),
        ("command", {"id": EVIL, "op": EVIL, "state": EVIL, "detail": EVIL}),
        ("retention", {"tier": EVIL, "old": EVIL, "new": EVIL, "why": EVIL}),
        ("sample", {"tiers": tiers}),
        ("experiment.end", {"x": 1, "status": EVIL, "metrics": {EVIL: 1}, "best": EVIL}),
        ("run.end", {"status": EVIL, "reason": EVIL}),
    ]
    for lsn, (kind, members) in enumerate(records, 1):
        yield codec.encode(lsn, 1_796_000_000_000_000 + lsn, lsn, kind, members)
    yield EVIL.replace("\n", "").encode() + b"\n"  # a damaged line


def harmless(text: str) -> bool:
    return all(line == inert(line, len(line) + 1) for line in text.splitlines() or [""])


COMMANDS = [
    ["status"],
    ["status", "--line"],
    ["status", "--json"],
    ["inspect"],
    ["report"],
    ["report", "--json"],
    ["inspect", "--json"],
    ["drill"],
    ["drill", "--json"],
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_looked_at_without_a_guard(stage: Stage, run_dir: Path, words: list[str]) -> None:
    done = stage.cli(words[0], str(run_dir), *words[1:])
    assert done.stdout
    assert harmless(done.stdout)
    assert harmless(done.stderr)
    if "--json" in words:
        assert json.loads(done.stdout), "scripts still get the names as they are"


def test_watched_by_a_guard(stage: Stage, run_dir: Path) -> None:
    begun = stage.cli("guard", str(run_dir), "--detach")
    assert begun.returncode == 0, begun.stderr
    assert harmless(begun.stdout)
    for words in COMMANDS[:3]:
        done = stage.cli(words[0], str(run_dir), *words[1:])
        assert harmless(done.stdout)
    for words in (
        ["ls"],
        ["ls", "--json"],
        ["tonight", str(run_dir)],
        ["tonight", str(run_dir), "--json"],
        ["ctl", str(run_dir), "pause"],
        ["ctl", str(run_dir), "mode", "observe"],
        ["ctl", str(run_dir), "abort"],
        ["guard", str(run_dir), "--unit"],
    ):
        done = stage.cli(*words)
        assert done.stdout or done.stderr
        assert harmless(done.stdout)
        assert harmless(done.stderr)
    session = stage.session(run_dir)
    newest = session.latest(0, 5.0)
    assert newest is not None
    assert all(harmless(event.text) for event in session.events(0, 1000))
    assert all(harmless(light.meaning) for light in newest.lights)
    session.close()
    again = stage.cli("guard", str(run_dir))
    assert "already guarded" in again.stdout
    stopped = stage.cli("guard", "--stop", str(run_dir))
    assert stopped.returncode == 0
    assert harmless(stopped.stdout)


def test_nothing_left_the_home(stage: Stage, run_dir: Path) -> None:
    wait_for(lambda: (stage.home / "runs").is_dir(), "the guard of the test before")
    (kept,) = (stage.home / "runs").iterdir()
    assert harmless(kept.name)
    copy = stage.folder / "copy"
    shutil.copytree(run_dir, copy)
    assert stage.cli("guard", str(copy), "--detach").returncode == 0
    assert len(list((stage.home / "runs").iterdir())) == 2
    assert stage.cli("guard", "--stop", str(copy)).returncode == 0


def test_errors_that_name_it_are_harmless(stage: Stage) -> None:
    missing = stage.folder / f"missing{TITLE}\u202e\x9b"
    for command in ("status", "guard", "inspect", "tonight", "ctl"):
        more = ["pause"] if command == "ctl" else []
        done = stage.cli(command, str(missing), *more)
        assert done.returncode == 2
        assert harmless(done.stderr)


def test_times_beyond_all_calendars_stop_no_command(stage: Stage, tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    (run_dir / "wal").mkdir(parents=True)
    beyond = 1 << 62
    manifest = {"format": 1, "run_id": "beyond", "agent": "a", "started_us": 1 << 53}
    (run_dir / "run.json").write_text(json.dumps(manifest))
    note = codec.encode(1, beyond, 1, "note", {"text": "hello"})
    (run_dir / "wal" / segment_name(1)).write_bytes(note)
    guard = stage.guard(run_dir)
    for words in (["status", str(run_dir)], ["inspect", str(run_dir)], ["ls"]):
        done = stage.cli(*words)
        assert done.stderr == "", words
        assert done.stdout
    guard.end()
    assert stage.cli("ls").stderr == ""
