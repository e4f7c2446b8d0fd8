"""What was measured is written down as it becomes known, and a guard's restart loses none of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from memwatch.agent.log import LogWriter
from memwatch.domain.command import CommandInfo
from memwatch.domain.intervention import Intervention, ResourceEffect
from memwatch.domain.record import Record
from memwatch.runtime.guard.efficacy_log import EfficacyLog, members, restored
from memwatch.runtime.guard.recollection import recollect
from memwatch.runtime.guard.recorder import Recorder
from memwatch.runtime.views.deed_watch import Known
from tests.builders import batch, record, tiers
from tests.faults.failing_files import FailingFiles
from tests.runtime.watched import MB, Watched

BEFORE, AFTER = 60 * MB, 40 * MB


class Bench:
    """A watched run whose efficacy is written to a log of its own."""

    def __init__(self, home: Path) -> None:
        self.watched = Watched()
        self.wal = home / "wal"
        self.files = FailingFiles()
        clock = self.watched.clock
        self.recorder = Recorder(
            self.wal, clock, lambda: LogWriter(self.wal, clock=clock, files=self.files)
        )
        self.logged: list[Record] = []
        view = self.watched.builder.interventions
        self.log = EfficacyLog(view, self.recorder, self.watched.clock)
        self.told: list[Record] = []
        self.log.tell = self.told.append
        self.size = BEFORE

    def pass_s(self, seconds: int, every_s: int = 1) -> None:
        for _ in range(seconds // every_s):
            self.watched.clock.advance_s(every_s)
            self.watched.say("sample", tiers=tiers(recent=self.size))
            self.watched.snapshot()
            self.log.look()

    def purge(self) -> None:
        self.size = AFTER
        freed = BEFORE - AFTER
        told = {"tier": "recent", "cause": "share_cap", "freed_bytes": freed}
        self.logged.append(self.watched.say("purge.end", **told))

    @property
    def now_s(self) -> float:
        return self.watched.clock.boot_us() / 1e6

    def experiments(self, count: int) -> None:
        for number in range(count):
            self.watched.say("experiment.begin", x=number)
            self.pass_s(2)
            self.watched.say("experiment.end", x=number, status="kept", duration_us=2_000_000)

    @property
    def row(self) -> Intervention:
        self.watched.snapshot()
        (found,) = self.watched.builder.interventions.rows(9)
        return found

    def said(self) -> list[tuple[Any, ...]]:
        names = ("at", "verdict", "after_10s", "after_10min", "rebound_s")
        return [tuple(one.members.get(name) for name in names) for one in self.told]


def begun(home: Path) -> Bench:
    bench = Bench(home)
    bench.watched.begin()
    bench.experiments(3)
    bench.pass_s(40)
    bench.purge()
    return bench


def test_each_stage_is_written_once(tmp_path: Path) -> None:
    bench = begun(tmp_path)
    bench.pass_s(11)
    assert bench.told == []
    bench.pass_s(10)
    first = ("10s", "effective", AFTER, None, None)
    assert bench.said() == [first]
    bench.experiments(3)
    bench.pass_s(640)
    second = ("10min", "effective", AFTER, AFTER, None)
    assert bench.said() == [first, second]
    bench.size = BEFORE
    bench.pass_s(30)
    assert bench.said()[:2] == [first, second]
    ((stage, _, _, _, back_s),) = bench.said()[2:]
    assert (stage, round(back_s / 10)) == ("settled", 67)
    bench.pass_s(60)
    assert len(bench.told) == 3
    assert bench.told[-1].members["experiments"]["after_s"] == 2.0


def test_a_guard_goes_on_with_what_the_one_before_it_measured(tmp_path: Path) -> None:
    first = begun(tmp_path)
    first.pass_s(20)
    known = first.row
    first.recorder.close()
    second = Bench(tmp_path / "second")
    second.watched.clock.advance_s(first.now_s - second.now_s)
    second.log.restore(recollect(first.wal, second.watched.clock.wall_us()).efficacy)
    (held,) = known.effects
    as_written = replace(known, held_s=12.0, effects=(replace(held, held_s=12.0),))
    assert second.row == as_written, "before the log of the agent is read"
    second.watched.ring.take(batch(*first.logged))  # but the samples: the log was cut meanwhile
    second.watched.lsn = first.watched.lsn
    second.size = AFTER
    second.pass_s(5)
    told = second.row
    assert (told.before, told.after_10s, told.freed_bytes) == (BEFORE, AFTER, BEFORE - AFTER)
    assert (told.verdict, told.id) == ("effective", known.id)
    second.pass_s(700, every_s=5)
    assert (second.row.after_10min, second.row.freed_bytes) == (AFTER, BEFORE - AFTER)
    assert [one.members["at"] for one in second.told] == ["10min"], "10 s was written before"


def test_what_a_full_disk_refused_is_written_later(tmp_path: Path) -> None:
    bench = begun(tmp_path)
    bench.files.fail_all("write")
    bench.pass_s(20)
    assert bench.told == []
    bench.files.heal()
    bench.pass_s(10)
    assert [one.members["at"] for one in bench.told] == ["10s"]
    assert bench.told[0].lsn > 0


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    st.dictionaries(st.sampled_from(["at", *Intervention.__struct_fields__]), ANY),
    st.sampled_from(["10s", "10min", "settled", "later", 7]),
)
@settings(max_examples=200)
def test_whatever_a_log_says_it_is_an_intervention_or_nothing(
    said: dict[str, Any], stage: object
) -> None:
    known = restored(record(1, "efficacy", **{"id": "a", "action": "purge", **said, "at": stage}))
    if known is not None:
        assert known.stage in ("10s", "10min", "settled")
        assert all(text.isprintable() for text in (known.row.id, known.row.why, known.row.tier))
        again = restored(record(2, "efficacy", **members(known)))
        assert again == known


def test_what_is_written_is_read_again_to_the_last_figure(tmp_path: Path) -> None:
    bench = begun(tmp_path)
    bench.pass_s(20)
    known = Known("10s", bench.row)
    assert restored(record(1, "efficacy", **members(known))) == known


@pytest.mark.parametrize("recalled", [True, False])
def test_what_was_written_is_not_written_again_once_the_log_tells_when_it_was(
    tmp_path: Path, *, recalled: bool
) -> None:
    """A guard that begins knows a request by the ledger before it has read the agent's log."""
    bench = Bench(tmp_path)
    watched, view = bench.watched, bench.watched.builder.interventions
    watched.begin()

    def pass_s(seconds: int, *commands: CommandInfo) -> None:
        for _ in range(seconds):
            watched.clock.advance_s(1)
            watched.look(BEFORE)
            watched.snapshot(commands=commands)
            bench.log.look()

    pass_s(40)
    asked_us, began_us = watched.clock.wall_us(), watched.clock.boot_us()
    asked = CommandInfo(
        id="r1", op="reclaim", state="done", asked_us=asked_us, changed_us=asked_us + 300_000
    )
    if recalled:
        row = Intervention(
            id="r1", action="reclaim", asked_at_us=asked_us, done_at_us=asked.changed_us,
            verdict="none", before=1.0, after_10s=1.0,
            effects=(ResourceEffect(resource="memory", before=1, after_10s=1, verdict="none"),),
        )  # fmt: skip
        view.recall([Known("10s", row)])
    pass_s(20, asked)
    assert len(bench.told) == (0 if recalled else 1)
    for number, (state, after_us) in enumerate((("running", 0), ("done", 200_000))):
        at = (asked_us + after_us, began_us + after_us)
        told = {"id": "r1", "op": "reclaim", "state": state}
        watched.ring.take(batch(Record(watched.lsn + 1 + number, *at, "command", told)))
    watched.lsn += 2
    pass_s(30, asked)
    assert len(bench.told) == (0 if recalled else 1)
    (known,) = view.rows(9)
    assert (known.verdict, known.before) == ("none", BEFORE)


def test_an_agent_that_purges_on_and_on_fills_no_disk(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.watched.begin()
    for _ in range(400):
        for _ in range(8):
            bench.purge()
        bench.pass_s(1)
    assert 300 < len(bench.told) < 720
    assert bench.told[-1].members["asked_at_us"] > bench.watched.clock.wall_us() - 360_000_000
