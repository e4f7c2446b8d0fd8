"""What is known of a run in the evening, and how a point of the check before bed is told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from memwatch.config.policy import Policy
from memwatch.domain.command import CommandInfo
from memwatch.domain.text import inert
from memwatch.host.logout import Logout

Status = dict[str, Any]
Verdict = Literal["ok", "look", "NO"]
NIGHT_S = 8 * 3600
DAY_S = 86_400


class Check(NamedTuple):
    """One point, and what to do about it."""

    name: str
    verdict: Verdict
    text: str
    do: str = ""


class NightFacts(Struct, frozen=True, kw_only=True):
    """What is known of a run this evening."""

    shown: str
    """The run as a person types it."""
    now_us: int
    """Wall clock."""
    status: Status = {}
    """{} when no guard answers."""
    guard_pid: int | None = None
    kept: bool = False
    """Somebody starts the guard again when it is killed."""
    logout: Logout = Logout()
    policy: Policy | None = None
    policy_error: str = ""
    agent_age_s: float | None = None
    """Age of what the agent says of itself; None when it says nothing that is its own."""
    dry_runs: Mapping[str, CommandInfo] = {}
    """What the agent answered to a dry run of each step of the policy."""
    untried: tuple[str, ...] = ()
    """Operations of the policy that have none."""
    reserve_bytes: int = 0
    source: str = "native"
    """`native`, or the kind of a source that another program writes."""
    no_commands: str = ""
    """Why nothing can be asked of what writes it; empty where it can."""

    def resource(self, name: str) -> Status | None:
        """Return a resource of the status by its name."""
        return next((one for one in self.status["resources"] if one["name"] == name), None)

    @property
    def path(self) -> str:
        """Path of the run, for people."""
        return inert(str(self.status["run"]["path"]), 120)
