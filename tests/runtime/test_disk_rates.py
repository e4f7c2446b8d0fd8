"""A disk is measured once a day, when that disturbs nobody, and never in a run's directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from memwatch.domain.clock import ManualClock
from memwatch.domain.control import Pressure
from memwatch.domain.recovery import DiskRate
from memwatch.ingest.checkpoint_scan import FullOnDisk, OnDisk
from memwatch.runtime.guard import disk_rates
from memwatch.runtime.guard.disk_rates import DiskRates
from memwatch.runtime.runs.host_file import HOST_FILE, HostFile
from memwatch.wal.segment import CHECKPOINT_DIR, full_name

DAY_S = 86_400


class Bench:
    """Rates of a run beside a home, and what was measured."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.run, self.home = tmp_path / "run", tmp_path / "home"
        self.run.mkdir()
        self.home.mkdir()
        self.clock = ManualClock()
        self.measured: list[Path] = []
        self.found: DiskRate | None = None
        self.devices: dict[Path, str] = {}
        monkeypatch.setattr(disk_rates, "measure", self._measure)
        monkeypatch.setattr(disk_rates, "measure_reading", self._measure)
        monkeypatch.setattr(disk_rates, "device_below", lambda path: self.devices.get(path, "8:1"))
        self.rates = self.again()

    def again(self) -> DiskRates:
        """Return those of a guard that begins now, and whose first moments are over."""
        rates = DiskRates(self.run, self.home, self.clock)
        rates.io_some = lambda: 0.0
        self.clock.advance_s(60)
        return rates

    def rate(self, read: float | None = 4e8, write: float | None = 2e8) -> DiskRate:
        """Let a rate be measured from now on."""
        self.found = DiskRate(
            read_bytes_per_s=read, write_bytes_per_s=write, t_us=self.clock.wall_us()
        )
        return self.found

    def _measure(self, path: Path, *_: object, **__: object) -> DiskRate | None:
        self.measured.append(path)
        return self.found


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(tmp_path, monkeypatch)


def test_measured_once_a_day_and_remembered_for_all_guards(bench: Bench) -> None:
    rate = bench.rate()
    assert bench.rates.look(None)
    assert bench.rates.rate == rate
    assert not bench.rates.look(None)
    other = bench.again()
    assert other.look(None)
    assert other.rate == rate
    assert bench.measured == [bench.home]
    bench.clock.advance_s(DAY_S)
    newer = bench.rate(read=3e8)
    assert bench.rates.look(None)
    assert bench.rates.rate == newer
    assert bench.measured == [bench.home] * 2


def test_a_guard_that_just_began_waits(bench: Bench) -> None:
    fresh = DiskRates(bench.run, bench.home, bench.clock)
    fresh.io_some = lambda: None
    fresh.look(None)
    assert bench.measured == []
    bench.clock.advance_s(31)
    fresh.look(None)
    assert bench.measured == [bench.home]


def test_not_while_anybody_needs_the_machine(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    rates = bench.rates
    busy = Pressure(scope="system", some_avg10=11, some_avg60=0, full_avg10=0)
    for name, value, calm in (
        ("level", "warn", "normal"),
        ("pressure", busy, None),
        ("io_some", 10.0, 0.0),
        ("reserve_bytes", 1 << 62, 0),
    ):
        setattr(rates, name, lambda value=value: value)
        assert not rates.look(None), name
        assert bench.measured == [], name
        setattr(rates, name, lambda calm=calm: calm)
    rates.look(None)
    assert bench.measured == [bench.home]


def test_where_nothing_can_be_measured_nobody_tries_again_that_day(bench: Bench) -> None:
    assert not bench.rates.look(None)
    assert bench.rates.rate is None
    bench.rates.look(None)
    bench.again().look(None)
    assert bench.measured == [bench.home]


def test_on_another_device_the_newest_whole_checkpoint_is_read(bench: Bench) -> None:
    bench.devices[bench.run] = "9:9"
    for lsn, size in ((5, 90), (7, 10), (9, 99)):
        folder = bench.run / CHECKPOINT_DIR / full_name(lsn)
        folder.mkdir(parents=True)
        (folder / "small").write_bytes(b"x")
        (folder / "large").write_bytes(b"x" * size)
        (folder / "link").symlink_to("large")
    on_disk = OnDisk(
        known_lsn=9, fulls={5: FullOnDisk(), 7: FullOnDisk(), 9: FullOnDisk(wrong="short")}
    )
    rate = bench.rate(write=None)
    assert bench.rates.look(on_disk)
    assert bench.rates.rate == rate
    assert bench.measured == [bench.run / CHECKPOINT_DIR / full_name(7) / "large"]
    assert HostFile(bench.home).disk("9:9") == rate
    assert HostFile(bench.home).disk("8:1") is None


def test_without_checkpoints_nothing_is_read(bench: Bench) -> None:
    bench.devices[bench.run] = "9:9"
    bench.rate()
    assert not bench.rates.look(OnDisk(known_lsn=0))
    assert bench.measured == []


def test_a_damaged_file_is_said_once_and_made_anew(bench: Bench) -> None:
    said: list[str] = []
    bench.rates.say = said.append
    (bench.home / HOST_FILE).write_text("{")
    rate = bench.rate()
    assert bench.rates.look(None)
    assert len(said) == 1
    assert HostFile(bench.home).disk("8:1") == rate


def test_a_file_that_cannot_be_written_costs_no_rate_and_no_second_try(bench: Bench) -> None:
    (bench.home / HOST_FILE).mkdir()
    bench.rate()
    bench.rates.look(None)
    bench.rates.look(None)
    assert bench.measured == [bench.home]
    assert bench.rates.rate is not None


def test_a_wall_clock_that_was_set_back_makes_nobody_measure_again_and_again(bench: Bench) -> None:
    bench.rate()
    bench.rates.look(None)
    bench.clock.step_wall_s(-3 * DAY_S)
    for _ in range(3):
        bench.rates.look(None)
    assert bench.measured == [bench.home]
