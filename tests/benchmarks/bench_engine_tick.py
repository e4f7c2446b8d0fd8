"""One tick of the threshold engine for 50 resources with levels of their own.

All are measured anew each time; `busy` also has a plan in flight and half of them over warn.
"""

from __future__ import annotations

import time
from statistics import median

from memwatch.config.policy import Policy, ResourceRule
from memwatch.engine.facts import Facts, Now, ResourceFacts
from memwatch.engine.state import EngineState
from memwatch.engine.tick import tick
from tests.benchmarks.table import Row

_RESOURCES = 50
_TICKS = 2000
_ALL = frozenset(
    ("checkpoint", "purge", "reclaim", "retain", "pause", "read_only", "abort_experiment")
)
_POLICY = Policy(
    resources={f"tier:{n}": ResourceRule(warn=0.6, intervene=0.8) for n in range(_RESOURCES - 1)}
)


def run() -> list[Row]:
    """Measure."""
    asked, strive = "≤ 0.5 ms", "0.2 ms"
    return [
        Row("engine: tick, 50 resources, calm", _tick_ms(0.4, 0.4), "ms", None, asked, strive),
        Row("engine: tick, 50 resources, busy", _tick_ms(0.8, 0.7), "ms", None, asked, strive),
    ]


def _tick_ms(memory_share: float, half_share: float) -> float:
    """Median time of a tick; half of the resources stand at `half_share`."""
    state, spans_ms = EngineState(), []
    for n in range(_TICKS):
        now = Now(1_800_000_000_000_000 + n * 1_000_000, 1_000_000_000 + n * 1_000_000)
        facts = _facts(now, memory_share, half_share)
        began = time.perf_counter()
        state, _ = tick(state, facts, _POLICY, now)
        spans_ms.append((time.perf_counter() - began) * 1e3)
    return median(spans_ms)


def _facts(now: Now, memory_share: float, half_share: float) -> Facts:
    shares = [half_share if n % 2 else 0.3 for n in range(_RESOURCES - 1)]
    named = [("memory", memory_share), *((f"tier:{n}", s) for n, s in enumerate(shares))]
    return Facts(
        mode="act",
        allow=_ALL,
        ops=_ALL,
        start_id="one",
        resources=tuple(
            ResourceFacts(
                name=name,
                used=share * 8e9,
                limit=8e9,
                measured_m_us=now.m_us,
                growth_per_min=1e6,
                growth_recent_per_min=1e6,
                time_to_limit_s=(9000.0, 90000.0),
            )
            for name, share in named
        ),
    )
