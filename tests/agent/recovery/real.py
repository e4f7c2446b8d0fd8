"""A run written by the agent's own library, with the state that each record left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from memwatch.agent import Keep, Run, RunOptions
from tests.agent.recovery.building import TEXT, Kept

OPTIONS = RunOptions(
    agent="tester",
    keep={name: Keep() for name in ("workspace", "recent", "verified")},
    builders={"squares": lambda n: [i * i for i in range(n)]},
    durability="os",
)


class RealRun:
    """Two starts of an agent: every kind of value and change, two chains, and a tail."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.truth: dict[int, Kept] = {0: {}}
        with Run.open(path, OPTIONS) as run:
            self._work(run, 1)
            self._take(run, "full")
            self._work(run, 2)
            self._take(run, "incremental")
            self._work(run, 3)
            self._take(run, "full")
            self._work(run, 4)
            self._take(run, "incremental")
            self._work(run, 5)
        with Run.open(path, OPTIONS) as run:
            self._keep(run)
            self._work(run, 6)
            self._take(run, "incremental")
            self._work(run, 7)
            newest = run.log.segment
        self.segment = path / "wal" / f"{newest:020d}.wal"
        self.lsn = self._fill_gaps(run.log.last_lsn)

    def _work(self, run: Run, number: int) -> None:
        tiers = run.tiers
        with run.experiment(f"part {number}", phase="exploration"):
            self._keep(run)
            for key in range(4):
                self._put(run, "recent", f"call/{key}", {"n": number, "key": key, "text": TEXT})
            self._put(run, "verified", f"proof/{number}", {"n": number, "big": TEXT * 10})
            self._put(run, "verified", "notes", {"all": [TEXT * 9, number]})
            self._put(run, "workspace", "raw", bytes(range(number)))
            self._put(run, "workspace", f"only/{number}", None)
            tiers["workspace"].build(f"made/{number}", "squares", n=number)
            self._keep(run)
            if number > 1:
                tiers["workspace"].delete(f"only/{number - 1}")
                self._keep(run)
            if number in (3, 5):
                self._take(run, "experiment")
            run.call("search", {"q": number}, lambda: {"found": "x" * 5_000})
        tiers.purge(tier="verified", how="reclaim", cause="operator")
        self._keep(run)

    def _put(self, run: Run, tier: str, key: str, value: Any) -> None:
        run.tiers[tier].put(key, value)
        self._keep(run)

    def _take(self, run: Run, kind: Any) -> None:
        assert run.checkpoints.take(kind).committed
        self._keep(run)

    def _keep(self, run: Run) -> None:
        kept: Kept = {}
        for name, tier in run.tiers.items():
            kept[name] = {
                entry.key: (entry.lsn, entry.source or tier.peek(entry.key))
                for entry in tier.entries()
            }
        self.truth[run.log.last_lsn] = kept

    def _fill_gaps(self, last_lsn: int) -> int:
        """Give each record that changed nothing the state before it."""
        for lsn in range(1, last_lsn + 1):
            self.truth.setdefault(lsn, self.truth[lsn - 1])
        return last_lsn
