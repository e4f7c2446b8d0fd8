"""A device that does not come back from fsync: an emergency waits for nobody who waits for it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memwatch.agent.log import LogWriter
from memwatch.config.policy import Policy
from memwatch.domain.command import Command
from memwatch.engine.facts import Facts, Now, ResourceFacts
from memwatch.runtime.guard.ledger import Ledger
from memwatch.runtime.guard.recorder import Recorder
from memwatch.runtime.guard.warden import Warden
from memwatch.wal.spool_format import HOLD, NEW
from tests.actuators.native_run import a_native_run
from tests.runtime.ledger_bench import NAMES, OPS, Bench
from tests.waiting import until

ACTS = frozenset({"abort_experiment", "pause", "read_only", "purge"})


class Night(Bench):
    """A warden, its ledger and its log over a spool; memory by hand."""

    def __init__(self, folder: Path, device: Device) -> None:
        super().__init__(folder)
        self.share, wal_dir = 0.3, folder / "night"
        self.files.fail = device.hold_up_log
        self.recorder = Recorder(
            wal_dir, self.clock, lambda: LogWriter(wal_dir, clock=self.clock, files=self.files)
        )
        self.actuator = a_native_run(folder, self.clock, OPS)
        self.actuator.claim_epoch()
        self.ledger = Ledger(self.actuator, self.recorder, self.clock, names=NAMES)
        self.warden = Warden(self._facts, self.recorder, self.clock, "boot")
        self.warden.send = self.ledger.submit
        self.warden.withdraw = self.ledger.withdraw

    def _facts(self, now: Now) -> tuple[Facts, Policy]:
        memory = ResourceFacts(
            name="memory", used=self.share * 1000, limit=1000, measured_m_us=now.m_us
        )
        holds, commands = self.actuator.holds(), self.ledger.commands()
        facts = Facts(
            mode="act", allow=ACTS, ops=ACTS, resources=(memory,), holds=holds, commands=commands
        )
        return facts, Policy()


class Device:
    """Comes back from no sync until it is let."""

    def __init__(self) -> None:
        self.waiting = threading.Event()
        self.goes_on = threading.Event()
        self.stuck = False

    def hold_up_log(self, _: int, name: str) -> bool:
        if name in ("fsync", "sync_data"):
            self._wait()
        return False

    def hold_up(self, real: Callable[[int], None]) -> Callable[[int], None]:
        def sync(fd: int) -> None:
            self._wait()
            real(fd)

        return sync

    def _wait(self) -> None:
        if self.stuck:
            self.waiting.set()
            self.goes_on.wait(60)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    device = Device()
    monkeypatch.setattr(os, "fsync", device.hold_up(os.fsync))
    yield device
    device.goes_on.set()


@pytest.fixture
def night(tmp_path: Path, device: Device) -> Iterator[Night]:
    night = Night(tmp_path, device)
    night.warden.look()
    yield night
    device.goes_on.set()
    night.recorder.close()


def a_person_notes(night: Night) -> None:
    night.recorder.append("note", {"text": "seen"}, sync=True)


def a_person_pauses(night: Night) -> None:
    night.ledger.submit(Command(op="pause", by="ann"))
    night.actuator.keep(night.clock.boot_us())


@pytest.mark.parametrize("share", [0.92, 0.97])
@pytest.mark.parametrize("busy", [a_person_notes, a_person_pauses])
def test_an_emergency_waits_for_no_device(
    night: Night, device: Device, share: float, busy: Callable[[Night], None]
) -> None:
    device.stuck = True
    threading.Thread(target=busy, args=[night], daemon=True).start()
    until(device.waiting.is_set)
    night.share = share
    acts = threading.Thread(target=night.warden.look, daemon=True)
    acts.start()
    until(lambda: not acts.is_alive())
    asked = [one.op for one in night.ledger.commands().values() if one.origin == "engine"]
    assert asked == ["abort_experiment" if share < 0.95 else "read_only"]
    lies = night.agent.names(NEW if share < 0.95 else HOLD)
    assert len([name for name in lies if "ann" not in name]) == 1


def test_a_gentle_step_is_on_the_device_before_it_is_asked_for(
    night: Night, device: Device
) -> None:
    night.share = 0.62
    for _ in range(2):
        night.clock.advance_s(2)
        night.warden.look()
    device.stuck = True
    night.clock.advance_s(2)
    threading.Thread(target=night.warden.look, daemon=True).start()
    until(device.waiting.is_set)
    assert night.agent.names(NEW) == []
    device.goes_on.set()
    until(lambda: night.agent.names(NEW))


def test_a_hold_and_its_release_reach_the_device_with_the_next_renewal(
    night: Night, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    monkeypatch.setattr(night.actuator._folder, "sync", lambda _, name: synced.append(name))
    hold = night.ledger.submit(Command(op="read_only", by="ann"))
    night.actuator.keep(night.clock.boot_us())
    night.ledger.submit(Command(op="read_write", args={"holds": [hold]}))
    night.actuator.keep(night.clock.boot_us())
    night.actuator.keep(night.clock.boot_us())
    assert len(synced) == 2
    assert synced[0] == synced[1]
