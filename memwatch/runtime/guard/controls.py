"""The parts by which a guard decides and acts, as the others are given them."""

from __future__ import annotations

from typing import NamedTuple

from memwatch.actuators.actuator import Reach
from memwatch.runtime.guard.authority import Authority
from memwatch.runtime.guard.ledger import Ledger
from memwatch.runtime.guard.policy_keeper import PolicyKeeper
from memwatch.runtime.guard.probe_loop import ProbeLoop
from memwatch.runtime.guard.wishes import Wishes


class Controls(NamedTuple):
    """How the agent is reached, who allows it, what was asked, by which rules and figures."""

    actuator: Reach
    authority: Authority
    ledger: Ledger
    policy: PolicyKeeper
    probe: ProbeLoop
    wishes: Wishes
