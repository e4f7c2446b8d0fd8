"""Checkpoints, failures, prunes, restarts and damage in any order: nothing that was recoverable
before a step of ours ceases to be.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from memwatch.agent.checkpoints.checkpointer import Kind
from memwatch.agent.recovery.recover import recover
from memwatch.domain.errors import LogError
from tests.agent.checkpoints.bench import Bench, flip_a_bit

KEYS = st.sampled_from(["a", "b", "c"])
KINDS = st.sampled_from(["full", "incremental", "experiment"])
BASE = [{"n": n, "text": "x" * 40} for n in range(120)]


class CheckpointMachine(RuleBasedStateMachine):
    """An agent at work on a disk that fails now and then, and hands that do harm."""

    @initialize()
    def begin(self) -> None:
        self.home = Path(tempfile.mkdtemp())
        self.bench = Bench(self.home / "run")
        self.number = 0
        self.whole = True
        """A recovery arrives at what is in memory."""
        self.reached = 0
        self.spare = False
        """It still would if the newest full checkpoint were gone."""

    def teardown(self) -> None:
        if hasattr(self, "bench"):
            self.bench.close()
            shutil.rmtree(self.home)

    def look(self) -> None:
        """Never worse than before, and never silently wrong."""
        if self.whole:
            self.bench.check()
        _, report = self.bench.recover()
        assert report.last_lsn >= self.reached
        self.reached = report.last_lsn
        if not self.whole and not report.lossy:
            self.bench.check()
            self.whole = True
        spare = self.has_spare()
        assert spare or not self.spare, "the older chain went"
        self.spare = spare

    def has_spare(self) -> bool:
        """Recover from a copy without the newest full checkpoint."""
        fulls = [name for name in self.bench.names() if name.startswith("full")]
        if not fulls:
            return False
        scratch = self.home / "scratch"
        shutil.copytree(self.bench.path, scratch)
        shutil.rmtree(scratch / "checkpoints" / fulls[-1])
        try:
            state, report = recover(scratch)
        finally:
            shutil.rmtree(scratch)
        return not report.lossy and self.bench.holds(state)

    # The agent.

    @rule(key=KEYS, size=st.sampled_from([3, 120]))
    def put(self, key: str, size: int) -> None:
        self.number += 1
        rows = [dict(row) for row in BASE[:size]]
        rows[self.number % size]["n"] = -self.number
        self.bench.tiers["recent"].put(key, rows)
        self.look()

    @rule(key=KEYS)
    def change_in_place(self, key: str) -> None:
        tier = self.bench.tiers["recent"]
        if key in tier:
            tier.get(key).append(self.number)
            tier.put(key, tier.get(key))
        self.look()

    @rule(key=KEYS)
    def delete(self, key: str) -> None:
        if key in self.bench.tiers["recent"]:
            self.bench.tiers["recent"].delete(key)
        self.look()

    @rule(key=KEYS)
    def purge(self, key: str) -> None:
        self.bench.tiers.purge(keys=[key], how="least_accessed", cause="operator")
        self.look()

    @rule(kind=KINDS)
    def take(self, kind: Kind) -> None:
        outcome = self.bench.checkpoints.take(kind)
        assert outcome.committed, outcome.reason
        if outcome.kind == "full":
            self.whole = True
        self.look()

    @rule(kind=KINDS, failing=st.sets(st.integers(0, 30), min_size=1), short=st.booleans())
    def fail(self, kind: Kind, failing: set[int], short: bool) -> None:
        self.bench.files.short = short
        began = len(self.bench.files.calls)
        # A log that can neither write nor cut back what it wrote leaves a hole: not our matter.
        self.bench.files.fail = lambda n, name: n - began in failing and name != "truncate"
        outcome = self.bench.checkpoints.take(kind)
        self.bench.files.heal()
        with suppress(LogError):  # a sync that failed is told with the next record
            self.bench.context.record("note", {})
        self.whole = self.whole or (outcome.committed and outcome.kind == "full")
        self.look()

    @rule(torn=st.binary(max_size=20).filter(lambda torn: b"\n" not in torn), draft=st.booleans())
    def restart(self, torn: bytes, draft: bool) -> None:
        path = self.bench.path
        self.bench.close()
        with max((path / "wal").iterdir()).open("ab") as newest:
            newest.write(torn)
        if draft and self.bench.folder.exists():
            (self.bench.folder / ".full-00000000000000000001.draft").mkdir(exist_ok=True)
        self.bench = Bench(path)
        if self.bench.checkpoints.due() == "full":  # as after a recovery with losses
            outcome = self.bench.checkpoints.take("full")
            assert outcome.committed, outcome.reason
        self.whole = True
        self.look()

    # Harm.

    @precondition(lambda self: self.bench.names())
    @rule(which=st.integers(0, 99), place=st.floats(0, 1), how=st.sampled_from(["flip", "remove"]))
    def damage(self, which: int, place: float, how: str) -> None:
        files = sorted(p for p in self.bench.folder.rglob("*") if p.is_file())
        if not files:
            return
        victim = files[which % len(files)]
        if how == "flip":
            flip_a_bit(victim, place)
        else:
            victim.unlink()
        self.whole = self.spare = False
        self.reached = 0
        self.look()


TestCheckpointMachine = CheckpointMachine.TestCase
TestCheckpointMachine.settings = settings(
    max_examples=40, stateful_step_count=25, suppress_health_check=list(HealthCheck)
)
