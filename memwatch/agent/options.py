"""What a run is opened with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from threading import TIMEOUT_MAX
from typing import Any, get_args

import msgspec

from memwatch.agent.control.operation import Operation
from memwatch.agent.log import Durability
from memwatch.agent.memory.entry import Entry
from memwatch.domain.errors import UsageError
from memwatch.domain.policy import KEEP, Cadence, Keep

SHARE_CAP = 0.30
"""No tier holds more than this share of the memory limit (R2)."""


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a run is opened with; only the agent's name must be given."""

    agent: str
    """Name of the program, for people."""
    profile: str = "native"
    """Of the dashboard's settings for agents of this kind."""
    memory_limit_bytes: int | None = None
    """What the agent's process tree may use; None leaves it to the dashboard."""
    keep: Mapping[str, Keep] = msgspec.field(default_factory=lambda: KEEP)
    """Tiers by name, and what each keeps."""
    phases: Mapping[str, Mapping[str, Keep]] = msgspec.field(default_factory=dict)
    """What tiers keep in a phase (its name first) in place of that (R10)."""
    share_cap: float = SHARE_CAP
    cadence: Cadence = Cadence()
    """When checkpoints are due (R5)."""
    operations: Mapping[str, Operation] = msgspec.field(default_factory=dict)
    """What the agent does on request, besides what every run does."""
    types: tuple[type, ...] = ()
    """Classes of values that are not plain JSON: Structs, dataclasses."""
    builders: Mapping[str, Callable[..., Any]] = msgspec.field(default_factory=dict)
    """Functions that make a rebuildable value again, by the name its `Source` gives (R4)."""
    summarize: Callable[[list[Entry]], Any] | None = None
    """Makes of the entries of an experiment that is demoted what stays of it."""
    workspace: Path | None = None
    """Folder that `Run.write_file` writes in; not in the run directory."""
    sample_s: float = 5.0
    """Between two samples of the tiers, in seconds (R11)."""
    durability: Durability = "batch"

    def __post_init__(self) -> None:
        """Raise UsageError for what cannot be meant."""
        limit = self.memory_limit_bytes
        if limit is not None and (type(limit) is not int or limit < 1):
            raise UsageError(f"memory_limit_bytes is a whole number from 1, not {limit!r:.40}")
        if not 0 < self.share_cap <= 1:
            raise UsageError(f"share_cap is over 0 and up to 1, not {self.share_cap!r:.40}")
        if not 0 < self.sample_s < TIMEOUT_MAX:
            raise UsageError(f"sample_s is a time in seconds, not {self.sample_s!r:.40}")
        if self.durability not in get_args(Durability):
            raise UsageError(f"durability is always, batch or os, not {self.durability!r:.40}")
