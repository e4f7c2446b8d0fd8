"""The thread that tells people who do not look: judges alerts, writes them down, sends them.

    take(snapshot) ─▶ judge ─▶ `alert` records ─▶ an outbox for each channel ─▶ `notify` records

`take` only leaves the snapshot: whatever hangs here holds nobody up. An alert is written down
before it is sent, and so is what became of it: a guard that begins anew repeats nothing, and sends
what the one before could not. Between a message that was sent and the record of it lies a moment
in which a guard that is killed makes its successor send it again. Source: D5, D7.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from datetime import time, tzinfo
from typing import Any

from msgspec.structs import replace

from memwatch.actuators.notify.channels import message_of
from memwatch.actuators.notify.deliver import Outcome, deliver
from memwatch.actuators.notify.notice import Notice
from memwatch.actuators.notify.outbox import Attempt, Outbox
from memwatch.actuators.notify.quiet import in_quiet_hours
from memwatch.analytics.alerts import (
    AlertSeverity,
    AlertState,
    Cleared,
    Moment,
    Rules,
    grave,
    judge,
    restore,
    severity_named,
    severity_of,
)
from memwatch.config.settings import Channel, NotifySettings
from memwatch.domain.clock import Clock
from memwatch.domain.command import Command
from memwatch.domain.control import Alert, ChannelInfo
from memwatch.domain.errors import ConfigError
from memwatch.domain.level import Level, rank
from memwatch.domain.record import Record
from memwatch.domain.snapshot import Snapshot
from memwatch.domain.text import inert
from memwatch.runtime.guard.recorder import Recorder
from memwatch.runtime.lasting import lasting

STANDS_S = 1800.0
"""How often a standing alert is written down again: a guard's start looks back a bounded time."""
_TOLD_AGAIN_US = 3600 * 1_000_000
"""The same words are shouted once in this time; an all-clear older than it is not sent late."""
_TEST = "test"


class Notifier:
    """Alerts of one run, and the channels that tell of them. `take` may be called from any thread.

    `alerts` and `channels` are for the snapshot, `test` serves `notify.test`.
    """

    def __init__(
        self,
        settings: NotifySettings,
        run: str,
        host: str,
        recorder: Recorder,
        clock: Clock,
        *,
        zone: tzinfo | None = None,
    ) -> None:
        """`run` is the name that messages give; `zone` that of the quiet hours (ours when None)."""
        self._settings = settings
        self._run_name = run
        self._host = host
        self._recorder = recorder
        self._clock = clock
        self._zone = zone
        self._rules = _rules(settings)
        self._state = AlertState()
        self._alerts: tuple[Alert, ...] = ()
        self._stood_m_us = clock.boot_us()
        self._shouted: dict[str, int] = {}
        self._boxes = {
            name: (channel, self._outbox(name, channel))
            for name, channel in named(settings.channels)
        }
        self._bells = [channel for channel in settings.channels if channel.kind == "bell"]
        self._newest: Snapshot | None = None
        self._judging = threading.Lock()
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="memwatch-notifier", daemon=True)
        self.tell: Callable[[Record], None] = lambda _: None
        """Told each record that was written."""
        self.on_failure: Callable[[str], None] = lambda _: None
        """Told why this loop failed; it goes on."""

    # -- for the guard -----------------------------------------------------------------------

    def restore(self, records: Iterable[Record]) -> None:
        """Take over from the guard before: its `alert` and `notify` records, in their order."""
        records = list(records)
        self._state = restore(records, self._now())
        self._alerts = self._with_bells(self._state)
        for name, (channel, box) in self._boxes.items():
            tested_us = _tested_us(records, name)
            box.info = replace(box.info, tested_us=tested_us)
            for record in _outstanding(records, name):
                notice = self._of_record(record)
                late = notice.at_us < self._clock.wall_us() - _TOLD_AGAIN_US
                if self._passes(channel, notice.severity) and not (
                    notice.state == "cleared" and late
                ):
                    box.put(notice)

    def start(self) -> None:
        """Begin to judge and to send."""
        for _, box in self._boxes.values():
            box.start()
        self._thread.start()

    def stop(self) -> None:
        """End; what could not be sent is sent by the next guard of this run."""
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5.0)
        for _, box in self._boxes.values():
            box.stop()

    def take(self, snapshot: Snapshot) -> None:
        """Take the newest snapshot, to be judged soon; returns at once."""
        self._newest = snapshot
        self._wake.set()

    @property
    def alerts(self) -> tuple[Alert, ...]:
        """Alerts that stand, gravest first."""
        return self._alerts

    @property
    def channels(self) -> tuple[ChannelInfo, ...]:
        """How each channel does."""
        return tuple(box.info for _, box in self._boxes.values())

    def test(self, command: Command) -> str:
        """Send a test through every channel, whatever the hour; returns why it cannot be sent.

        What becomes of it is in `channels`: `tested_us`, or a state that failed.
        """
        del command  # it takes no arguments
        if not self._boxes:
            return "no channel is configured: name one under notify.channels in config.yaml"
        notice = self._notice(_TEST, "a test: this is how you will be told")
        for _, box in self._boxes.values():
            box.put(replace(notice, state="test"))
        return ""

    def shout(self, text: str, severity: AlertSeverity = "error") -> None:
        """Tell something that is never cleared, at most once an hour in the same words."""
        text, now_us = inert(text, 200), self._clock.boot_us()
        recent = {it: us for it, us in self._shouted.items() if now_us - us < _TOLD_AGAIN_US}
        if text not in recent:
            recent[text] = now_us
            self._send(replace(self._notice(f"told.{now_us:x}", text), severity=severity))
        self._shouted = recent

    def look(self) -> None:
        """Judge the newest snapshot, if there is one: one turn of the thread."""
        with self._judging:
            snapshot, self._newest = self._newest, None
            if snapshot is None:
                return
            now = self._now()
            state, raised, cleared = judge(self._state, snapshot, now, self._rules)
            for gone in cleared:
                self._clear(gone)
            for alert in raised:
                self._raise(alert)
            self._state, self._alerts = state, self._with_bells(state)
            self._write_down(state, now)

    # -- inside ------------------------------------------------------------------------------

    def _run(self) -> None:
        lasting("telling people", self._follow, self._stop, self.on_failure)

    def _follow(self) -> None:
        while not self._stop.is_set():
            self._wake.wait()
            self._wake.clear()
            self.look()

    def _now(self) -> Moment:
        return Moment(self._clock.wall_us(), self._clock.boot_us())

    def _raise(self, alert: Alert) -> None:
        self._record("raised", alert)
        self._send(
            replace(self._notice(alert.key, alert.text), state="raised", severity=alert.severity)
        )

    def _clear(self, gone: Cleared) -> None:
        alert = gone.alert
        more: dict[str, Any] = {"lasted_us": gone.lasted_us}
        if gone.moot:
            more["moot"] = True
        self._record("cleared", alert, **more)
        if not gone.moot:
            notice = self._notice(alert.key, alert.text)
            self._send(
                replace(notice, state="cleared", severity=alert.severity, lasted_us=gone.lasted_us)
            )

    def _write_down(self, state: AlertState, now: Moment) -> None:
        if now.m_us - self._stood_m_us < STANDS_S * 1e6:
            return
        self._stood_m_us = now.m_us
        for alert in state.alerts:
            self._record("stands", alert, raised_us=alert.raised_us)

    def _record(self, state: str, alert: Alert, **more: Any) -> None:
        members = {"key": alert.key, "state": state, "severity": alert.severity}
        record = self._recorder.append("alert", {**members, "text": alert.text, **more}, sync=True)
        self.tell(record)

    def _notice(self, key: str, text: str) -> Notice:
        return Notice(
            key=key,
            state="told",
            severity="notice",
            text=text,
            run=self._run_name,
            host=self._host,
            at_us=self._clock.wall_us(),
        )

    def _of_record(self, record: Record) -> Notice:
        raised = record.text("state") != "cleared"
        return Notice(
            key=inert(record.text("key"), 80),
            state="raised" if raised else "cleared",
            severity=severity_named(record.text("severity")),
            text=inert(record.text("text"), 200),
            run=self._run_name,
            host=self._host,
            at_us=record.t_us,
            lasted_us=None if raised else record.number("lasted_us"),
        )

    def _send(self, notice: Notice) -> None:
        for channel, box in self._boxes.values():
            if self._passes(channel, notice.severity):
                box.put(notice)

    def _passes(self, channel: Channel, severity: AlertSeverity) -> bool:
        least: Level = channel.least or self._settings.least
        return grave(severity) >= grave(severity_of(least))

    def _with_bells(self, state: AlertState) -> tuple[Alert, ...]:
        return tuple(replace(alert, bell=self._rings(alert)) for alert in state.alerts)

    def _rings(self, alert: Alert) -> bool:
        if not any(self._passes(bell, alert.severity) for bell in self._bells):
            return False
        return not self._is_quiet(alert.severity, self._clock.wall_us())

    def _is_quiet(self, severity: AlertSeverity, t_us: int) -> bool:
        quiet = self._settings.quiet
        if quiet is None or grave(severity) >= grave(severity_of(quiet.still)):
            return False
        begin, end = time.fromisoformat(quiet.from_), time.fromisoformat(quiet.until)
        return in_quiet_hours(begin, end, t_us, self._zone)

    def _outbox(self, name: str, channel: Channel) -> Outbox:
        box = Outbox(
            name,
            lambda notice: _deliver(channel, name, notice, box.stopping),
            self._clock,
            retries=self._settings.retries,
            quiet=lambda notice, t_us: self._is_quiet(notice.severity, t_us),
            log=self._log,
        )
        return box

    def _log(self, attempt: Attempt) -> None:
        members: dict[str, Any] = {
            "channel": attempt.channel,
            "key": attempt.key,
            "state": attempt.state,
            "tries": attempt.tries,
            "detail": attempt.detail,
        }
        if attempt.again_s is not None:
            members["again_s"] = attempt.again_s
        self.tell(self._recorder.append("notify", members))


def named(channels: Iterable[Channel]) -> list[tuple[str, Channel]]:
    """Give each channel that sends a name: its kind, with a number from the second one on."""
    found: list[tuple[str, Channel]] = []
    for channel in channels:
        if channel.kind == "bell":
            continue
        count = 1 + sum(other.kind == channel.kind for _, other in found)
        found.append((channel.kind if count == 1 else f"{channel.kind}-{count}", channel))
    return found


def _deliver(channel: Channel, name: str, notice: Notice, stop: threading.Event) -> Outcome:
    try:
        message = message_of(channel, notice)
    except ConfigError as error:
        return Outcome(ok=False, detail=str(error), again=False)
    return deliver(message, name, stop=stop)


def _rules(settings: NotifySettings) -> Rules:
    levels = [settings.least, *(it.least for it in settings.channels if it.least)]
    return Rules(least=min(levels, key=rank), silent_after_s=settings.silent_after_s)


def _tested_us(records: Iterable[Record], channel: str) -> int | None:
    tests = [
        record.t_us
        for record in records
        if record.kind == "notify"
        and (record.text("channel"), record.text("key"), record.text("state"))
        == (channel, _TEST, "sent")
    ]
    return max(tests, default=None)


def _outstanding(records: Iterable[Record], channel: str) -> list[Record]:
    """Return the newest `alert` record of each key that a channel did not come to an end with."""
    open_: dict[str, Record] = {}
    for record in records:
        key = record.text("key")
        if record.kind == "alert" and record.text("state") in ("raised", "cleared"):
            if record.members.get("moot") is not True:
                open_[key] = record
        elif record.kind == "notify" and record.text("channel") == channel:
            failed = record.text("state") == "failed" and record.members.get("again_s") is None
            if record.text("state") == "sent" or failed:
                open_.pop(key, None)
    return list(open_.values())
