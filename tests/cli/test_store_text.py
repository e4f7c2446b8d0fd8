"""`status` of a store: its checkpoints in place of tiers, every name of it inert."""

from __future__ import annotations

import json

import msgspec
import pytest
from msgspec.structs import replace

from memwatch.cli.status_text import status_text
from memwatch.domain.checkpoints import Checkpoint, Checkpoints, CheckpointStats
from memwatch.domain.snapshot import Snapshot, Source
from tests.cli.test_tonight import GOOD, NOW_US

EVIL = "checkpoint-\x1b[2J\n9"
KNOWN = (
    Checkpoint(id=EVIL, kind="full", state="incomplete", bytes=5, reason="2 of 4 \x1b[31mshards"),
    Checkpoint(id="checkpoint-8", kind="full", state="begun", began_us=NOW_US, reason="no mark"),
    Checkpoint(
        id="checkpoint-7",
        kind="full",
        state="committed",
        bytes=12_000_000,
        committed_us=NOW_US,
        duration_s=2.5,
        partial=True,
        reason="loop",
    ),
)
STORE = replace(
    GOOD,
    source=Source(kind="directory"),
    resources=(),
    checkpoints=Checkpoints(
        source="directory", newest=KNOWN, count=3, stats=CheckpointStats(total_bytes=12_000_005)
    ),
)


def page(snapshot: Snapshot) -> list[str]:
    return status_text(json.loads(msgspec.json.encode(snapshot))).split("\n")


def test_a_line_for_each_checkpoint() -> None:
    lines = page(STORE)
    (head,) = (line for line in lines if "checkpoints, " in line)
    assert head == "/runs/7: 3 checkpoints, 12M in all"
    (whole,) = (line for line in lines if line.startswith("checkpoint-7"))
    assert whole.split()[1:4] == ["partial", "12M", "2.5s"]
    assert whole.endswith("  complete"), "why it is one is no news"
    (begun,) = (line for line in lines if line.startswith("checkpoint-8"))
    assert begun.endswith("being written: no mark")
    assert not any("entries" in line or "experiment" in line for line in lines)


def test_nothing_in_it_acts_on_a_terminal() -> None:
    lines = page(STORE)
    assert all(line.isprintable() for line in lines)
    assert any("incomplete: 2 of 4 \ufffd[31mshards" in line for line in lines)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"run": replace(GOOD.run, pid=0)}, "no process known"),
        (
            {"source": Source(kind="directory", watch_why="it cannot be read")},
            "(it cannot be read)",
        ),
        (
            {"run": replace(GOOD.run, state="silent", end_reason="inferred: nothing")},
            "silent: inferred: nothing",
        ),
        (
            {"run": replace(GOOD.run, state="ended", ended_us=NOW_US, end_reason="inferred: gone")},
            "ended: inferred: gone",
        ),
        ({"resources": GOOD.resources}, "memory"),
    ],
)
def test_what_is_known_of_it_is_said(changed: dict[str, object], says: str) -> None:
    assert says in "\n".join(page(replace(STORE, **changed)))
