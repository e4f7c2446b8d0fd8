"""LangGraph's databases: chains, kinds, bytes and times, without a look into what people wrote."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

import pytest

from memwatch.domain.checkpoints import StoreLook
from memwatch.ingest.stores import langgraph
from memwatch.ingest.stores.langgraph import look_langgraph
from tests.ingest.stores.graph import (
    EVERY,
    MESSAGE,
    STEP_US,
    STEPS,
    T0_US,
    connect,
    make,
    uuid6,
    write,
)

CORPUS = Path(__file__).resolve().parents[4] / "shared" / "corpus" / "langgraph"


def blob_bytes(seen: StoreLook, thread: str) -> int:
    return sum(one.bytes or 0 for one in seen.checkpoints if one.thread == thread)


def kinds(seen: StoreLook, thread: str) -> tuple[int, int]:
    found = [one.kind for one in seen.checkpoints if one.thread == thread]
    return found.count("full"), found.count("incremental")


@pytest.mark.skipif(not CORPUS.exists(), reason="the corpus does not lie beside the checkout")
def test_the_figures_of_the_corpus() -> None:
    full = look_langgraph(CORPUS / "generated-1.2.24-full.sqlite")
    delta = look_langgraph(CORPUS / "generated-1.2.24-delta.sqlite")
    assert (full.why, delta.why) == ("", "")
    assert blob_bytes(full, "run-a") == 907_117
    assert blob_bytes(delta, "run-a") == 139_131
    assert (full.written_bytes or 0) - 907_117 == 34_003
    assert (full.count, full.total_bytes, full.state_bytes) == (52, 1_028_096, 34_647)
    assert (kinds(full, "run-a"), kinds(delta, "run-a")) == ((52, 0), (5, 47))


def test_full_ones_hold_everything_each(tmp_path: Path) -> None:
    seen = look_langgraph(make(tmp_path / "g.sqlite"))
    assert (seen.source, seen.count, seen.why) == ("langgraph", STEPS, "")
    assert kinds(seen, "run-a") == (STEPS, 0)
    assert blob_bytes(seen, "run-a") == (seen.written_bytes or 0) - STEPS * len(MESSAGE)
    assert seen.state_bytes == seen.load_bytes == seen.checkpoints[-1].bytes
    assert seen.total_bytes == (tmp_path / "g.sqlite").stat().st_size


def test_deltas_are_less_and_stand_on_a_full_one(tmp_path: Path) -> None:
    full = look_langgraph(make(tmp_path / "full.sqlite"))
    delta = look_langgraph(make(tmp_path / "delta.sqlite", "run-a", "run-b", delta=True))
    assert blob_bytes(delta, "run-a") * 5 < blob_bytes(full, "run-a")
    assert blob_bytes(delta, "run-a") == blob_bytes(delta, "run-b")
    assert kinds(delta, "run-b") == (6, STEPS - 6)
    last = delta.checkpoints[-1]
    below = next(one for one in delta.checkpoints if one.id == last.base and one.thread == "run-b")
    assert (below.kind, below.step, last.step) == ("full", 49, 50)
    assert delta.state_bytes == below.bytes
    since = STEPS - 1 - (STEPS - 1) // EVERY * EVERY + 1
    assert delta.load_bytes == (last.bytes or 0) + (below.bytes or 0) + since * len(MESSAGE)


def test_counters_alone_are_no_delta(tmp_path: Path) -> None:
    """A checkpoint may count and still hold the channel: it can be loaded alone."""
    base = connect(tmp_path / "g.sqlite")
    write(base, "run-a", 0, delta=False)
    counters = b'{"counters_since_delta_snapshot": {"messages": [1, 1]}, "step": -1}'
    base.execute("update checkpoints set metadata = ?", (counters,))
    base.commit()
    base.close()
    assert look_langgraph(tmp_path / "g.sqlite").checkpoints[0].kind == "full"


def test_blobs_that_take_too_long_leave_the_look_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make(tmp_path / "delta.sqlite", "run-a", delta=True)
    known = look_langgraph(path)
    looked: list[int] = []

    def slow(base: object, row: langgraph._Row, late: bool) -> bool:
        looked.append(row.number)
        monkeypatch.setattr(time, "monotonic", lambda: began + 3.0)
        return real(base, row, late)  # type: ignore[arg-type] # passed on

    real, began = langgraph._is_incremental, time.monotonic()
    monkeypatch.setattr(langgraph, "_is_incremental", slow)
    seen = look_langgraph(path)
    assert (seen.count, seen.why) == (known.count, "")
    assert looked == sorted(looked, reverse=True), "the newest first"
    assert seen.checkpoints[-1] == known.checkpoints[-1]


def test_times_are_those_of_the_ids(tmp_path: Path) -> None:
    first, second, *_ = look_langgraph(make(tmp_path / "g.sqlite", steps=2)).checkpoints
    assert (first.committed_us, first.began_us) == (T0_US, T0_US)
    assert (second.committed_us, second.began_us) == (T0_US + STEP_US, T0_US)
    assert second.duration_s is None  # most of it was the step, not the saving
    assert (first.reason, second.reason, second.step, second.state) == (
        "input",
        "loop",
        0,
        "committed",
    )


def test_chains_are_by_thread_and_namespace(tmp_path: Path) -> None:
    make(tmp_path / "g.sqlite", "a", "b", steps=1)
    base = connect(tmp_path / "g.sqlite")
    base.execute("update checkpoints set checkpoint_ns = 'node:1' where thread_id = 'b'")
    base.commit()
    base.close()
    assert [one.thread for one in look_langgraph(tmp_path / "g.sqlite").checkpoints] == [
        "a",
        "b/node:1",
    ]


def test_dead_pages_are_counted(tmp_path: Path) -> None:
    base = connect(make(tmp_path / "g.sqlite"))
    base.execute("delete from checkpoints where rowid > 5")
    base.commit()
    base.close()
    seen = look_langgraph(tmp_path / "g.sqlite")
    assert seen.dead_bytes is not None
    assert seen.dead_bytes / seen.total_bytes > 0.8


def test_only_the_newest_are_told_all_are_counted(tmp_path: Path) -> None:
    seen = look_langgraph(make(tmp_path / "g.sqlite"), most=3)
    assert ([one.step for one in seen.checkpoints], seen.count) == ([48, 49, 50], STEPS)


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("create table other (x)", "no table checkpoints"),
        (
            "create table checkpoints (thread_id, v); create table writes (x)",
            "checkpoints has no checkpoint",
        ),
        (
            "create view checkpoints as with recursive r(n) as"
            " (select 1 union all select n + 1 from r) select n as thread_id,"
            " n as checkpoint_ns, n as checkpoint_id from r;"
            "create table writes (x)",
            "no table checkpoints",
        ),
        (
            "create table checkpoints (thread_id, checkpoint_ns, checkpoint_id, checkpoint,"
            " metadata, parent_checkpoint_id as (zeroblob(900000000))); create table writes (x)",
            "no parent_checkpoint_id",
        ),
    ],
)
def test_another_schema_is_one_sentence(tmp_path: Path, script: str, why: str) -> None:
    base = sqlite3.connect(tmp_path / "g.sqlite")
    base.executescript(script)
    base.close()
    seen = look_langgraph(tmp_path / "g.sqlite")
    assert why in seen.why
    assert seen.checkpoints == ()


def test_columns_may_hold_anything(tmp_path: Path) -> None:
    base = connect(make(tmp_path / "g.sqlite", steps=1))
    rows = [
        (1, 2.5, b"\xff", b"x", None, "text", "no json"),
        ("t" * 10_000, "", "i" * 10_000, None, None, None, None),
        ("a", "", "b", "b", None, 7, b"[" * 50_000),
        (
            "c",
            "",
            "d",
            "d",
            None,
            b"x",
            b'{"step": 1e300, "source": [1], "counters_since_delta_snapshot": 5}',
        ),
        ("e", "", "f", "f", None, b"\xc1", b'{"counters_since_delta_snapshot": {"m": 1}}'),
    ]
    base.executemany("insert into checkpoints values (?, ?, ?, ?, ?, ?, ?)", rows)
    base.execute(
        "insert into checkpoints values (cast(x'ff41' as text), '', 'z', '', '', x'00', '')"
    )
    base.commit()
    base.close()
    seen = look_langgraph(tmp_path / "g.sqlite")
    assert (seen.count, seen.why) == (7, "")
    assert [one.kind for one in seen.checkpoints[-2:]] == ["incremental", "full"]
    assert max(len(one.id) for one in seen.checkpoints) <= 100
    assert uuid6(T0_US) == seen.checkpoints[0].id


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0" + b"\xff" * 5_000, b"text" * 2_000])
def test_what_is_no_database(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "g.sqlite").write_bytes(content)
    assert look_langgraph(tmp_path / "g.sqlite").why != ""


def test_a_torn_database_is_said(tmp_path: Path) -> None:
    place = make(tmp_path / "g.sqlite")
    place.write_bytes(place.read_bytes()[:40_000])
    seen = look_langgraph(place)
    assert "cannot be read as a database" in seen.why


def test_a_database_too_large_for_the_deadline(tmp_path: Path) -> None:
    first = look_langgraph(make(tmp_path / "g.sqlite"))
    base = connect(tmp_path / "g.sqlite")
    rows = ((str(number),) for number in range(5_000))
    base.executemany("insert into checkpoints values ('t', '', ?, '', '', x'00', '')", rows)
    base.commit()
    base.close()
    seen = look_langgraph(tmp_path / "g.sqlite", first, deadline_s=0)
    assert seen.why == "it is too large to be counted in time"
    assert seen.checkpoints == first.checkpoints
