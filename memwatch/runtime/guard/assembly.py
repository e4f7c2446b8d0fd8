"""All parts of one guard, made and joined; nothing of it runs yet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from memwatch.actuators.actuator import Reach
from memwatch.actuators.native import NativeActuator
from memwatch.actuators.none import NoActuator
from memwatch.config.load import named_profile
from memwatch.config.locations import home as memwatch_home
from memwatch.config.schema import Profile
from memwatch.config.settings import Settings, load_config
from memwatch.domain.clock import Clock
from memwatch.domain.command import Command
from memwatch.domain.control import NotifyInfo
from memwatch.domain.errors import ConfigError
from memwatch.domain.record import Record
from memwatch.domain.text import inert
from memwatch.host.process import boot_id
from memwatch.ingest.open_run import OpenedRun
from memwatch.runtime.guard.authority import Authority
from memwatch.runtime.guard.budget import SelfLimits
from memwatch.runtime.guard.clerk import Clerk
from memwatch.runtime.guard.controls import Controls
from memwatch.runtime.guard.disk_rates import DiskRates
from memwatch.runtime.guard.efficacy_log import EfficacyLog
from memwatch.runtime.guard.estimates import Estimates
from memwatch.runtime.guard.heartbeat import Heartbeat
from memwatch.runtime.guard.history import History
from memwatch.runtime.guard.ingest_loop import IngestLoop
from memwatch.runtime.guard.leaving import Leaving
from memwatch.runtime.guard.ledger import Ledger
from memwatch.runtime.guard.notifier import Notifier
from memwatch.runtime.guard.own_log import OwnLog
from memwatch.runtime.guard.policy_keeper import PolicyKeeper
from memwatch.runtime.guard.portrait import Portrait
from memwatch.runtime.guard.probe_loop import ProbeLoop
from memwatch.runtime.guard.recollection import Recollection
from memwatch.runtime.guard.recorder import Recorder
from memwatch.runtime.guard.reserve import DiskReserve
from memwatch.runtime.guard.store_watch import StoreWatch
from memwatch.runtime.guard.upkeep import Upkeep
from memwatch.runtime.guard.warden import Warden
from memwatch.runtime.guard.wishes import Wishes
from memwatch.runtime.runs.host_file import HostFile
from memwatch.runtime.runs.meta_file import MetaFile
from memwatch.runtime.views.facts import RunFacts
from memwatch.runtime.views.ring import Ring
from memwatch.runtime.views.snapshot_builder import SnapshotBuilder

Teller = Leaving | Warden | Upkeep | Notifier | Estimates | EfficacyLog
Loop = Clerk | IngestLoop | StoreWatch | ProbeLoop | Warden | Notifier | Heartbeat


class Parts:
    """What a guard consists of. The order here is that in which one needs the other."""

    def __init__(
        self,
        opened: OpenedRun,
        run_key: str,
        home: Path,
        clock: Clock,
        news: Callable[[], None],
        policy: Path | None,
    ) -> None:
        """Make them; `home` is what the guard keeps of the run.

        `news` is called when something came in that a snapshot shows; `policy` is a file that goes
        before all other layers.
        """
        manifest, path = opened.manifest, opened.path
        self.trouble: list[str] = []
        self.settings_error = ""
        """What is wrong with the settings, for people."""
        self.profile = self._profile(manifest.profile)
        self.settings = self._settings()
        self.opened, foreign = opened, opened.foreign
        self.run = _facts(opened)
        self.ring = Ring(self.profile, clock, boot_id())
        self.reserve = DiskReserve(home)
        self.recorder = Recorder(home / "wal", clock)
        self.leaving = Leaving(self.recorder, clock)
        self.history = History(home / "history.duckdb", clock)
        own = OwnLog(home / "wal", self.history.historian)
        self.ingest: IngestLoop | StoreWatch = (
            IngestLoop(path, own, self.ring, self.history.historian, news)
            if foreign is None
            else StoreWatch(path, foreign, own, self.ring, self.recorder, news)
        )
        self.probe = ProbeLoop(path, home, self.profile, self.ring, self.recorder, clock)
        self.rates = DiskRates(path, memwatch_home(), clock)
        self.actuator: Reach = (
            NativeActuator(path, manifest.run_id, manifest.ops, clock)
            if foreign is None
            else NoActuator(foreign.no_commands)
        )
        self.ledger = Ledger(
            self.actuator,
            self.recorder,
            clock,
            self.told,
            names=(manifest.run_id, path.name),
        )
        self.policy = PolicyKeeper(self.profile, path, home, policy, opened.ops)
        self.authority = Authority(memwatch_home(), clock)
        self.wishes = Wishes(clock)
        controls = Controls(
            self.actuator, self.authority, self.ledger, self.policy, self.probe, self.wishes
        )
        self.portrait = Portrait(self.profile, self.run, self.ring, clock, controls)
        self.warden = Warden(self.portrait.facts, self.recorder, clock, boot_id())
        limits = SelfLimits(self.settings.own, self.history.historian, self.ring)
        self.upkeep = Upkeep(self.recorder, clock, controls, self.reserve, limits)
        self.estimates = Estimates(
            home, HostFile(memwatch_home()), manifest.agent, self.ring, self.recorder, clock
        )
        self.meta = MetaFile(home, run_key, clock)
        self.clerk = Clerk(self.ring, self.ledger, self.meta)
        self.builder = SnapshotBuilder(self.run, self.profile, self.ring, clock)
        self.efficacy = EfficacyLog(self.builder.interventions, self.recorder, clock)
        notify, name = self.settings.notify, inert(path.name, 60)
        self.notifier = Notifier(notify, name, manifest.host, self.recorder, clock)
        beat = notify.heartbeat
        self.heartbeat = Heartbeat(beat, self.recorder, clock) if beat else None
        self._join(news)

    @property
    def loops(self) -> tuple[Loop, ...]:
        """Parts that have a thread and say why it failed."""
        found = (self.ingest, self.probe, self.clerk, self.warden, self.notifier)
        return (*found, self.heartbeat) if self.heartbeat else found

    @property
    def notify(self) -> NotifyInfo:
        """How people are told, and how that does."""
        beat = self.heartbeat.info if self.heartbeat else None
        channels, error = self.notifier.channels, self.settings_error
        return NotifyInfo(channels=channels, heartbeat=beat, error=error)

    def told(self, record: Record) -> None:
        """Take a record that the guard wrote itself."""
        self.ring.take_guard(record)
        self.leaving.take_guard(record)

    def follow(self, opened: OpenedRun) -> None:
        """Follow an agent that began again under a new process."""
        self.opened, self.run = opened, _facts(opened)
        self.builder.run = self.portrait.run.run = self.run
        self.actuator.ops = opened.manifest.ops
        self.policy.follow_agent(opened.ops)

    def restore(self, known: Recollection) -> list[str]:
        """Go on where the guard before this one ended; returns what is to be said of that."""
        self.ledger.restore(known.requests)
        self.authority.restore(known.modes)
        self.leaving.restore(known.told)
        self.estimates.restore(known.estimates)
        self.efficacy.restore(known.efficacy)
        self.notifier.restore(known.told)
        if isinstance(self.ingest, StoreWatch):
            self.ingest.restore(known.told)
        trouble = [*self.trouble, self.warden.restore(known.state, known.told)]
        self.actuator.claim()
        self.actuator.claim_epoch(known.epoch)
        return [text for text in trouble if text]

    @property
    def _tellers(self) -> tuple[Teller, ...]:
        own = (self.leaving, self.warden, self.upkeep, self.notifier)
        return (*own, self.estimates, self.efficacy)

    def _join(self, news: Callable[[], None]) -> None:
        def judged() -> None:
            self.warden.hear()
            news()

        if isinstance(self.ingest, StoreWatch):
            self.ingest.tell = self.told
            self.ingest.known_until_us = self.meta.seen_us
        self.clerk.on_news = self.probe.on_news = judged
        self.warden.on_news = news
        self.upkeep.on_news = self.warden.hear
        self.recorder.on_gap = self.told
        self.recorder.make_room = self.reserve.give_up
        self.ingest.on_batch = self.leaving.take_batch
        self.leaving.whole = lambda: self.ingest.backfill_share is None
        self.ingest.on_caught_up = lambda: self.history.refill_growth(self.ring)
        self.probe.wanted_s = lambda: self.warden.period_s
        self.actuator.renew_engine_while(lambda: self.authority.acts)
        self.warden.withdraw = self.ledger.withdraw
        self.warden.shout = self.notifier.shout
        self.upkeep.level = lambda: self.warden.level
        self.wishes.waiting_plan = lambda: self.warden.waiting_plan
        self.clerk.upkeep = self._keep_up
        self.estimates.rate = lambda: self.rates.rate
        self.rates.level = lambda: self.warden.level
        self.rates.pressure = lambda: self.probe.pressure
        self.rates.reserve_bytes = lambda: self.policy.book.base.disk_reserve_bytes
        self.rates.say = self.upkeep.note
        self.probe.on_slow_look = lambda: self.rates.look(self.ring.on_disk)
        self.portrait.known = self.estimates.known
        self.clerk.alive = lambda: self.probe.alive is not False
        for part in self._tellers:
            part.tell = self.told
        if self.heartbeat:
            self.heartbeat.tell = self.told
        serve = self.ledger.serve
        serve("engine.mode", self._set_mode)
        serve("engine.approve", self.wishes.approve)
        serve("engine.decline", self.wishes.decline)
        serve("engine.reset", self.wishes.reset)
        serve("policy.reload", self.upkeep.reload_policy)
        serve("notify.test", self.notifier.test)

    def _set_mode(self, command: Command) -> str:
        """Carry out `engine.mode`; returns why not, or nothing."""
        return self.actuator.no_commands or self.upkeep.set_mode(command)

    def _keep_up(self) -> None:
        self.upkeep.look()
        self.estimates.look(self.clerk.newest)
        self.efficacy.look()

    def _profile(self, name: str) -> Profile:
        """Return the profile that a run names, or the native one."""
        try:
            return named_profile(name)
        except ConfigError as error:
            self.trouble.append(f"{error}; the native profile is used")
            return named_profile("native")

    def _settings(self) -> Settings:
        try:
            return load_config()
        except ConfigError as error:
            self.settings_error = inert(str(error), 300)
            self.trouble.append(f"{error}; nobody is notified, the usual settings are used")
            return Settings()


def _facts(opened: OpenedRun) -> RunFacts:
    return RunFacts(path=str(opened.path), manifest=opened.manifest, source=opened.source)
