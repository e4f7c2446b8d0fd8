"""The notifier: what is raised is written down and sent; a new start neither loses nor doubles."""

from __future__ import annotations

import json
import sys
import threading
from datetime import UTC
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from memwatch.agent.log import LogWriter
from memwatch.analytics.alerts import CLEAR_AFTER_S
from memwatch.config.settings import Channel, NotifySettings, Quiet
from memwatch.domain.clock import ManualClock
from memwatch.domain.command import Command
from memwatch.domain.control import EngineInfo
from memwatch.domain.level import Level
from memwatch.domain.record import Record
from memwatch.domain.snapshot import GuardInfo, Resource, RunInfo, RunState, Snapshot, Source
from memwatch.runtime.guard.notifier import STANDS_S, Notifier, named
from memwatch.runtime.guard.recollection import recollect
from memwatch.runtime.guard.recorder import Recorder
from tests.actuators.notify.listening import Heard, Listener, listening, status
from tests.waiting import until

SECRET = "T0K3N-s3cret"


def snapshot(level: Level = "normal", state: RunState = "running", **members: Any) -> Snapshot:
    run = RunInfo(id="run-1", path="/r", agent="a", profile="p", host="h", pid=1, state=state)
    memory = Resource(name="memory", used=6.1e9, limit=8e9, share=0.76)
    known = {"seq": 1, "t_us": 1, "run": run, "guard": GuardInfo(pid=2), "resources": (memory,)}
    return Snapshot(**{**known, "level": level, "source": Source(last_lsn=1), **members})


class Bench:
    """Guards that come and go over one log, with a real server behind the channels."""

    def __init__(self, folder: Path, server: Listener) -> None:
        self.wal = folder / "wal"
        self.server = server
        self.clock = ManualClock()
        self.settings = NotifySettings(
            channels=(Channel(kind="json", url=f"{server.url}/{SECRET}", headers={"x": SECRET}),)
        )
        self.told: list[Record] = []

    def begin(self, *, sending: bool = True) -> Notifier:
        """Begin a guard; one that is not `sending` judges, and is killed before it sends."""
        recorder = Recorder(self.wal, self.clock, lambda: LogWriter(self.wal, clock=self.clock))
        self.notifier = Notifier(self.settings, "run-1", "gpu01", recorder, self.clock, zone=UTC)
        self.notifier.tell = self.told.append
        self.notifier.restore(recollect(self.wal, self.clock.wall_us()).told)
        self.recorder = recorder
        if sending:
            self.notifier.start()
        return self.notifier

    def end(self) -> None:
        self.notifier.stop()
        self.recorder.close()

    def see(self, shown: Snapshot, after_s: float = 1.0) -> None:
        self.clock.advance_s(after_s)
        self.notifier.take(shown)
        self.notifier.look()

    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(heard.body) for heard in self.server.heard]

    def states(self) -> list[tuple[str, str]]:
        return [(one["key"], one["state"]) for one in self.bodies()]

    def records(self, kind: str) -> list[dict[str, Any]]:
        return [record.members for record in self.told if record.kind == kind]

    def sent(self, count: int) -> None:
        """Wait until so many were sent and written down."""
        until(lambda: sum(it["state"] == "sent" for it in self.records("notify")) >= count)


@pytest.fixture
def bench(tmp_path: Path) -> Any:
    with listening() as server:
        found = Bench(tmp_path, server)
        yield found
        found.end()


def test_an_alert_is_written_down_sent_shown_and_cleared_with_its_time(bench: Bench) -> None:
    bench.begin()
    bench.see(snapshot("warn"))
    bench.see(snapshot("intervene"))
    bench.see(snapshot("intervene"))
    bench.sent(1)
    (alert,) = bench.notifier.alerts
    assert (alert.key, alert.severity, alert.bell) == ("memory", "warning", False)
    bench.see(snapshot("normal"), 60)
    bench.see(snapshot("normal"), CLEAR_AFTER_S)
    bench.sent(2)
    assert bench.notifier.alerts == ()
    raised, cleared = bench.bodies()
    assert raised["line"] == "memwatch: run-1: memory intervene: 76% of 8.0G"
    assert (
        cleared["line"] == "memwatch: all clear after 1m01s: run-1: memory intervene: 76% of 8.0G"
    )
    assert [it["state"] for it in bench.records("alert")] == ["raised", "cleared"]
    assert bench.records("alert")[1]["lasted_us"] == 61_000_000
    (info,) = bench.notifier.channels
    assert (info.name, info.state, info.detail) == ("json", "sent", "answered 200")


def test_take_returns_at_once_and_the_thread_judges(bench: Bench) -> None:
    def hang(_: BaseHTTPRequestHandler) -> None:
        bench.server.release.wait(20)

    bench.server.reply = hang
    bench.begin()
    bench.notifier.take(snapshot("emergency"))
    until(lambda: bench.notifier.alerts)
    bench.notifier.take(snapshot("normal"))
    bench.server.release.set()


def test_a_guard_that_begins_anew_repeats_nothing_and_clears_what_it_did_not_raise(
    bench: Bench,
) -> None:
    bench.begin()
    bench.see(snapshot("emergency"))
    bench.sent(1)
    bench.end()
    bench.clock.advance_s(30)
    bench.begin()
    assert [it.key for it in bench.notifier.alerts] == ["memory"]
    bench.see(snapshot())  # it does not know the level yet
    bench.see(snapshot("emergency"))
    bench.end()
    bench.begin()
    bench.see(snapshot())
    bench.see(snapshot(), CLEAR_AFTER_S)
    bench.sent(2)
    assert bench.states() == [("memory", "raised"), ("memory", "cleared")]
    assert bench.bodies()[1]["lasted_us"] == 33_000_000


def test_what_a_killed_guard_could_not_send_the_next_one_sends_once(bench: Bench) -> None:
    bench.begin(sending=False)
    bench.see(snapshot("emergency"))
    bench.end()
    assert bench.server.heard == []
    for _ in range(2):
        bench.begin()
        bench.sent(1)
        bench.end()
    assert bench.states() == [("memory", "raised")]
    bench.begin(sending=False)


def test_an_all_clear_of_hours_ago_is_not_sent_late(bench: Bench) -> None:
    bench.begin(sending=False)
    bench.see(snapshot("emergency"))
    bench.see(snapshot())
    bench.see(snapshot(), CLEAR_AFTER_S)
    bench.end()
    bench.clock.advance_s(2 * 3600)
    assert bench.begin(sending=False).channels[0].waiting == 0


def test_one_that_was_given_up_is_not_begun_again(bench: Bench) -> None:
    bench.server.reply = status(403)
    bench.begin()
    bench.see(snapshot("emergency"))
    until(lambda: bench.records("notify"))
    bench.end()
    bench.begin()
    bench.see(snapshot("emergency"))
    assert bench.notifier.channels[0].waiting == 0
    assert len(bench.server.heard) == 1


def test_a_standing_alert_is_written_down_again_so_that_a_new_start_finds_it(bench: Bench) -> None:
    bench.begin()
    bench.see(snapshot("emergency"))
    bench.see(snapshot("emergency"), STANDS_S + 1)
    bench.see(snapshot("emergency"), 10)
    alerts = bench.records("alert")
    assert [it["state"] for it in alerts] == ["raised", "stands"]
    (alert,) = bench.notifier.alerts
    assert alerts[1]["raised_us"] == alert.raised_us


def test_the_end_of_a_run_is_no_all_clear(bench: Bench) -> None:
    bench.begin()
    bench.see(snapshot("emergency"))
    bench.sent(1)
    bench.see(snapshot(state="crashed"))
    bench.see(snapshot(state="crashed"), CLEAR_AFTER_S)
    bench.sent(2)
    bench.end()
    assert bench.records("alert")[-1]["moot"] is True
    assert bench.begin(sending=False).channels[0].waiting == 0
    assert bench.states() == [("memory", "raised"), ("crashed", "raised")]


@pytest.mark.parametrize(
    ("channels", "keys"),
    [
        (("emergency",), []),
        (("warn",), ["memory"]),
        ((None,), ["memory"]),
        (("emergency", "intervene"), ["memory"]),
    ],
)
def test_each_channel_has_a_least_level(
    bench: Bench, channels: tuple[Level | None, ...], keys: list[str]
) -> None:
    url = bench.server.url
    bench.settings = NotifySettings(
        channels=tuple(Channel(kind="json", url=url, least=least) for least in channels)
    )
    bench.begin(sending=False)
    bench.see(snapshot("intervene"))
    waiting = [info.waiting for info in bench.notifier.channels]
    assert sum(waiting) == len(keys)
    assert waiting[-1] == len(keys)


def test_quiet_hours_hold_what_is_not_grave(bench: Bench) -> None:
    now = bench.clock.wall_us() / 1e6 % 86_400
    hour = int(now // 3600)
    quiet = Quiet(from_=f"{hour:02d}:00", until=f"{(hour + 2) % 24:02d}:00")
    channels = (*bench.settings.channels, Channel(kind="bell"))
    bench.settings = NotifySettings(channels=channels, quiet=quiet)
    bench.begin()
    bench.see(snapshot("intervene"))
    until(lambda: bench.records("notify"))
    assert bench.records("notify")[0]["state"] == "held"
    assert [it.bell for it in bench.notifier.alerts] == [False]
    bench.see(snapshot("emergency"))
    bench.sent(1)
    assert [it["severity"] for it in bench.bodies()] == ["error"]
    assert [it.bell for it in bench.notifier.alerts] == [True]


def test_a_test_goes_through_every_channel_and_is_remembered(bench: Bench) -> None:
    test = Command(op="notify.test")
    bench.begin()
    assert bench.notifier.test(test) == ""
    bench.sent(1)
    until(lambda: bench.notifier.channels[0].tested_us)
    bench.end()
    bench.begin(sending=False)
    assert bench.notifier.channels[0].tested_us == bench.clock.wall_us()
    bench.settings = NotifySettings()
    assert "no channel is configured" in bench.begin(sending=False).test(test)


def test_a_shout_is_told_once_an_hour(bench: Bench) -> None:
    bench.begin()
    for words in ("the pause does not help", "the pause does not help", "another"):
        bench.clock.advance_s(1)
        bench.notifier.shout(words)
    bench.sent(2)
    bench.clock.advance_s(3601)
    bench.notifier.shout("the pause does not help")
    bench.sent(3)
    assert sorted(it["text"] for it in bench.bodies()) == [
        "another",
        "the pause does not help",
        "the pause does not help",
    ]
    assert {it["state"] for it in bench.bodies()} == {"told"}
    assert bench.notifier.alerts == ()


def heard_secret(heard: list[Heard]) -> bool:
    return any(SECRET in one.path and one.headers["x"] == SECRET for one in heard)


@pytest.mark.parametrize("code", [200, 302, 404, 500])
def test_a_secret_is_in_no_record_event_error_or_status(
    bench: Bench, code: int, capfd: pytest.CaptureFixture[str]
) -> None:
    import msgspec

    bench.server.reply = status(code, Location=f"/{SECRET}")
    bench.begin()
    bench.see(snapshot("emergency"))
    until(lambda: bench.records("notify"))
    bench.end()
    assert heard_secret(bench.server.heard)
    log = b"".join(path.read_bytes() for path in bench.wal.rglob("*") if path.is_file())
    assert b'"k":"notify"' in log
    assert SECRET.encode() not in log
    assert SECRET.encode() not in msgspec.json.encode(bench.notifier.channels)
    assert SECRET not in str(capfd.readouterr())
    bench.begin(sending=False)


def test_a_channel_that_hangs_delays_no_other(bench: Bench) -> None:
    hangs = Channel(kind="command", argv=(sys.executable, "-c", "import time; time.sleep(600)"))
    bench.settings = NotifySettings(channels=(hangs, *bench.settings.channels))
    bench.begin()
    bench.see(snapshot("emergency"))
    bench.sent(1)
    bench.end()
    until(lambda: not any("memwatch-notif" in t.name for t in threading.enumerate()))
    bench.begin(sending=False)


def test_channels_are_named_by_kind_and_bells_are_none() -> None:
    kinds = [Channel(kind=kind) for kind in ("ntfy", "bell", "json", "ntfy", "ntfy")]
    assert [name for name, _ in named(kinds)] == ["ntfy", "json", "ntfy-2", "ntfy-3"]


def test_an_alert_without_channels_is_still_an_alert(bench: Bench) -> None:
    bench.settings = NotifySettings()
    bench.begin()
    bench.see(snapshot(engine=EngineInfo(policy_error="line 3: warn is over intervene")))
    assert [it.key for it in bench.notifier.alerts] == ["policy"]
