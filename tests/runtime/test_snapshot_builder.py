"""What a frame shows: states, limits and ages, each from what was really seen."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from memwatch.config.schema import Lights
from memwatch.domain.record import Record
from memwatch.domain.sample import DiskSample, ProcessInfo
from memwatch.domain.snapshot import Limit
from tests.builders import T0_US, batch
from tests.runtime.watched import BOOT, MANIFEST, MB, S, Watched


def test_a_run_that_has_said_nothing_yet() -> None:
    snapshot = Watched().snapshot(alive=None)
    assert snapshot.run.state == "running"
    words = {light.name: light.word for light in snapshot.lights}
    assert words == dict.fromkeys(("MEMORY", "DISK", "PROCS", "CKPT", "STEP"), "no data")
    assert snapshot.resources == ()
    assert snapshot.progress.last_step_s is None


def test_a_run_at_work() -> None:
    watched = Watched()
    watched.begin()
    watched.say("experiment.begin", x=3, title="level 9", phase="exploration")
    watched.live(30)
    snapshot = watched.snapshot()
    run = snapshot.run
    assert (run.state, run.phase, run.experiment) == ("running", "exploration", 3)
    assert run.uptime_s == 30
    assert run.ended_us is None
    assert run.ops == ("checkpoint", "leak", "pause", "read_only"), "holds need no word"
    assert snapshot.t_us == watched.clock.wall_us()
    assert snapshot.progress.last_step_s == 0
    assert snapshot.tiers[0].bytes == 50 * MB
    unaccounted = snapshot.resource("unaccounted")
    assert unaccounted is not None
    assert unaccounted.used == 50 * MB


@pytest.mark.parametrize("mode", ["paused", "read_only", "draining", "aborting"])
def test_what_the_agent_declares_is_its_state(mode: str) -> None:
    watched = Watched()
    watched.begin()
    watched.say("mode", mode=mode)
    assert watched.snapshot().run.state == mode
    watched.say("mode", mode="running")
    assert watched.snapshot().run.state == "running"


def test_a_mode_that_nobody_knows_is_running() -> None:
    watched = Watched()
    watched.begin()
    watched.say("mode", mode="\x1b[31mdancing")
    assert watched.snapshot().run.state == "running"


def test_silence_needs_more_than_a_sample_a_minute() -> None:
    watched = Watched()
    watched.begin()
    watched.say("step.end")
    watched.clock.advance_s(70)
    assert watched.snapshot().run.state == "running", "an idle agent samples each minute"
    assert watched.light("STEP") == ("WARN", "no progress")
    watched.clock.advance_s(10)
    assert watched.snapshot().run.state == "silent"
    assert watched.light("STEP") == ("WARN", "no sign of life")


def test_silence_is_the_samplers_however_long_a_step_may_take() -> None:
    """An agent samples each minute: what it works on has no part in it."""
    watched = Watched(lights=Lights())
    watched.begin()
    watched.live(5)
    watched.clock.advance_s(74)
    assert watched.snapshot().run.state == "running"
    watched.clock.advance_s(2)
    assert watched.snapshot().run.state == "silent"


@pytest.mark.parametrize("step_s", [7200.0, -7200.0])
def test_a_step_of_the_wall_clock_ages_nothing(step_s: float) -> None:
    watched = Watched()
    watched.begin()
    watched.live(5)
    watched.say("checkpoint.commit", id="full-1", kind="full", bytes=5)
    watched.clock.step_wall_s(step_s)
    watched.clock.advance_s(10)
    snapshot = watched.snapshot()
    assert snapshot.run.state == "running"
    assert snapshot.run.uptime_s == 15
    assert snapshot.progress.last_step_s == 10
    assert snapshot.source.lag_s == 10
    assert snapshot.checkpoints.age_s == 10
    assert not snapshot.checkpoints.overdue
    watched.clock.advance_s(10)
    assert watched.light("STEP") == ("watch", "no progress")


def test_the_rate_of_experiments_goes_by_the_clock_that_does_not_jump() -> None:
    watched = Watched()
    watched.begin()
    for number in range(5):
        watched.say("experiment.end", x=number, status="kept", duration_us=60 * S)
        watched.clock.advance_s(60)
        watched.clock.step_wall_s(5000)
    assert watched.snapshot().progress.per_hour == pytest.approx(60)


def test_an_ended_run_is_shown_at_its_last_instant() -> None:
    watched = Watched()
    watched.begin(limits={"memory_bytes": 200 * MB})
    watched.live(70, grow=MB)
    assert watched.snapshot().resources[0].time_to_limit_s is not None
    end = watched.say("run.end", status="done", reason="all tried")
    watched.clock.advance_s(7200)
    snapshot = watched.snapshot(alive=False)
    assert (snapshot.run.state, snapshot.run.end_reason) == ("ended", "all tried")
    assert snapshot.t_us == snapshot.run.ended_us == end.t_us
    assert snapshot.run.uptime_s == 70
    assert snapshot.run.ops == (), "nothing can be asked of it"
    assert snapshot.progress.last_step_s == 0
    memory = snapshot.resource("memory")
    assert memory is not None
    assert memory.used == 169 * MB
    assert memory.time_to_limit_s is None, "it will not get there any more"
    assert watched.light("STEP", alive=False) == ("ok", "run ended")


@pytest.mark.parametrize(("status", "state"), [("crashed", "crashed"), ("killed", "killed")])
def test_an_end_that_says_why(status: str, state: str) -> None:
    watched = Watched()
    watched.begin()
    watched.say("run.end", status=status, reason="memory limit reached")
    snapshot = watched.snapshot(alive=False)
    assert (snapshot.run.state, snapshot.run.end_reason) == (state, "memory limit reached")
    assert watched.light("STEP", alive=False) == ("CRIT", f"searcher {state}")


def test_a_process_that_is_gone_without_a_word_crashed_at_its_last_record() -> None:
    watched = Watched()
    watched.begin()
    watched.live(10)
    last_us = watched.clock.wall_us()
    watched.clock.advance_s(3600)
    snapshot = watched.snapshot(alive=False)
    assert snapshot.run.state == "crashed"
    assert snapshot.run.ended_us == last_us
    assert snapshot.progress.last_step_s == 0
    assert watched.light("STEP", alive=False)[0] == "CRIT"


def test_a_crash_of_another_boot_is_shown_at_its_last_instant() -> None:
    watched = Watched(msgspec.structs.replace(MANIFEST, boot_id="boot-before"))
    late = Record(1, T0_US - 3600 * S, 5 * S, "run.begin", {"start_id": "a", "boot": "boot-before"})
    watched.ring.take(batch(late))
    for lsn, at_s in ((2, 10), (3, 25)):
        members: dict[str, Any] = {"status": "kept", "x": lsn}
        t_us, m_us = late.t_us + at_s * S, late.m_us + at_s * S
        watched.ring.take(batch(Record(lsn, t_us, m_us, "experiment.end", members)))
    snapshot = watched.snapshot(alive=False)
    assert snapshot.run.uptime_s == 25
    assert snapshot.run.ended_us == late.t_us + 25 * S
    assert snapshot.progress.last_step_s == 0
    assert snapshot.progress.per_hour == pytest.approx(3600 / 15)


def test_an_agent_that_began_again_lives() -> None:
    watched = Watched()
    watched.begin()
    watched.say("run.end", status="crashed")
    watched.say("run.begin", start_id="s2", boot=BOOT, pid=4343)
    assert watched.snapshot().run.state == "running"


def test_the_smallest_limit_in_force_binds() -> None:
    watched = Watched(memory_limit_bytes=300 * MB)
    watched.begin()
    watched.look(150 * MB)
    machine = (
        Limit(name="cgroup /a memory.max", bytes=250 * MB),
        Limit(name="cgroup /a soft", bytes=10 * MB, in_force=False, why="soft"),
        Limit(name="host memory", bytes=900 * MB),
    )
    limits = watched.snapshot(limits=machine).limits
    assert limits.binding is not None
    assert limits.binding.name == "cgroup /a memory.max"
    assert {limit.name for limit in limits.others} == {
        "profile test",
        "cgroup /a soft",
        "host memory",
    }
    stated = Watched(memory_limit_bytes=300 * MB)
    stated.begin(limits={"memory_bytes": 200 * MB})
    stated.look(150 * MB)
    snapshot = stated.snapshot(limits=machine)
    assert snapshot.limits.binding is not None
    assert snapshot.limits.binding.name == "stated by the agent"
    assert snapshot.level == "intervene"
    assert snapshot.resources[0].share == pytest.approx(0.75)


def test_without_a_limit_nothing_is_divided() -> None:
    watched = Watched()
    watched.begin()
    watched.look(150 * MB)
    snapshot = watched.snapshot()
    assert snapshot.limits.binding is None
    assert snapshot.resources[0].share is None
    assert watched.light("MEMORY") == ("no data", "no limit known")


@pytest.mark.parametrize(
    ("used", "level", "word"),
    [
        (59, "normal", "ok"),
        (60, "warn", "WARN"),
        (75, "intervene", "ACT"),
        (90, "emergency", "CRIT"),
        (95, "hard", "CRIT"),
    ],
)
def test_levels_and_their_words(used: int, level: str, word: str) -> None:
    watched = Watched()
    watched.begin(limits={"memory_bytes": 100 * MB})
    watched.look(used * MB)
    assert watched.snapshot().level == level
    assert watched.light("MEMORY")[0] == word


def test_experiments_that_only_the_history_knows_are_counted() -> None:
    watched = Watched()
    watched.begin()
    watched.say("experiment.end", x=90, status="kept")
    snapshot = watched.snapshot(older_experiments={"kept": 20, "failed": 2})
    assert snapshot.progress.experiments == {"kept": 21, "failed": 2}


def test_a_strangers_text_is_inert_wherever_it_is_shown() -> None:
    evil = "\x1b]0;title\x07\u202e[bold]"
    watched = Watched(
        msgspec.structs.replace(MANIFEST, agent=evil, host=evil, profile=evil, ops={evil: {}})
    )
    watched.begin()
    watched.say("experiment.begin", x=1, title=evil, phase=evil)
    watched.say("note", text=evil)
    watched.say("checkpoint.abort", id=evil, kind=evil, reason=evil)
    watched.say("purge.end", tier=evil, cause=evil)
    watched.say("sample", tiers={evil: {"bytes": 1, "entries": 1}})
    watched.say("run.end", status=evil, reason=evil)
    name = ProcessInfo(pid=1, ppid=1, start_ticks=1, name="x", rss_bytes=1)
    watched.look(5, members=(name,))
    text = msgspec.json.encode(watched.snapshot(alive=False)).decode()
    assert "\\u001b" not in text
    assert "\u202e" not in text


def test_a_typical_snapshot_is_small_and_holds_what_scripts_rely_on() -> None:
    watched = Watched()
    watched.begin(limits={"memory_bytes": 400 * MB})
    for number in range(40):
        title = "lzma level 9 dict 512 lc 1 lp 2 pb 1 nice 273 mode 1"
        watched.say("experiment.begin", x=number, title=title, phase="exploration")
        watched.live(3)
        figures = {"ratio": 4.5, "score": 6.1}
        watched.say("experiment.end", x=number, status="kept", duration_us=3 * S, metrics=figures)
        watched.say("purge.end", tier="recent", cause="retention", freed_bytes=MB, entries=2)
        name = f"full-{number:020d}"
        watched.say("checkpoint.commit", id=name, kind="full", bytes=9 * MB, entries=30)
    watched.ring.take_disk(DiskSample(t_us=T0_US, total_bytes=9, free_bytes=5, run_bytes=2))
    limits = tuple(Limit(name=f"cgroup /user.slice/{n} memory.max", bytes=10**9) for n in range(4))
    text = msgspec.json.encode(watched.snapshot(limits=limits))
    assert len(text) <= 16_000
    status = msgspec.json.decode(text)
    for path in CONTRACT.split():
        held: Any = status
        for name in path.split("."):
            held = held[int(name)] if name.isdigit() else held[name]


CONTRACT = """
run.id run.path run.agent run.profile run.host run.pid run.state run.phase run.experiment
run.uptime_s guard.engine guard.pid guard.recording guard.own.rss_bytes guard.own.cpu_percent
guard.own.disk_bytes level limits.binding.name limits.binding.bytes limits.soft_share
limits.hard_share limits.warn limits.intervene limits.emergency limits.why resources.0.name
resources.0.unit resources.0.used resources.0.limit resources.0.share resources.0.level
resources.0.growth_per_min.60s resources.0.growth_per_min.10min resources.0.growth_per_min.24h
resources.0.time_to_limit_s tiers.0.name tiers.0.entries tiers.0.bytes tiers.0.tokens
tiers.0.mean_bytes checkpoints.last.id checkpoints.last_recoverable_full.id
checkpoints.chain.deltas checkpoints.chain.bytes checkpoints.chain.entries checkpoints.overdue
checkpoints.incomplete recovery.at_risk_s recovery.at_risk_experiments interventions.0.id
interventions.0.action interventions.0.tier interventions.0.origin interventions.0.why
interventions.0.state interventions.0.asked_at_us interventions.0.done_at_us
interventions.0.duration_s interventions.0.before interventions.0.after_10s
interventions.0.after_10min interventions.0.freed_bytes interventions.0.freed_share
interventions.0.claimed disk.free_bytes processes.count progress.last_step_s events.0.text
source.kind source.position source.lag_s source.damaged source.gaps source.watch
"""
"""Names that scripts read: the contract of `status --json`, as far as it is measured today."""


@pytest.mark.parametrize("huge", [1 << 63, 1 << 64, -(1 << 70), 10**400])
def test_figures_beyond_64_bits_stop_no_guard(huge: int) -> None:
    watched = Watched()
    watched.begin()
    figures = dict.fromkeys(("duration_us", "bytes", "entries", "freed_bytes", "first_lsn"), huge)
    for kind in ("experiment.begin", "experiment.end", "step.end", "tool.end", "purge.end"):
        watched.say(kind, x=huge, best=huge, metrics={"ratio": huge}, **figures)
    for kind in ("checkpoint.begin", "checkpoint.commit"):
        watched.say(kind, id="c", kind="full", last_lsn=huge, stall_us=huge, **figures)
    tier = dict.fromkeys(("entries", "bytes", "tokens", "limit"), huge)
    watched.say("sample", tiers={"workspace": tier}, process={"rss_bytes": huge})
    watched.say("switch", name="leak", value=huge)
    watched.say("context.compact", before_tokens=huge, after_tokens=huge)
    watched.say("run.begin", start_id="2", pid=huge, limits={"memory_bytes": huge})
    snapshot = watched.snapshot()
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(snapshot))
    assert msgspec.json.encode(snapshot)
