"""A run as its guard sees it, on a clock that the test moves."""

from __future__ import annotations

from typing import Any

from memwatch.config.schema import Lights, Probe, Profile, Windows
from memwatch.domain.clock import ManualClock
from memwatch.domain.policy import Cadence
from memwatch.domain.record import Record
from memwatch.domain.sample import TreeSample
from memwatch.domain.snapshot import GuardInfo, Snapshot
from memwatch.runtime.views.facts import GuardFacts, RunFacts
from memwatch.runtime.views.ring import Ring
from memwatch.runtime.views.snapshot_builder import SnapshotBuilder
from memwatch.wal.manifest import RunManifest
from tests.builders import M0_US, T0_US, batch, profile, tiers

BOOT = "boot-now"
S = 1_000_000
MB = 1_000_000
GUARD = GuardInfo(pid=99)
MANIFEST = RunManifest(
    format=1,
    run_id="run-1",
    agent="searcher",
    pid=4242,
    boot_id=BOOT,
    host="box",
    started_us=T0_US,
    ops={"checkpoint": {}, "leak": {}},
)


class Watched:
    """A run, its ring and the builder of its snapshots."""

    def __init__(self, manifest: RunManifest = MANIFEST, **settings: Any) -> None:
        self.clock = ManualClock(T0_US, M0_US)
        self.profile: Profile = profile(
            **{
                "windows": Windows(growth_s=(10.0, 60.0, 600.0)),
                "probe": Probe(period_s=1.0),
                "lights": Lights(step_watch_s=15, step_warn_s=40),
                "checkpoints": Cadence(incremental_s=20.0),
                **settings,
            }
        )
        self.ring = Ring(self.profile, self.clock, BOOT)
        self.ring.run_boot_id = manifest.boot_id
        run = RunFacts(path="/runs/1", manifest=manifest)
        self.builder = SnapshotBuilder(run, self.profile, self.ring, self.clock)
        self.lsn = 0

    def say(self, kind: str, /, **members: Any) -> Record:
        self.lsn += 1
        wall_us, boot_us = self.clock.wall_us(), self.clock.boot_us()
        said = Record(self.lsn, wall_us, boot_us, kind, members)
        self.ring.take(batch(said))
        return said

    def begin(self, **members: Any) -> None:
        self.say("run.begin", start_id="s1", boot=BOOT, pid=4242, **members)

    def look(self, used_bytes: int, **members: Any) -> None:
        wall_us, boot_us = self.clock.wall_us(), self.clock.boot_us()
        shown = {"alive": True, "processes": 1, **members}
        self.ring.take_tree(TreeSample(t_us=wall_us, m_us=boot_us, rss_bytes=used_bytes, **shown))

    def live(self, seconds: int, used_bytes: int = 100 * MB, grow: int = 0) -> None:
        """Let seconds pass, with a look, a step and a sample each."""
        for second in range(seconds):
            self.clock.advance_s(1)
            self.say("step.end")
            self.say("sample", tiers=tiers(workspace=used_bytes // 2))
            self.look(used_bytes + grow * second)
            self.ring.feed_growth()

    def snapshot(self, *, alive: bool | None = True, **facts: Any) -> Snapshot:
        told = GuardFacts(**{"guard": GUARD, "alive": alive, **facts})
        return self.builder.build(1, told)

    def light(self, name: str, **facts: Any) -> tuple[str, str]:
        found = next(light for light in self.snapshot(**facts).lights if light.name == name)
        return found.word, found.meaning
