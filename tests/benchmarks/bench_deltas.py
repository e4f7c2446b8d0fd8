"""Deltas (R6): bytes that each change costs in the log, on real tool calls and on our own engine.

The sessions of real agents are replayed through the real store, as an agent would that keeps its
state there: an entry for each tool call (the last 200 stay), and for each thread a list that grows
by one item a call and is put again each time. A turn, from one word of a person to the next, is
an experiment. Two ways to write the list are measured: its items name the call, whose entry holds
input and output; or they hold both once more, as a transcript does.

A record is one put, update or delete with all its members. A value over 4 KB goes to a blob, once;
what blobs take on disk is a row of its own. The reference of a mean is what a copy of each value
in place of differences would have taken.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec
import yaml
from msgspec import Struct

from memwatch.agent.context import Context
from memwatch.agent.files import SYSTEM_FILES
from memwatch.agent.log import LogWriter
from memwatch.agent.memory.blobs import BlobStore
from memwatch.agent.memory.tiers import Tiers
from memwatch.agent.memory.values import Types
from memwatch.config.locations import profile_dirs
from memwatch.domain.clock import SystemClock
from memwatch.domain.policy import Keep
from memwatch.wal import codec
from memwatch.wal.segment import BLOB_DIR, CHECKPOINT_DIR, WAL_DIR, delta_range
from tests.benchmarks.table import Row
from tests.benchmarks.transcripts import Call, Event, sessions

CHECKOUT = Path(__file__).parents[2]
CALLS_KEPT = 200
EXPERIMENTS = 60
CHANGES = ("put", "update", "delete")
_encode = msgspec.json.Encoder().encode


class Cost(Struct):
    """What the changes of some runs cost."""

    records: list[int] = []
    """Bytes of each, line feed included."""
    experiments: list[int] = []
    """Bytes of all records of each experiment that changed anything."""
    copies: list[int] = []
    """Bytes of each value that was put, where known."""
    blob_bytes: int = 0
    """On disk, all blobs."""
    kinds: Counter[str] = msgspec.field(default_factory=Counter)

    def read(self, run: Path) -> None:
        """Add what the log and the blobs of a run hold."""
        totals: Counter[int | None] = Counter()
        for path in sorted((run / WAL_DIR).iterdir()):
            for line in path.read_bytes().splitlines():
                record = codec.decode(line)
                if record.kind in CHANGES:
                    self.records.append(len(line) + 1)
                    totals[record.members.get("x")] += len(line) + 1
                    self.kinds[how(record.kind, record.members)] += 1
        self.experiments += totals.values()
        if (run / BLOB_DIR).exists():
            self.blob_bytes += sum(path.stat().st_size for path in (run / BLOB_DIR).iterdir())


def how(kind: str, members: dict[str, object]) -> str:
    """Return how a record says the value."""
    says = [name for name in ("value", "diff", "blob", "source") if name in members]
    return says[0] if says else kind


def run() -> list[Row]:
    """Measure; the rows of real sessions are left out, in a sentence, where there are none."""
    found = sessions(CHECKOUT)
    rows: list[Row] = []
    if found:
        for whole, name in ((False, "named in the list"), (True, "whole in the list")):
            cost = Cost()
            for events in found.values():
                with tempfile.TemporaryDirectory() as folder:
                    cost.copies += replay(events, Path(folder), whole=whole)
                    cost.read(Path(folder))
            rows += report(f"{len(found)} real sessions, calls {name}", cost)
    else:
        print("no corpus beside the checkout: real sessions are not replayed", file=sys.stderr)
    return rows + _demo()


def replay(events: Iterable[Event], folder: Path, *, whole: bool) -> list[int]:
    """Keep a session in tiers; returns the bytes of the values that were put."""
    clock = SystemClock()
    copies: list[int] = []
    with LogWriter(folder / WAL_DIR, durability="os", clock=clock) as log:
        context = Context(folder, "bench", log, clock, SYSTEM_FILES, experiment=1)
        blobs = BlobStore(folder / BLOB_DIR, SYSTEM_FILES)
        keep = {"workspace": Keep(count=CALLS_KEPT), "threads": Keep()}
        tiers = Tiers(keep, context, types=Types(), blobs=blobs)
        threads: dict[str, list[object]] = {}
        for event in events:
            if not isinstance(event, Call):
                tiers.experiment_ended()
                context.experiment = (context.experiment or 0) + 1
                continue
            call = {"tool": event.tool, "input": event.input, "output": event.output}
            item = call if whole else {"tool": event.tool, "call": event.id}
            history = threads.setdefault(event.thread, [])
            history.append(item)
            tiers["workspace"].put(f"call/{event.id}", call)
            tiers["threads"].put(event.thread, history)
            copies += (len(_encode(call)), len(_encode(history)))
    return copies


def _demo() -> list[Row]:
    cost, deltas = Cost(), list[int]()
    with tempfile.TemporaryDirectory() as folder:
        profile, run = Path(folder) / "bench.yaml", Path(folder) / "run"
        profile.write_text(_profile_that_drops_nothing())
        command = [sys.executable, "-m", "memwatch.demo", str(run), "--seed", "1", "--no-rest"]
        command += ["--experiments", str(EXPERIMENTS), "--profile", str(profile)]
        subprocess.run(command, check=True, cwd=CHECKOUT)
        cost.read(run)
        for path in sorted((run / CHECKPOINT_DIR).iterdir()):
            if delta_range(path.name) is not None:
                deltas.append(path.stat().st_size)
    rows = report(f"demo engine, {EXPERIMENTS} experiments", cost)
    what = f"  {len(deltas)} incremental checkpoints, an experiment, mean"
    return [*rows, Row(what, sum(deltas) / EXPERIMENTS, "bytes", None, "tens of KB", "")]


def _profile_that_drops_nothing() -> str:
    """Return the demo's profile with no full checkpoint but the first, after which logs go."""
    [path] = [path for folder in profile_dirs() for path in folder.glob("demo.yaml")][:1]
    profile = yaml.safe_load(path.read_text())
    never = {"full_experiments": 100_000, "full_s": 100_000, "chain_bytes": 10**12}
    profile["checkpoints"] |= never
    return yaml.safe_dump(profile)


def report(name: str, cost: Cost) -> list[Row]:
    """Return the distribution as rows."""
    kinds = ", ".join(f"{count} {kind}" for kind, count in cost.kinds.most_common())
    print(f"{name}: {len(cost.records)} records ({kinds})", file=sys.stderr)
    mean, each = _mean(cost.records), "tens of KB"
    blob_mean = cost.blob_bytes / len(cost.experiments)
    copies = _mean(cost.copies) if cost.copies else None
    return [
        Row(f"{name}: bytes a record, mean", mean, "bytes", copies, "< 1 KB", ""),
        *(
            Row(f"  {word}", _quantile(cost.records, share), "bytes", None, "", "")
            for word, share in (("p50", 0.5), ("p95", 0.95), ("max", 1.0))
        ),
        Row("  an experiment, mean", _mean(cost.experiments), "bytes", None, each, ""),
        Row("  an experiment, p95", _quantile(cost.experiments, 0.95), "bytes", None, each, ""),
        Row("  and blobs on disk, an experiment, mean", blob_mean, "bytes", None, "", ""),
    ]


def _mean(sizes: list[int]) -> float:
    return sum(sizes) / len(sizes)


def _quantile(sizes: list[int], share: float) -> int:
    ranked = sorted(sizes)
    return ranked[min(int(len(ranked) * share), len(ranked) - 1)]
