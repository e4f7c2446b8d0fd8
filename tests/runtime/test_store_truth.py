"""Stores as other programs leave them, from the files to the verdicts."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from memwatch.analytics.checkpoints.store import judge, store_checkpoints
from memwatch.domain.checkpoints import Checkpoints, StoreLook
from memwatch.ingest.stores.directory import look_directory
from memwatch.ingest.stores.langgraph import look_langgraph

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "langgraph"
HOUR_AGO_S = 1_800_000_000


def said(look: StoreLook) -> Checkpoints:
    return store_checkpoints(look, judge(look), look.t_us, over=False, grace=1.5)


def trained(folder: Path, steps: int, grow: int = 0, best: int = 0) -> Path:
    """Make what a trainer leaves: a checkpoint each 500 steps and 300 s, 4 s long."""
    for number in range(1, steps + 1):
        place = folder / f"checkpoint-{number * 500}"
        place.mkdir()
        (place / "optimizer.bin").write_bytes(bytes(400_000 + grow * number))
        about = {"global_step": number * 500, "best_model_checkpoint": f"out/checkpoint-{best}"}
        (place / "trainer_state.json").write_text(json.dumps(about))
        began_s = HOUR_AGO_S + 300 * number
        os.utime(place / "optimizer.bin", (began_s, began_s))
        os.utime(place / "trainer_state.json", (began_s + 4, began_s + 4))
    return folder


def test_a_training_that_saves_the_same_each_time_is_stable(tmp_path: Path) -> None:
    found = said(look_directory(trained(tmp_path, 6, best=1000)))
    assert (found.count, found.stats.complete, found.stats.failed) == (6, 6, 0)
    assert found.stats.every_s == pytest.approx(300)
    assert found.stats.duration_p50_s == pytest.approx(4)
    assert found.stats.time_share == pytest.approx(4 / 300, rel=0.01)
    assert found.bloat.verdict == "stable"
    assert found.prune.ids == ("checkpoint-500", "checkpoint-1500", "checkpoint-2000")
    parts = [part for part in tmp_path.rglob("*") if part.is_file()]
    assert found.stats.total_bytes == sum(part.stat().st_size for part in parts)
    gone = [part for part in parts if part.parent.name in found.prune.ids]
    assert found.prune.bytes == sum(part.stat().st_size for part in gone)


def test_one_that_saves_more_each_time_is_bloat(tmp_path: Path) -> None:
    found = said(look_directory(trained(tmp_path, 8, grow=60_000)))
    assert found.bloat.verdict == "bloat"
    assert found.stats.growth_bytes == pytest.approx(60_000, rel=0.01)
    assert found.next_bytes == pytest.approx(400_000 + 9 * 60_000, rel=0.01)


def test_nothing_may_go_while_the_newest_lacks_its_mark(tmp_path: Path) -> None:
    trained(tmp_path, 5)
    newest = tmp_path / "checkpoint-2500"
    (newest / "trainer_state.json").unlink()
    found = said(look_directory(tmp_path))
    assert found.last_recoverable_full is not None
    assert found.last_recoverable_full.id == "checkpoint-2000"
    assert found.prune.ids == ()
    assert found.prune.why.startswith("none while the newest is")


@pytest.mark.skipif(not CORPUS.exists(), reason="the corpus does not lie beside the checkout")
def test_graphs_of_the_corpus_are_told_apart() -> None:
    whole, deltas = (
        said(look_langgraph(CORPUS / f"generated-1.2.24-{kind}.sqlite"))
        for kind in ("full", "delta")
    )
    assert whole.bloat.verdict == "bloat"
    assert "again with each one" in whole.bloat.why
    assert deltas.bloat.verdict == "stable"
    assert (whole.stats.time_share, whole.stats.duration_p50_s) == (None, None)
