"""The last two hours: nothing a wall clock does makes a rate or loses a sample."""

from __future__ import annotations

from msgspec.structs import replace

from memwatch.config.schema import Probe, Windows
from memwatch.domain.checkpoints import StoreLook
from memwatch.domain.clock import ManualClock
from memwatch.domain.record import Batch, Fault, Position, Record
from memwatch.domain.sample import GAP, Column, DiskSample
from memwatch.domain.snapshot import Event
from memwatch.runtime.views.event_book import EVENTS
from memwatch.runtime.views.ring import SPAN_US, Ring
from tests.builders import M0_US, T0_US, batch, profile, record, tiers, tree

BOOT = "boot-now"
S = 1_000_000
MB = 1_000_000


class Bench:
    """A ring with a clock that starts at T0."""

    def __init__(self) -> None:
        self.clock = ManualClock(T0_US, M0_US)
        self.profile = profile(
            windows=Windows(growth_s=(10.0, 60.0, 600.0)), probe=Probe(period_s=1.0)
        )
        self.ring = Ring(self.profile, self.clock, BOOT)
        self.at_s = 0.0

    def pass_s(self, seconds: float) -> None:
        self.clock.advance_s(seconds)
        self.at_s += seconds

    def now(self, lsn: int, kind: str, **members: object) -> Record:
        return Record(lsn, self.clock.wall_us(), self.clock.boot_us(), kind, dict(members))

    def look(self, used_bytes: int) -> int | None:
        sample = tree(0, used_bytes)
        return self.ring.take_tree(
            type(sample)(
                t_us=self.clock.wall_us(),
                m_us=self.clock.boot_us(),
                alive=True,
                rss_bytes=used_bytes,
                processes=1,
            )
        )

    def columns(self, resource: str, back_s: float, count: int) -> list[Column]:
        now_us = self.clock.wall_us() + S  # the second that is running, too
        return self.ring.columns(resource, now_us - round(back_s * S), now_us, count)


def begun(bench: Bench, boot: str = BOOT) -> None:
    bench.ring.take(batch(bench.now(1, "run.begin", start_id="s1", boot=boot, pid=7)))


def test_steps_of_the_wall_clock_make_no_rate_and_lose_no_sample() -> None:
    bench = Bench()
    begun(bench)
    steps = {20: 7200.0, 40: -10_000.0, 60: 86_400.0, 80: -86_400.0}
    for second in range(120):
        if second in steps:
            bench.clock.step_wall_s(steps[second])
        held = 100 * MB + second * MB
        bench.look(held)
        sample = bench.now(second + 2, "sample", tiers=tiers(workspace=held // 2))
        bench.ring.take(batch(sample))
        bench.ring.feed_growth()
        bench.pass_s(1)
        for resource in ("memory", "tier:workspace"):
            for slope in bench.ring.slopes(resource):
                assert slope is None or slope.per_min < 61 * MB
    short, middle, _ = bench.ring.slopes("memory")
    assert short is not None
    assert middle is not None
    assert abs(short.per_min - 60 * MB) < 0.1 * MB
    assert abs(middle.per_min - 60 * MB) < 0.1 * MB
    memory = bench.columns("memory", 121, 121)
    assert [c.last for c in memory[:120]] == [(100 + s) * MB for s in range(120)]
    workspace = bench.columns("tier:workspace", 121, 121)
    assert [c.last for c in workspace[:120]] == [(100 + s) * MB // 2 for s in range(120)]


def test_labels_move_with_the_wall_clock() -> None:
    bench = Bench()
    bench.look(5)
    before_us = bench.ring.first_us("memory")
    bench.clock.step_wall_s(3600)
    bench.ring.feed_growth()
    after_us = bench.ring.first_us("memory")
    assert before_us is not None
    assert after_us == before_us + 3600 * S


def test_records_of_another_boot_are_placed_by_their_wall_time() -> None:
    bench = Bench()
    begun(bench, boot="boot-before")
    old = Record(2, T0_US - 60 * S, 5, "sample", {"tiers": tiers(recent=9)})
    bench.ring.take(batch(old))
    assert bench.ring.first_us("tier:recent") == T0_US - 60 * S


def test_a_run_whose_beginning_was_pruned_is_placed_by_its_manifest() -> None:
    bench = Bench()
    bench.ring.run_boot_id = "boot-before"
    bench.ring.take(batch(Record(900, T0_US - 60 * S, 5, "sample", {"tiers": tiers(recent=9)})))
    assert bench.ring.first_us("tier:recent") == T0_US - 60 * S
    here = Bench()
    here.ring.run_boot_id = BOOT
    here.ring.take(batch(Record(900, 5, M0_US - 60 * S, "sample", {"tiers": tiers(recent=9)})))
    assert here.ring.first_us("tier:recent") == T0_US - 60 * S


def test_records_before_the_newest_start_are_placed_by_their_wall_time() -> None:
    """They may be of another boot, whose clock says nothing here."""
    bench = Bench()
    bench.ring.take(batch(bench.now(100, "run.begin", start_id="s2", boot=BOOT)))
    former = Record(50, T0_US - 30 * S, 77 * S, "sample", {"tiers": tiers(recent=9)})
    bench.ring.take(_backfilled(former))
    assert bench.ring.first_us("tier:recent") == T0_US - 30 * S


def test_backfilled_samples_find_their_place_and_tell_no_news() -> None:
    bench = Bench()
    begun(bench)
    bench.pass_s(100)
    bench.ring.take(batch(bench.now(50, "sample", tiers=tiers(recent=50))))
    seq = bench.ring.event_seq
    late = record(30, "sample", 60, tiers=tiers(recent=30))
    bench.ring.take(_backfilled(late, record(31, "note", 61, text="long ago")))
    assert bench.ring.event_seq == seq
    assert next(c.last for c in bench.columns("tier:recent", 101, 101) if c != GAP) == 30
    assert bench.ring.state.tiers["recent"].bytes == 50, "the newest is the newest"


def test_growth_is_fed_by_the_tick_while_the_agent_lives() -> None:
    bench = Bench()
    bench.look(100)
    for _ in range(20):
        bench.pass_s(1)
        bench.ring.feed_growth()
    slope = bench.ring.slopes("memory")[0]
    assert slope is None, "a value that is older than a gap is not held on for ever"
    for _ in range(20):
        bench.pass_s(1)
        bench.look(100)
        bench.ring.feed_growth()
    slope = bench.ring.slopes("memory")[0]
    assert slope is not None
    assert slope.per_min == 0


def test_a_dead_tree_feeds_nothing() -> None:
    bench = Bench()
    for _ in range(30):
        bench.pass_s(1)
        bench.look(100)
        bench.ring.feed_growth()
    known = bench.ring.slopes("memory")
    bench.ring.take_tree(tree(bench.at_s, 0, alive=False, processes=0))
    for _ in range(60):
        bench.pass_s(1)
        bench.ring.feed_growth()
    assert bench.ring.slopes("memory") == known
    assert bench.columns("memory", 31, 1)[0] == GAP, "and its absence is drawn as a gap"


def test_unaccounted_is_the_tree_less_its_tiers() -> None:
    bench = Bench()
    assert bench.look(500) is None, "without tiers nothing can be said"
    bench.ring.take(batch(bench.now(1, "sample", tiers=tiers(recent=100, history=50))))
    assert bench.look(500) == 350
    dead = tree(bench.at_s, 40, alive=False)
    assert bench.ring.take_tree(dead) is None, "the tiers died with the agent"


def test_events_are_numbered_and_bounded() -> None:
    bench = Bench()
    for lsn in range(1, EVENTS + 50):
        bench.ring.take(batch(bench.now(lsn, "note", text=f"note {lsn}")))
    assert bench.ring.event_seq == EVENTS + 49
    newest = bench.ring.events(EVENTS + 46, 10)
    assert [e.seq for e in newest] == [EVENTS + 47, EVENTS + 48, EVENTS + 49]
    assert len(bench.ring.events(0, 10**6)) == EVENTS
    assert [e.seq for e in bench.ring.events(0, 2)] == [EVENTS + 48, EVENTS + 49]
    assert len(bench.ring.events(10**9, 5)) == 5, "a viewer of another guard begins anew"


def test_what_the_guard_says_is_from_the_guard() -> None:
    bench = Bench()
    bench.ring.take_guard(bench.now(1, "note", text="an operator's remark"))
    assert [event.origin for event in bench.ring.events(0, 1)] == ["guard"]


def test_faults_are_told_once_at_the_time_of_their_records() -> None:
    bench = Bench()
    torn = Fault("damaged", 1, 40, detail="checksum differs")
    good = record(9, "step.end", -500)
    for _ in range(2):  # the log is read again by a guard that begins anew
        bench.ring.take(_backfilled(good, faults=(torn,)))
    (event,) = bench.ring.events(0, 10)
    assert event.kind == "fault"
    assert event.t_us == good.t_us
    assert bench.ring.events_since() is None, "a late fault proves nothing"


def test_stored_events_come_before_those_of_the_present_segment() -> None:
    bench = Bench()
    bench.ring.take(
        batch(record(90, "note", 50, text="present"), record(91, "note", 60, text="now"))
    )
    bench.ring.take(batch(faults=(Fault("damaged", 90, 5, lsn=None, detail="bad"),)))
    fault = bench.ring.events(0, 10)[-1]
    stored = [
        _event(10, "older", "agent"),
        _event(55, "level", "guard"),
        _event(50, "present", "agent"),
        _event(5, fault.text, "guard"),
    ]
    bench.ring.prefill_events(stored)
    told = bench.ring.events(0, 10)
    assert [e.text for e in told if e.kind != "fault"] == ["older", "present", "level", "now"]
    assert [e.seq for e in told] == [1, 2, 3, 4, 5]
    assert [e.text for e in told].count(fault.text) == 1
    assert bench.ring.events_since() == T0_US + 50 * S, "before that only the history has all"
    assert [e.text for e in bench.ring.events_between(T0_US + 50 * S, T0_US + 60 * S)] == [
        "present",
        "level",
    ]


def test_what_the_guard_told_before_its_history_was_read_is_not_told_twice() -> None:
    bench = Bench()
    bench.ring.take_guard(record(1, "guard.begin", 60, version="1", mode="shadow", epoch=1))
    (begun,) = bench.ring.events(0, 10)
    stored = replace(begun, t_us=begun.t_us + 7)  # the log stamps a record when it is written
    bench.ring.prefill_events([_event(5, "of the guard before", "guard"), stored])
    assert [e.text for e in bench.ring.events(0, 10)] == ["of the guard before", begun.text]


def test_prefilled_growth_speaks_at_once_and_the_future_is_left_out() -> None:
    bench = Bench()
    points = [(T0_US - s * S, 100.0 * MB - s * MB) for s in range(600, 0, -1)]
    points.append((T0_US + 3600 * S, 1e12))
    bench.ring.prefill("memory", points, fine=True)
    slopes = bench.ring.slopes("memory")
    assert all(slope and abs(slope.per_min - 60 * MB) < MB for slope in slopes)
    bench.look(100 * MB)
    last = bench.ring.series_of("memory")
    assert last is not None
    assert last.last == (M0_US, 100.0 * MB), "a stored sample of the future blocks no new one"


def test_coarse_history_feeds_growth_but_no_chart() -> None:
    bench = Bench()
    bench.ring.prefill("memory", [(T0_US - s * S, 5.0) for s in range(600, 0, -60)], fine=False)
    assert bench.ring.series_of("memory") is None
    assert bench.ring.slopes("memory")[2] is not None


def test_bytes_behind_the_newest_checkpoint() -> None:
    bench = Bench()
    older = [record(lsn, "step.end", lsn) for lsn in range(1, 11)]
    commit = record(11, "checkpoint.commit", 11, id="c", kind="full")
    newer = [record(lsn, "step.end", lsn) for lsn in range(12, 22)]
    bench.ring.take(batch(*newer))
    assert _tail_bytes(bench) == _bytes(*newer)
    bench.ring.take(_backfilled(*older, commit))
    assert _tail_bytes(bench) == _bytes(*newer), "what was read first still counts"
    bench.ring.take(batch(record(22, "checkpoint.commit", 22, id="d", kind="incremental")))
    assert _tail_bytes(bench) == 0


def test_two_hours_are_kept() -> None:
    bench = Bench()
    for _ in range(0, 3 * 3600, 60):
        bench.look(1)
        bench.pass_s(60)
    first_us = bench.ring.first_us("memory")
    assert first_us is not None
    assert bench.clock.wall_us() - first_us <= SPAN_US * 1.06


def test_disk_and_changes() -> None:
    bench = Bench()
    before = bench.ring.changed
    bench.ring.take_disk(DiskSample(t_us=T0_US, total_bytes=100, free_bytes=40))
    bench.ring.touch()
    assert bench.ring.changed == before + 2
    assert bench.columns("disk_free", 2, 1)[0].last == 40
    assert bench.columns("nothing", 2, 3) == [GAP] * 3


def _backfilled(*records: Record, faults: tuple[Fault, ...] = ()) -> Batch:
    live = batch(*records, faults=faults)
    return Batch(live.log, live.records, live.faults, live.start, live.end, live=False)


def _tail_bytes(bench: Bench) -> int:
    return bench.ring.tail_bytes(bench.ring.state.saved.covered_lsn)


def _bytes(*records: Record) -> int:
    end: Position = batch(*records).end
    return end.offset


def _event(at_s: float, text: str, origin: str) -> Event:
    kind = "fault" if text.startswith("log ") else "note"
    return Event(seq=0, t_us=T0_US + round(at_s * S), kind=kind, text=text, origin=origin)


def test_tokens_and_bytes_of_the_run_have_courses_of_their_own() -> None:
    bench = Bench()
    begun(bench)
    told = {"context": {"bytes": 4_000, "tokens": 900}, "recent": {"bytes": 10, "tokens": -1}}
    bench.ring.take(batch(bench.now(2, "sample", tiers=told)))
    bench.ring.take_disk(
        DiskSample(t_us=0, total_bytes=100 * MB, free_bytes=40 * MB, run_bytes=3 * MB)
    )
    found = {name: bench.ring.series_of(name) for name in ("tokens:context", "run_bytes")}
    assert {name: one.last for name, one in found.items() if one} == {
        "tokens:context": (bench.clock.boot_us(), 900.0),
        "run_bytes": (bench.clock.boot_us(), 3.0 * MB),
    }
    assert bench.ring.series_of("tokens:recent") is None
    assert bench.ring.max_gap_us("run_bytes") == bench.ring.max_gap_us("disk_free")


def test_a_look_at_a_foreign_store_is_kept_and_makes_a_snapshot_stale() -> None:
    bench = Bench()
    before = bench.ring.changed
    look = StoreLook(source="directory", t_us=1, count=2)
    bench.ring.take_store(look)
    assert bench.ring.store == look
    assert bench.ring.changed > before
