"""How fast the disk of a run is: measured now and then, when that disturbs nobody, and remembered.

What is written lies in memwatch's own folder, never in a run's. Where that is on another device
the newest full checkpoint is read instead, and nothing is known of writing. Source: metrics.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from memwatch.agent.files import SYSTEM_FILES, Files
from memwatch.domain.clock import Clock
from memwatch.domain.control import Pressure
from memwatch.domain.level import Level
from memwatch.domain.recovery import DiskRate
from memwatch.host.deadline import ask
from memwatch.host.disk_rate import MOST_BYTES, measure, measure_reading
from memwatch.host.lock import LockHeldError
from memwatch.host.pressure import io_pressure
from memwatch.ingest.checkpoint_scan import OnDisk
from memwatch.runtime.runs.host_file import HostFile, device_below, useful
from memwatch.wal.segment import CHECKPOINT_DIR, full_name

_DAY_US: Final = 86_400_000_000
_FIRST_US: Final = 30_000_000
"""A guard that began just now reads log and history itself."""
_ROOM_TIMES: Final = 10
_MOST_IO_SOME: Final = 10.0
_MOST_MEMORY_SOME: Final = 10.0
"""Percent of the last 10 s that somebody waited: above, it is their time, and a wrong figure."""
_DEADLINE_S: Final = 2.0


class DiskRates:
    """The rates of one run's device. `look` is for one thread, the rest for any."""

    def __init__(
        self, run_dir: Path, home: Path, clock: Clock, files: Files = SYSTEM_FILES
    ) -> None:
        """`home` is that of memwatch, for all runs."""
        self._run_dir = run_dir
        self._home = home
        self._clock = clock
        self._files = files
        self._due_us = clock.boot_us() + _FIRST_US
        self._told_damage = False
        self._unkept: DiskRate | None = None
        """What could not be written down: this guard knows it until it ends."""
        self.host = HostFile(home, files)
        self.rate: DiskRate | None = None
        """What is known of the run's device; None before it was measured."""
        self.level: Callable[[], Level] = lambda: "normal"
        self.pressure: Callable[[], Pressure | None] = lambda: None
        """Of memory."""
        self.io_some: Callable[[], float | None] = io_pressure
        self.reserve_bytes: Callable[[], int] = lambda: 0
        """What the policy keeps free on the disk for the log."""
        self.say: Callable[[str], None] = lambda _: None
        """Told what a person should know."""

    def look(self, on_disk: OnDisk | None) -> bool:
        """Measure when it is due and nothing speaks against it; True when there is a new rate."""
        device = device_below(self._run_dir)
        if device is None:
            return False
        known, before = self.host.disk(device) or self._unkept, self.rate
        if not self._is_fresh(known) and self._may_measure():
            self._due_us = self._clock.boot_us() + _DAY_US
            known = self._measured(device, on_disk)
            self._remember(device, known)
        self.rate = useful(known)
        return self.rate != before

    def _is_fresh(self, known: DiskRate | None) -> bool:
        return known is not None and 0 <= self._clock.wall_us() - known.t_us < _DAY_US

    def _may_measure(self) -> bool:
        if self._clock.boot_us() < self._due_us or self.level() != "normal":
            return False
        pressure, io_some = self.pressure(), self.io_some()
        if pressure is not None and pressure.some_avg10 >= _MOST_MEMORY_SOME:
            return False
        if io_some is not None and io_some >= _MOST_IO_SOME:
            return False
        room = ask(f"room of {self._home}", lambda: os.statvfs(self._home), _DEADLINE_S)
        needed = self.reserve_bytes() + _ROOM_TIMES * MOST_BYTES
        return room is not None and room.f_bavail * room.f_frsize >= needed

    def _measured(self, device: str, on_disk: OnDisk | None) -> DiskRate:
        """Return the rates, or that there are none: then nobody tries again the whole day."""
        found = None
        if device_below(self._home) == device:
            found = measure(self._home, self._clock, self._files)
        if found is None or found.read_bytes_per_s is None:
            found = self._by_checkpoint(on_disk) or found
        return found or DiskRate(t_us=self._clock.wall_us(), how="could not be measured")

    def _by_checkpoint(self, on_disk: OnDisk | None) -> DiskRate | None:
        whole = [lsn for lsn, full in on_disk.fulls.items() if not full.wrong] if on_disk else []
        if not whole:
            return None
        folder = self._run_dir / CHECKPOINT_DIR / full_name(max(whole))
        sizes = ask(f"files of {folder}", lambda: list(_files(folder)), _DEADLINE_S)
        return measure_reading(max(sizes)[1], self._clock) if sizes else None

    def _remember(self, device: str, rate: DiskRate) -> None:
        if not self._told_damage and self.host.damaged:
            self._told_damage = True
            self.say("host.json cannot be read: what it held of this machine is measured anew")
        try:
            self.host.remember_disk(device, rate)
        except (OSError, LockHeldError):
            self._unkept = rate


def _files(folder: Path) -> Iterator[tuple[int, Path]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                yield entry.stat(follow_symlinks=False).st_size, Path(entry.path)
