"""The sign of life that the guard sends out, so that others notice when it does not live.

It says that snapshots are made, not just that the process is there: without a new one for
`STALLED_S` no sign goes out. Only its failure and its return are written down. Source: D7.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from memwatch.actuators.notify.channels import http_request
from memwatch.actuators.notify.deliver import Outcome, deliver
from memwatch.config.settings import Heartbeat as HeartbeatSettings
from memwatch.domain.clock import Clock
from memwatch.domain.control import ChannelInfo
from memwatch.domain.errors import ConfigError
from memwatch.domain.record import Record
from memwatch.domain.snapshot import Snapshot
from memwatch.runtime.guard.recorder import Recorder
from memwatch.runtime.lasting import lasting

STALLED_S = 30.0
NAME = "heartbeat"


class Heartbeat:
    """Calls an address every so often while the guard works. `info` is for the snapshot."""

    def __init__(self, settings: HeartbeatSettings, recorder: Recorder, clock: Clock) -> None:
        self.info = ChannelInfo(name=NAME)
        """How it does."""
        self._settings = settings
        self._recorder = recorder
        self._clock = clock
        self._taken_us = clock.boot_us()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="memwatch-heartbeat", daemon=True)
        self.tell: Callable[[Record], None] = lambda _: None
        """Told each record that was written."""
        self.on_failure: Callable[[str], None] = lambda _: None
        """Told why this loop failed; it goes on."""

    def start(self) -> None:
        """Begin; the first sign goes out at once."""
        self._thread.start()

    def stop(self) -> None:
        """End; a call that hangs holds nobody up."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=2.0)

    def take(self, _: Snapshot) -> None:
        """Note that a snapshot was made; returns at once."""
        self._taken_us = self._clock.boot_us()

    def beat(self) -> None:
        """Send one sign, unless the guard stalled: one turn of the thread."""
        if self._clock.boot_us() - self._taken_us > STALLED_S * 1e6:
            outcome = Outcome(ok=False, detail="no sign is sent: the guard makes no snapshots")
        else:
            outcome = self._call()
        before = self.info.state
        self.info = replace(
            self.info,
            state="sent" if outcome.ok else "failed",
            at_us=self._clock.wall_us(),
            detail=outcome.detail,
        )
        if self.info.state != before and not (outcome.ok and before == ""):
            self._write_down(outcome)

    def _run(self) -> None:
        lasting("the sign of life", self._follow, self._stop, self.on_failure)

    def _follow(self) -> None:
        while not self._stop.is_set():
            self.beat()
            self._stop.wait(self._settings.every_s)

    def _call(self) -> Outcome:
        try:
            request = http_request(self._settings.url, None, {})
        except ConfigError as error:
            return Outcome(ok=False, detail=str(error), again=False)
        return deliver(request, NAME)

    def _write_down(self, outcome: Outcome) -> None:
        members: dict[str, Any] = {
            "channel": NAME,
            "key": NAME,
            "state": "sent" if outcome.ok else "failed",
            "tries": 1,
            "detail": outcome.detail,
        }
        self.tell(self._recorder.append("notify", members))
