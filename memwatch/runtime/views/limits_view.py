"""Which limit binds: the smallest really in force, of policy, agent, cgroup chain and host."""

from __future__ import annotations

from memwatch.config.policy import Policy
from memwatch.config.schema import Profile
from memwatch.domain.snapshot import Limit, Limits
from memwatch.host.limits import binding
from memwatch.runtime.views.ring import Ring
from memwatch.wal.manifest import RunManifest


def limits_of(
    profile: Profile,
    ring: Ring,
    manifest: RunManifest,
    machine: tuple[Limit, ...],
    policy: Policy,
) -> Limits:
    """Return the binding limit, the others, and the thresholds of the policy in force.

    `machine` are the limits of cgroups and host. The limit that the agent stated in `run.begin`
    replaces the profile's: it is that run's own.
    """
    start = ring.state.start
    stated = start.memory_limit_bytes if start else manifest.limits.get("memory_bytes")
    found = list(machine)
    if policy.limit_bytes is not None:
        found.insert(0, Limit(name="policy", bytes=policy.limit_bytes))
    if stated is not None:
        found.insert(0, Limit(name="stated by the agent", bytes=stated))
    elif profile.memory_limit_bytes is not None:
        found.insert(0, Limit(name=f"profile {profile.name}", bytes=profile.memory_limit_bytes))
    binds = binding(limit for limit in found if limit.bytes > 0)
    thresholds = policy.thresholds
    soft = policy.soft.start
    return Limits(
        binding=binds,
        others=tuple(limit for limit in found if limit is not binds)[:8],
        warn=thresholds.warn,
        intervene=thresholds.intervene,
        emergency=thresholds.emergency,
        soft_share=thresholds.warn if soft is None else soft,
        hard_share=thresholds.hard,
    )
