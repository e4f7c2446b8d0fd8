"""Records become bounded rows of the right tables, and sums where rows would be too many."""

from __future__ import annotations

from math import isfinite
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memwatch.analytics.narrate import KNOWN_KINDS
from memwatch.domain.record import Fault, LogName, Record
from memwatch.domain.text import inert
from memwatch.store.query_text import schema_names, schema_text
from memwatch.store.rows import TABLES, Row, RowFold
from tests.builders import M0_US, T0_US, record, tiers
from tests.wal import strategies as log

INT64_MAX = (1 << 63) - 1


@pytest.fixture(scope="module")
def columns() -> dict[str, list[tuple[str, str]]]:
    """Name and type of the columns of each table."""
    with duckdb.connect() as database:
        for name in schema_names():
            database.execute(schema_text(name))
        return {
            table: [
                (name, kind) for name, kind, *_ in database.execute(f"DESCRIBE {table}").fetchall()
            ]
            for table in TABLES
        }


def fold(*records: Record, log: LogName = "agent") -> dict[str, list[Row]]:
    rows = RowFold()
    rows.add(log, 1, list(records), {})
    return rows.take().tables()


def test_changes_become_sums_per_second_tier_experiment_and_tool() -> None:
    rows = fold(
        record(1, "put", 0.1, tier="recent", bytes=10, x=1),
        record(2, "put", 0.2, tier="recent", bytes=20, x=1),
        record(3, "tool.begin", 0.3, name="compress"),
        record(4, "update", 0.4, tier="recent", bytes=5, x=1),
        record(5, "tool.end", 0.5),
        record(6, "delete", 0.6, tier="recent", bytes=0, x=1),
        record(7, "put", 1.1, tier="recent", bytes=7, x=1),
        record(8, "put", 1.2, tier="history", bytes=7, x=2),
    )
    second = T0_US // 1_000_000
    assert rows == {
        "tier_flow": [
            ("agent", 1, second, "recent", 1, "", 2, 0, 1, 30, 0),
            ("agent", 1, second, "recent", 1, "compress", 0, 1, 0, 5, 0),
            ("agent", 1, second + 1, "recent", 1, "", 1, 0, 0, 7, 0),
            ("agent", 1, second + 1, "history", 2, "", 1, 0, 0, 7, 0),
        ]
    }


def test_each_thread_has_its_own_tool() -> None:
    flows = fold(
        record(1, "tool.begin", name="train"),
        record(2, "tool.begin", name="search", th="helper"),
        record(3, "put", tier="recent", bytes=1, th="helper"),
        record(4, "put", tier="recent", bytes=2),
        record(5, "tool.end", th="helper"),
        record(6, "put", tier="recent", bytes=4, th="helper"),
    )["tier_flow"]
    assert {(row[5], row[9]) for row in flows} == {("search", 1), ("train", 2), ("", 4)}


def test_bytes_out_is_what_purges_say_they_freed() -> None:
    rows = fold(
        record(1, "purge.begin", tier="recent", how="oldest", cause="retention"),
        record(2, "delete", tier="recent", bytes=0),
        record(3, "purge.end", tier="recent", how="oldest", cause="retention", freed_bytes=900),
    )
    assert sum(int(row[10] or 0) for row in rows["tier_flow"]) == 900
    told = ("purge", "recent", "oldest", "retention")
    assert [row[5:10] for row in rows["intervention_event"]] == [("begin", *told), ("end", *told)]
    assert [row[5] for row in rows["event"]] == ["purge"]


def test_tiers_come_from_the_agent_and_the_tree_from_the_guard() -> None:
    sample = record(1, "sample", tiers=tiers(recent=5_000_000))
    probe = record(
        2,
        "probe",
        rss_bytes=70,
        swap_bytes=7,
        processes=3,
        limit_bytes=100,
        unaccounted_bytes=-4,
        disk={"free_bytes": 8, "total_bytes": 9},
    )
    agent, guard = fold(sample, probe), fold(sample, probe, log="guard")
    place = (1, T0_US, M0_US)
    assert agent["sample"] == [
        ("agent", *place, "tier:recent", 5_000_000, None, 5, None, None, None)
    ]
    assert guard["sample"] == [
        ("guard", *place, "memory", 77, 100, None, None, None, None),
        ("guard", *place, "unaccounted", -4, None, None, None, None, None),
        ("guard", *place, "processes", 3, None, None, None, None, None),
        ("guard", *place, "disk_free", 8, 9, None, None, None, None),
    ]


def test_a_tree_that_is_gone_is_no_usage_of_zero() -> None:
    rows = fold(record(1, "probe", alive=False, rss_bytes=0, processes=0), log="guard")
    assert [row[4] for row in rows["sample"]] == ["processes"]


def test_a_resource_and_a_fault_are_written_once() -> None:
    rows = RowFold(resources=["memory"], faults=[("agent", "known")])
    probe = record(1, "probe", rss_bytes=1, processes=1)
    fault = Fault("gap", 1, 70, detail="lsn 2 to 3 are missing")
    for _ in range(2):
        rows.add("guard", 1, [probe], {})
        rows.add_fault("agent", fault, T0_US)
    first = rows.take().tables()
    rows.add("guard", 1, [probe], {})
    rows.add_fault("agent", fault, T0_US)
    second = rows.take().tables()
    assert first["resource"] == [("processes", "count", T0_US)]
    assert [row[:5] for row in first["event"]] == [("agent", 1, None, T0_US, None)]
    assert set(second) == {"sample"}


def test_what_was_dropped_counts_as_never_seen() -> None:
    rows = RowFold()
    rows.add("guard", 1, [record(1, "probe", rss_bytes=1)], {})
    rows.drop()
    assert rows.count == 0
    rows.add("guard", 1, [record(1, "probe", rss_bytes=1)], {})
    assert [row[0] for row in rows.take().tables()["resource"]] == ["memory"]


def test_what_the_engine_decided_has_rows_of_its_own() -> None:
    level = record(1, "level", level="warn", resource="disk", share=0.62, why="over 60%")
    ask = record(
        2, "engine.decision", what="ask", level="warn", rule="levels.warn", value=6, limit=10
    )
    plan = record(
        3, "plan", id="p1", level="warn", state="done", effect="none", dry=True, before_bytes=9.0
    )
    rows = [row[5:] for row in fold(level, ask, plan, log="guard")["decision"]]
    nothing = (None, None, None)
    assert rows == [
        ("level", "warn", "disk", "", 0.62, None, False, *nothing, None, None, "over 60%"),
        ("ask", "warn", "memory", "levels.warn", 6.0, 10.0, False, *nothing, None, None, ""),
        ("plan", "warn", "memory", "", None, None, True, "p1", "done", "none", 9.0, None, ""),
    ]
    assert "decision" not in fold(level, ask, plan), "the agent's log cannot speak for the guard"


def test_a_log_of_endless_names_and_faults_stays_bounded() -> None:
    rows = RowFold()
    for number in range(30):
        names = {f"tier {number} {i}": {"bytes": 1} for i in range(100)}
        rows.add("agent", 1, [record(1, "sample", tiers=names)], {})
    for offset in range(RowFold.MAX_FAULTS + 50):
        rows.add_fault("agent", Fault("damaged", 1, offset), T0_US)
    tables = rows.take().tables()
    assert len(tables["resource"]) == 1_000
    assert len(tables["event"]) == RowFold.MAX_FAULTS


kinds = st.sampled_from(sorted(KNOWN_KINDS)) | log.text
_NAMES = """tier x th bytes name tiers rss_bytes swap_bytes disk freed_bytes limits metrics status
    title id processes free_bytes duration_us what level resource rule value limit share dry why
    state effect before_bytes after_bytes"""
names = st.sampled_from(_NAMES.split())
huge = st.integers(-(1 << 70), 1 << 70)
values = log.values | huge | st.dictionaries(log.text, st.dictionaries(names, huge, max_size=3))
hostile = st.builds(
    Record, st.integers(1, INT64_MAX), log.times, log.times, kinds, st.dictionaries(names, values)
)


@given(st.sampled_from(["agent", "guard"]), st.lists(hostile, max_size=6))
def test_nothing_a_log_says_breaks_a_row(
    columns: dict[str, list[tuple[str, str]]], name: LogName, records: list[Record]
) -> None:
    for table, rows in fold(*records, log=name).items():
        for row in rows:
            assert len(row) == len(columns[table])
            for value, (column, kind) in zip(row, columns[table], strict=True):
                assert value is None or fits(value, kind), (table, column, value)


def fits(value: Any, kind: str) -> bool:
    if kind == "BIGINT":
        return type(value) is int and abs(value) <= INT64_MAX
    if kind == "BOOLEAN":
        return type(value) is bool
    if kind == "DOUBLE":
        return type(value) is float and isfinite(value)
    return kind == "VARCHAR" and isinstance(value, str) and inert(value, 2_000) == value
