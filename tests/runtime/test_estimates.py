"""What the guard keeps of recoveries: estimates in its log, restarts it saw, what they teach."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from memwatch.agent.log import LogWriter
from memwatch.analytics.recovery.costs import costs_of
from memwatch.config.policy import CrashBudget
from memwatch.domain.record import Record
from memwatch.domain.recovery import PastRecovery, Recovery, RecoveryTerm, Span, TermName
from memwatch.domain.snapshot import RunState, Snapshot
from memwatch.runtime.guard.estimates import Estimates
from memwatch.runtime.guard.recorder import Recorder
from memwatch.runtime.runs.host_file import HostFile
from memwatch.runtime.runs.recovery_file import RECOVERY_FILE, append_recovery, read_recoveries
from tests.faults.failing_files import FailingFiles
from tests.runtime.watched import Watched

_SHARES: tuple[tuple[TermName, float], ...] = (
    ("start", 0.5),
    ("load", 0.2),
    ("blobs", 0.1),
    ("replay", 0.2),
)
_TERM = {"us": 60_000, "bytes": 1000, "records": 7}


class Bench:
    """A run, and the guard's part that follows its recoveries."""

    def __init__(self, folder: Path) -> None:
        self.run = Watched()
        self.folder = folder
        self.told: list[Record] = []
        self.files = FailingFiles()
        self.recorder = Recorder(folder / "wal", self.run.clock, self._log)
        self.estimates = self.another()

    def another(self) -> Estimates:
        """Return that of a guard that begins now."""
        made = Estimates(
            self.folder,
            HostFile(self.folder),
            "searcher",
            self.run.ring,
            self.recorder,
            self.run.clock,
        )
        made.tell = self.told.append
        return made

    def shown(self, likely: float, state: RunState = "running") -> Snapshot:
        """Return a snapshot that estimates so much."""
        terms = tuple(
            RecoveryTerm(
                name=name,
                seconds=likely * share,
                low_s=likely * share * 0.8,
                high_s=likely * share * 1.2,
                basis="drilled",
            )
            for name, share in _SHARES
        )
        span = Span(low=likely * 0.8, likely=likely, high=likely * 1.2)
        found = self.run.snapshot()
        return replace(
            found,
            recovery=Recovery(rto_s=span, terms=terms, grade="good"),
            run=replace(found.run, state=state),
        )

    def written(self, kind: str) -> list[dict[str, Any]]:
        self.recorder.close()
        self.recorder = Recorder(self.folder / "wal", self.run.clock, self._log)
        lines = [
            msgspec.json.decode(line)
            for path in sorted((self.folder / "wal").iterdir())
            for line in path.read_bytes().splitlines()
        ]
        return [line for line in lines if line["k"] == kind]

    def records(self) -> list[Record]:
        """Return what the guard's log holds of recoveries, as the next guard reads it."""
        found = [*self.written("estimate"), *self.written("restart")]
        found.sort(key=lambda one: one["lsn"])
        return [Record(one["lsn"], one["t"], one["m"], one["k"], one) for one in found]

    def next_guard(self) -> Estimates:
        """Return that of a guard that takes over from one that was killed."""
        made = self.another()
        made.restore(self.records())
        made.begin()
        return made

    def restart(self) -> None:
        self.run.say("run.begin", start_id="s2", up_us=400_000)
        self.run.clock.advance_s(0.03)
        terms = dict.fromkeys(("load", "read", "replay"), _TERM)
        self.run.say("recovery", duration_us=200_000, terms=terms, lost=[], state_bytes=9)

    def _log(self) -> LogWriter:
        return LogWriter(
            self.folder / "wal", clock=self.run.clock, files=self.files, durability="os"
        )


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_an_estimate_is_written_when_it_moved_or_it_is_time(bench: Bench) -> None:
    for seconds, likely in ((0, 10), (1, 10.5), (1, 11.5), (1, 11.6), (301, 11.6), (1, 11.6)):
        bench.run.clock.advance_s(seconds)
        bench.estimates.look(bench.shown(likely))
    assert [line["likely_s"] for line in bench.written("estimate")] == [10, 11.5, 11.6]
    first = bench.written("estimate")[0]
    assert (first["low_s"], first["high_s"], first["grade"]) == (8, 12, "good")
    assert first["terms"] == {"start": 5, "load": 2, "blobs": 1, "replay": 2}


def test_what_stood_when_the_agent_died_is_written_once(bench: Bench) -> None:
    bench.estimates.look(bench.shown(10))
    for likely in (10.2, 30, 50):
        bench.estimates.look(bench.shown(likely, "crashed"))
    assert [line["likely_s"] for line in bench.written("estimate")] == [10, 10.2]


def test_a_restart_is_held_against_what_stood_before_it(bench: Bench) -> None:
    bench.run.begin()
    bench.estimates.look(bench.shown(0.5))
    bench.run.clock.advance_s(5)
    bench.restart()
    bench.run.clock.advance_s(1)
    bench.estimates.look(bench.shown(99))
    (done,) = read_recoveries(bench.folder)
    assert (done.kind, done.total_s) == ("restart", 0.43)
    assert done.estimate is not None
    assert done.estimate.likely == pytest.approx(0.5 * 0.9), "it read no persisted values"
    assert {term.name: term.seconds for term in done.expected}["load"] == pytest.approx(0.1)
    assert done.error_share == pytest.approx(0.43 / 0.45 - 1)
    assert [record.kind for record in bench.told] == ["restart"]
    assert bench.estimates.past == (done,)
    bench.estimates.look(bench.shown(99))
    assert len(read_recoveries(bench.folder)) == 1, "once"
    assert bench.written("restart")[0]["total_s"] == 0.43


def test_a_guard_that_comes_later_knows_what_the_one_before_it_wrote(bench: Bench) -> None:
    bench.run.begin()
    bench.estimates.look(bench.shown(0.5))
    written = bench.written("estimate")
    bench.run.clock.advance_s(5)
    bench.restart()
    later = bench.another()
    known = [Record(one["lsn"], one["t"], one["m"], "estimate", one) for one in written]
    later.restore(known)
    later.begin()
    later.look(None)
    (done,) = later.past
    assert done.estimate is not None
    assert done.estimate.likely == pytest.approx(0.45)
    assert done.estimate.low == pytest.approx(0.36)
    third = bench.another()
    third.begin()
    third.look(None)
    assert third.past == (done,), "a restart that is in the file is not written again"


def test_a_guard_killed_between_log_and_file_leaves_one_of_each(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.run.begin()
    bench.restart()

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as death:
        death.setattr("memwatch.runtime.guard.estimates.append_recovery", killed)
        with pytest.raises(KeyboardInterrupt):
            bench.estimates.look(None)
    assert read_recoveries(bench.folder) == ()
    for _ in range(3):
        bench.next_guard().look(None)
    (done,) = read_recoveries(bench.folder)
    assert [one["t_us"] for one in bench.written("restart")] == [done.t_us]
    assert len(bench.told) == 1


def test_a_restart_is_not_forgotten_while_disks_are_full(bench: Bench) -> None:
    bench.run.begin()
    bench.restart()
    bench.files.fail_all("write")
    bench.estimates.look(None)
    assert len(bench.estimates.past) == 1, "it is shown all the same"
    assert (read_recoveries(bench.folder), bench.told) == ((), [])
    bench.files.heal()
    bench.run.clock.advance_s(10)
    bench.estimates.look(None)
    bench.estimates.look(None)
    assert len(read_recoveries(bench.folder)) == len(bench.written("restart")) == 1


def test_a_restart_behind_many_drills_is_not_counted_again(bench: Bench) -> None:
    bench.run.begin()
    bench.restart()
    bench.estimates.look(None)
    for number in range(50):
        drill = PastRecovery(t_us=bench.run.clock.wall_us() + number, total_s=1.0)
        append_recovery(bench.folder, drill)
    later = bench.another()  # the guard's log begins behind it
    later.begin()
    later.look(None)
    assert len(bench.written("restart")) == 1
    kinds = [one.kind for one in read_recoveries(bench.folder, 100)]
    assert kinds.count("restart") == 1
    assert len(later.past) == 20


@pytest.mark.parametrize("hours", [-5, 5])
@pytest.mark.parametrize("killed", [False, True])
def test_a_wall_clock_that_is_set_spoils_no_comparison(
    bench: Bench, hours: int, *, killed: bool
) -> None:
    bench.run.begin()
    bench.estimates.look(bench.shown(0.5))
    bench.run.clock.advance_s(5)
    bench.run.clock.step_wall_s(hours * 3600)
    bench.restart()
    follower = bench.next_guard() if killed else bench.estimates
    bench.run.clock.advance_s(1)
    follower.look(bench.shown(99))
    (done,) = follower.past
    assert done.estimate is not None
    assert done.estimate.likely == pytest.approx(0.45)


def test_the_newest_stands_first_though_the_wall_clock_was_set_back(bench: Bench) -> None:
    bench.run.begin()
    append_recovery(bench.folder, PastRecovery(t_us=bench.run.clock.wall_us(), total_s=1.0))
    bench.run.clock.step_wall_s(-3600)
    bench.restart()
    bench.estimates.look(None)
    assert [one.kind for one in bench.estimates.past] == ["restart", "drill"]


def test_an_agent_that_dies_on_and_on_is_counted_in_bounded_memory(bench: Bench) -> None:
    bench.run.begin()
    for _ in range(400):
        bench.run.clock.advance_s(2)
        bench.restart()
        bench.estimates.look(None)
    assert len(bench.written("restart")) == 400
    assert len(bench.estimates.past) == 20
    bench.next_guard().look(None)
    assert len(bench.written("restart")) == 400


@pytest.mark.parametrize(
    "members",
    [
        {"terms": {"load": {"us": -5, "bytes": "x", "records": 1 << 62}}},
        {"terms": {"load": 5, "read": None}},
        {"terms": {"load": {"us": 1e308}}, "state_bytes": -1},
        {"terms": {}, "duration_us": -(1 << 40)},
        {"terms": {"load": {"us": 1 << 53}, "replay": {"us": 1 << 53}}},
    ],
)
def test_what_an_agent_says_of_its_recovery_is_not_believed_blindly(
    bench: Bench, members: dict[str, Any]
) -> None:
    bench.run.begin(up_us=1 << 53)
    bench.run.say("run.begin", start_id="s2", up_us=400_000)
    bench.run.say("recovery", **{"duration_us": 200_000, **members})
    bench.run.clock.advance_s(1)
    bench.estimates.look(None)
    bench.estimates.look(bench.run.snapshot(past=bench.estimates.past))
    for done in bench.estimates.past:
        assert 0 < done.total_s < 1e9
        assert all(0 <= term.seconds < 1e9 and term.bytes >= 0 for term in done.terms)
    found = bench.run.snapshot(past=bench.estimates.past)
    assert "null" not in msgspec.json.encode(found.recovery.rto_s).decode()


def test_an_estimate_in_the_log_that_is_none_says_nothing(bench: Bench) -> None:
    odd: tuple[dict[str, Any], ...] = (
        {},
        {"low_s": 1, "likely_s": 0, "high_s": 2, "terms": {"load": 1}},
        {"terms": 5},
    )
    bench.estimates.restore([Record(1, 1, 1, "estimate", dict(one)) for one in odd])
    bench.run.begin()
    bench.restart()
    bench.estimates.look(None)
    assert bench.estimates.past[0].estimate is None


def test_what_a_run_teaches_other_runs_know(bench: Bench) -> None:
    bench.run.begin(up_us=300_000)
    drill = PastRecovery(t_us=7, total_s=2.5)
    append_recovery(bench.folder, drill)
    bench.estimates.begin()
    bench.estimates.look(None)
    kept = costs_of(HostFile(bench.folder).costs())
    assert kept is not None
    assert [one.t_us for one in kept.samples] == [7]
    assert [seen.seconds for seen in kept.starts["searcher"]] == [0.3]
    assert bench.estimates.known(CrashBudget()).costs == kept


def test_a_drill_is_seen_at_the_next_look(bench: Bench) -> None:
    bench.estimates.begin()
    bench.estimates.look(None)
    assert not bench.estimates.past
    drill = PastRecovery(t_us=5, total_s=2.5, matches=True)
    append_recovery(bench.folder, drill)
    changed = bench.run.ring.changed
    bench.estimates.look(None)
    assert bench.estimates.past == (drill,)
    assert bench.run.ring.changed > changed, "a new snapshot shows it"


def test_where_its_file_cannot_be_written_a_restart_is_known_all_the_same(bench: Bench) -> None:
    (bench.folder / RECOVERY_FILE).mkdir()
    bench.run.begin()
    bench.restart()
    bench.estimates.look(None)
    bench.estimates.look(None)
    (done,) = bench.estimates.past
    assert done.kind == "restart"
    assert len(bench.told) == 1


@pytest.mark.parametrize("text", ["", "[]", '{"format": 1, "costs": {"native": {"samples": 5}}}'])
def test_a_damaged_file_of_the_machine_teaches_nothing(bench: Bench, text: str) -> None:
    (bench.folder / "host.json").write_text(text)
    bench.estimates.begin()
    bench.estimates.look(None)
    assert bench.estimates.known(CrashBudget()).costs is None
