"""Blobs that one start after the other leaves behind go, and none that a recovery could ask for."""

from __future__ import annotations

from pathlib import Path

import pytest

from memwatch.agent import Cadence, Keep, Run, RunOptions, recover
from memwatch.agent.checkpoints.mentions import mentioned

BYTES = 6_000
KEPT = 5
FULL_EVERY = 6
STARTS = 60


def start(path: Path, number: int) -> None:
    """Put one value and end; every few starts a full checkpoint is due."""
    cadence = Cadence(incremental_experiments=2, full_experiments=FULL_EVERY)
    options = RunOptions(agent="restless", keep={"recent": Keep(count=KEPT)}, cadence=cadence)
    with Run.open(path, options) as run:
        with run.experiment("one", "exploration"):
            run.tiers["recent"].put(f"value/{number}", f"{number:08}" * (BYTES // 8))
        run.safe_point()


def blobs(path: Path) -> set[str]:
    return {file.name for file in (path / "blobs").iterdir()}


def test_dead_blobs_do_not_pile_up_over_starts(tmp_path: Path) -> None:
    for number in range(STARTS):
        start(tmp_path, number)
    assert len(blobs(tmp_path)) <= KEPT + 4 * FULL_EVERY
    assert mentioned(tmp_path) <= blobs(tmp_path)


def test_what_an_older_chain_needs_stays(tmp_path: Path) -> None:
    for number in range(STARTS):
        start(tmp_path, number)
    newest = max((tmp_path / "checkpoints").glob("full-*"))
    (newest / "MANIFEST.json").write_bytes(b"{}")
    state, report = recover(tmp_path)
    assert not report.lossy
    assert report.full != newest.name
    values = [state["recent"][f"value/{n}"] for n in range(STARTS - KEPT, STARTS)]
    assert values == [f"{n:08}" * (BYTES // 8) for n in range(STARTS - KEPT, STARTS)]


@pytest.mark.parametrize("piece", [1, 79, 80, 1 << 20])
def test_a_mention_is_found_across_pieces(
    tmp_path: Path, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memwatch.agent.checkpoints.mentions._PIECE_BYTES", piece)
    (tmp_path / "wal").mkdir()
    (tmp_path / "checkpoints").mkdir()
    names = [f"{n:064x}" for n in (1, 2)]
    text = f'{{"lsn":1,"blob":"{names[0]}"}}\n{{"lsn":2,"blob":"{names[1]}"}}\n'
    (tmp_path / "wal" / "00000000000000000001.wal").write_text(text)
    assert mentioned(tmp_path) == set(names)
