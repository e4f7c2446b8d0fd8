"""An agent that does everything the library offers, at random, and writes down what it was told.

Before each record it notes the hash of the state as of the record before, and after each finished
act that of the newest: what a recovery must arrive at, by the agent's own reckoning. A second
thread works on the tiers meanwhile.
"""

from __future__ import annotations

import hashlib
import os
import random
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from memwatch.agent import Cadence, Keep, Run, RunOptions, Source
from memwatch.agent.files import Files
from memwatch.agent.journal import Journal
from memwatch.agent.log import Durability
from memwatch.agent.memory.entry import How
from memwatch.agent.recovery.workspace import compare_files

KEEP = {
    "workspace": Keep(count=12, intermediate=True, importance=0.3),
    "recent": Keep(experiments=2, demote_to="history", importance=0.7),
    "verified": Keep(delete=False, importance=1.0),
    "history": Keep(experiments=4),
}
CADENCE = Cadence(incremental_experiments=1, full_experiments=3)
HOWS: tuple[How | None, ...] = (None, "oldest", "least_accessed", "compress", "reclaim")
LIMIT_BYTES = 200_000
MAXIMUM_EXPERIMENTS = 7


class Finding(msgspec.Struct):
    """A value of a type of the agent's own."""

    title: str
    body: bytes
    score: float


def options(workspace: Path, durability: Durability) -> RunOptions:
    """Return what each start is opened with."""
    return RunOptions(
        agent="struggler",
        durability=durability,
        keep=KEEP,
        cadence=CADENCE,
        memory_limit_bytes=LIMIT_BYTES,
        types=(Finding,),
        builders={"repeat": repeat},
        sample_s=0.05,
        workspace=workspace,
    )


def repeat(text: str, times: int) -> str:
    """Make a value again."""
    return text * times


def state_hash(tiers: Any, journal: Journal) -> str:
    """Return two hashes over a state, live or recovered: of its entries, of its files and calls."""
    files = {path: about.get("hash") for path, about in journal.files().items()}
    told = [journal.experiments, journal.open, files, journal.calls()]
    whole = hashlib.sha256()
    for name in sorted(tiers):
        for entry in sorted(_entries(tiers[name]), key=lambda entry: entry.key):
            whole.update(f"{name}\0{entry.key}\0{entry.lsn}\0{entry.digest}\n".encode())
    outside = hashlib.sha256(msgspec.json.encode(told, order="sorted"))
    return f"{whole.hexdigest()[:32]}/{outside.hexdigest()[:32]}"


def _entries(tier: Any) -> list[Any]:
    return list(tier.values()) if isinstance(tier, dict) else tier.entries()


class Witness:
    """Notes `lsn hash durable_lsn` lines in a file that survives the process."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(self, run: Run) -> None:
        """Note the state as of now, and what a power loss must not take."""
        durable, state = run.log.durable_lsn, state_hash(run.tiers, run.journal)
        os.write(self._fd, f"{run.log.last_lsn} {state} {durable}\n".encode())


class Agent:
    """Works in `run` below a directory until it is killed or has done its experiments."""

    def __init__(
        self, disk: Path, seed: int, files: Files, witness: Witness, *, power_was_lost: bool
    ) -> None:
        self._random = random.Random(seed)
        self._witness = witness
        opened = options(disk / "workspace", self._random.choice(("always", "batch", "batch")))
        self.run = Run.open(disk / "run", opened, files=files)
        found = compare_files(disk / "workspace", self.run.journal)
        # A power loss may take a record whose file is on the disk: it counts as changed then.
        fine = ("same", "changed") if power_was_lost else ("same",)
        if any(file.state not in fine for file in found):
            raise AssertionError(f"files are not what the log says: {found}")
        self._watch_log()
        self._over = threading.Event()
        self._acts: list[Callable[[], None]] = [
            self._put, self._put, self._put_large, self._update, self._grow, self._grow_large,
            self._delete, self._purge, self._build, self._file, self._call, self._note,
            self._checkpoint,
        ]  # fmt: skip

    def work(self) -> None:
        """Do experiments with random acts; every safe point may take a checkpoint."""
        beside = threading.Thread(target=self._work_beside, daemon=True)
        beside.start()
        for _ in range(MAXIMUM_EXPERIMENTS):
            phase = self._random.choice(("exploration", "accumulation", "verification"))
            with self.run.experiment("struggle", phase):
                for _ in range(self._random.randint(3, 12)):
                    with suppress(KeyError):
                        self._random.choice(self._acts)()
                    self._tell()
                    self.run.safe_point()
            self._tell()
        self._over.set()
        beside.join()
        self.run.close()

    def _work_beside(self) -> None:
        acts = [self._put, self._put_large, self._update, self._grow, self._delete, self._purge]
        while not self._over.wait(self._random.random() / 100):
            with suppress(KeyError):  # the other thread deleted it
                self._random.choice(acts)()
            self._tell()

    def _watch_log(self) -> None:
        append, tiers = self.run.log.append, self.run.tiers

        def watched(kind: str, members: dict[str, Any], *rest: Any, **named: Any) -> int:
            with tiers.lock:
                self._witness.note(self.run)
                return append(kind, members, *rest, **named)

        self.run.log.append = watched  # type: ignore[method-assign]  # the witness stands between

    def _tell(self) -> None:
        with self.run.tiers.lock:
            self._witness.note(self.run)

    def _tier(self) -> Any:
        return self.run.tiers[self._random.choice(tuple(KEEP))]

    def _key(self) -> str:
        return f"key/{self._random.randint(0, 9)}"

    def _text(self, length: int) -> str:
        return f"{self._random.getrandbits(64):x}" * (length // 16 + 1)

    def _put(self) -> None:
        value = {"n": self._random.random(), "of": [self._text(40), None, {"deep": True}]}
        self._tier().put(self._key(), value, tokens=self._random.choice((None, 7)))

    def _put_large(self) -> None:
        body = self._random.randbytes(self._random.randint(4_000, 20_000))
        self._tier().put(self._key(), Finding(self._text(20), body, self._random.random()))

    def _update(self) -> None:
        tier = self._tier()
        for entry in tier.entries()[:3]:
            value = tier.get(entry.key) if entry.key in tier else None  # a put may end another
            if isinstance(value, dict):
                tier.put(entry.key, {**value, "n": self._random.random()})

    def _grow(self) -> None:
        tier = self._tier()
        history = list(tier.get("history")) if "history" in tier else []
        history.append({"call": self._text(30)})
        tier.put("history", history)

    def _grow_large(self) -> None:
        tier = self._tier()
        text = tier.get("text") if "text" in tier else self._text(6_000)
        tier.put("text", text + self._text(100))

    def _delete(self) -> None:
        with suppress(KeyError):
            self._tier().delete(self._key())

    def _purge(self) -> None:
        self.run.tiers.purge(
            tier=self._random.choice((None, *KEEP)),
            how=self._random.choice(HOWS),
            target_bytes=self._random.choice((None, 10_000)),
            cause="agent",
        )

    def _build(self) -> None:
        source = Source("repeat", {"text": self._text(16), "times": self._random.randint(1, 900)})
        self._tier().put(
            f"built/{self._random.randint(0, 2)}", repeat(**source.args), source=source
        )

    def _file(self) -> None:
        self.run.write_file(f"out/{self._random.randint(0, 3)}.txt", self._text(100).encode())

    def _call(self) -> None:
        request = {"prompt": self._random.randint(0, 3)}
        self.run.call("model", request, lambda: {"answer": self._text(50)}, paid=False)

    def _checkpoint(self) -> None:
        self.run.checkpoints.take("incremental")

    def _note(self) -> None:
        self.run.note(self._text(20))
