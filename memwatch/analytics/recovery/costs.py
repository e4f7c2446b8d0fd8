"""What recoveries cost on this machine: learnt from those that were done.

A term has a *reference*: a fixed part, seconds a byte and a record, and the disk, as they were
found on one machine. What a real recovery took against its reference is a ratio; the ratios of
recoveries near in size, and recent, say what the next one will take. So one recovery is enough to
begin with, any size can be estimated, and at a size that was seen before the shape of the
reference does not matter. Source: R12.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log
from typing import Final, Literal, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from memwatch.analytics.recovery.sound import is_amount, is_time
from memwatch.analytics.recovery.work import Work, work_of
from memwatch.domain.recovery import DiskRate, PastRecovery

LearntTerm = Literal["load", "blobs", "read", "replay"]
LEARNT: Final[tuple[LearntTerm, ...]] = ("load", "blobs", "read", "replay")

ASSUMED_START_S: Final = 1.0
ASSUMED_READ_BYTES_PER_S: Final = 300e6
_FIXED_S: Final = {"load": 3e-3, "blobs": 1e-3, "read": 1.5e-3, "replay": 0.3e-3}
_BYTE_S: Final = {"load": 1.7e-9, "blobs": 2e-9, "read": 4.2e-9, "replay": 2.5e-9}
_RECORD_S: Final = {"load": 4.5e-6, "blobs": 150e-6, "read": 0.0, "replay": 7e-6}
_SEARCH_S: Final = 3.3e-9
"""Of a byte of the log that is looked through for checkpoints, part of `read`."""
_LOOK_S: Final = 30e-6
"""To look for a persisted value, part of `load`."""
_HASH_S: Final = 0.6e-6
"""Of an entry in the state's hash, part of `replay`."""
_LOOKED_OVER_S: Final = 0.5e-6
"""Of an entry that is looked over between the terms, part of `read`."""
# Measured with runs of 0.1 to 150 MB on a machine with 2 cores; the disk comes on top.

_MOST_USED = 10
"""Recoveries that one estimate rests on; those of the run itself go first."""
_MOST_KEPT = 24
_MOST_AGENTS = 32
_MOST_STARTS = 5
_SIZE_SCALE = log(4)
"""A recovery of four times the size counts for 0.6 of one of the same size."""
_MOST_DISTURBED = 0.9
_LEAST_S = 1e-9
"""What is shorter was not measured."""
_LEAST_NEARNESS = 0.02
_OLDER = 0.7
"""Each recovery counts for so much of the one that followed it: a busy hour lasts."""
_OTHER_RUN = 0.1
_WARM = 0.3
"""Where the files came from the system's memory, it tells little of reading."""


class StartSeen(Struct, frozen=True):
    """How long an agent took from its process's begin to its first record, recovery aside."""

    t_us: int
    seconds: float


class Sample(Struct, frozen=True, kw_only=True):
    """One recovery as it teaches: what it did, and the seconds of each term."""

    t_us: int
    work: Work
    expected: Work | None = None
    """What it was thought to be just before, where somebody thought: an error of that kind comes
    again in the same run."""
    seconds: dict[str, float]
    cold: bool = False
    calm: float = 1.0
    """Share of its time in which it had the processor when it wanted it."""
    kind: Literal["drill", "restart"] = "drill"
    own: bool = False
    """Of the run that is estimated."""


class Costs(Struct, frozen=True, kw_only=True):
    """All that is known of costs; what the machine keeps of it is the same struct (`shared`)."""

    samples: tuple[Sample, ...] = ()
    """Newest first, those of the run itself before others."""
    starts: dict[str, tuple[StartSeen, ...]] = {}
    """By agent, newest first."""


class Ratio(NamedTuple):
    """What one recovery took against the reference of its work."""

    ratio: float
    weight: float
    distance: float
    """Of its size from what is estimated, as a logarithm."""
    sample: Sample


def learn(
    past: Sequence[PastRecovery],
    starts: Sequence[StartSeen] = (),
    host: Costs | None = None,
    agent: str = "",
) -> Costs:
    """Return what the past of a run teaches, and what other runs on this machine do.

    `past` and `starts` are of the run, newest first; `host` is what the machine keeps.
    """
    own = [sample_of(one) for one in past]
    known = {one.t_us for one in own}
    kept = host.samples if host else ()
    others = [replace(one, own=False) for one in kept if one.t_us not in known]
    seen = host.starts.get(agent, ()) if host else ()
    ours = _newest((*starts, *(one for one in seen if one not in starts)))
    found = tuple(one for one in (*own, *others) if _is_sound(one))
    return Costs(samples=found[:_MOST_USED], starts={agent: ours} if ours else {})


def shared(costs: Costs, host: Costs | None) -> Costs:
    """Return what the machine should keep: the newest of both."""
    before = host or Costs()
    by_time = {one.t_us: one for one in (*before.samples, *costs.samples)}
    newest = sorted(by_time.values(), key=lambda one: one.t_us, reverse=True)
    starts = {**before.starts, **costs.starts}
    agents = sorted(starts, key=lambda agent: starts[agent][:1] and -starts[agent][0].t_us)
    return Costs(
        samples=tuple(replace(one, own=False, expected=None) for one in newest[:_MOST_KEPT]),
        starts={agent: starts[agent][:_MOST_STARTS] for agent in agents[:_MOST_AGENTS]},
    )


def costs_of(kept: object) -> Costs | None:
    """Return costs as the machine's file has them; None for what is none."""
    try:
        return msgspec.convert(kept, Costs)
    except (ValueError, RecursionError):  # of a wrong shape, or half a surrogate pair
        return None


def sample_of(past: PastRecovery) -> Sample:
    """Return what a recovery teaches; what lay between its terms is counted to `read`.

    A recovery looks through the log for its checkpoints before any term begins.
    """
    seconds = {term.name: term.seconds for term in past.terms if term.name != "decode"}
    between_s = max(past.total_s - sum(seconds.values()), 0.0)
    if "read" in seconds:
        seconds["read"] += between_s
    return Sample(
        t_us=past.t_us,
        work=work_of(past.terms),
        expected=work_of(past.expected) if past.expected else None,
        seconds={name: seconds[name] for name in LEARNT if name in seconds},
        cold=past.cold_cache,
        calm=_calm(past),
        kind=past.kind,
        own=True,
    )


def reference_s(name: LearntTerm, work: Work, disk: DiskRate | None, *, cold: bool = True) -> float:
    """Return the seconds that a term has by the reference; 0 where there is nothing to do."""
    size, records = amounts(name, work)
    if not size and not records and name in ("load", "blobs"):
        return 0.0
    rate = disk.read_bytes_per_s if disk else None
    seconds = _FIXED_S[name] + size * _BYTE_S[name] + records * _RECORD_S[name]
    if name == "load":
        seconds += work.blob_count * _LOOK_S
    if name == "read":
        seconds += work.searched_bytes * _SEARCH_S + work.entries * _LOOKED_OVER_S
    if name == "replay":
        return seconds + work.entries * _HASH_S
    return seconds + (size / (rate or ASSUMED_READ_BYTES_PER_S) if cold else 0.0)


def amounts(name: LearntTerm, work: Work) -> tuple[int, int]:
    """Return the bytes and the records of a term."""
    match name:
        case "load":
            return work.full_bytes, work.entries
        case "blobs":
            return work.blob_bytes, work.blob_count
        case "read":
            return work.read_bytes, 0
        case "replay":
            return work.delta_bytes + work.tail_bytes, work.replayed


def ratios(name: LearntTerm, work: Work, costs: Costs, disk: DiskRate | None) -> list[Ratio]:
    """Return what recoveries took against the reference, each with its weight for this work."""
    expected_s = reference_s(name, work, disk)
    found: list[Ratio] = []
    rank = {True: 0, False: 0}
    for sample in costs.samples:
        thought = sample.expected if sample.own and sample.expected else sample.work
        base_s = reference_s(name, thought, disk, cold=sample.cold)
        if base_s <= 0:  # nobody thought of it, and it was there
            base_s = reference_s(name, sample.work, disk, cold=sample.cold)
        seconds = sample.seconds.get(name, 0.0)
        if base_s <= 0 or seconds < _LEAST_S or expected_s <= 0:
            continue
        distance = abs(log(base_s / expected_s))
        weight = max(exp(-0.5 * (distance / _SIZE_SCALE) ** 2), _LEAST_NEARNESS)
        weight *= _OLDER ** rank[sample.own] * sample.calm**2
        weight *= 1.0 if sample.own else _OTHER_RUN
        weight *= 1.0 if sample.cold or name == "replay" else _WARM
        rank[sample.own] += 1
        found.append(Ratio(seconds / base_s, weight, distance, sample))
    return found


def _calm(past: PastRecovery) -> float:
    start_s = sum(term.seconds for term in past.terms if term.name == "start")
    own_s = past.total_s - start_s  # that of the agent may stand in a drill's total
    waited = (past.waited_s or 0.0) / own_s if own_s > 0 else 0.0
    return 1 - min(max(waited, 0.0), _MOST_DISTURBED)


def _newest(starts: Sequence[StartSeen]) -> tuple[StartSeen, ...]:
    sound = (one for one in starts if is_time(one.seconds) and one.seconds >= _LEAST_S)
    sound = (one for one in sound if is_amount(one.t_us))
    return tuple(sorted(sound, key=lambda one: one.t_us, reverse=True)[:_MOST_STARTS])


def _is_sound(sample: Sample) -> bool:
    """Whether it can be reckoned with: the machine's file may hold anything."""
    works = (sample.work, sample.expected or sample.work)
    amounts_then = (getattr(work, name) for work in works for name in Work.__struct_fields__)
    believable = is_amount(sample.t_us, *amounts_then) and is_time(*sample.seconds.values())
    return believable and 0 < sample.calm <= 1
