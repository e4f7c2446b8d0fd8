"""How soon the engine's word is with the agent: from the sample that satisfies a rule on.

A real guard over a real agent that works, pressed over a threshold again and again. Both instants
are of CLOCK_BOOTTIME: the guard's record of the sample, and the agent's record that it accepted.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from memwatch.domain.record import Record
from tests.benchmarks.table import Row
from tests.e2e.night import MB, agent_records, guard_records, press, short_policy
from tests.e2e.stage import Puppet, Stage
from tests.waiting import wait_for

ROUNDS = 20
LIMIT = 250 * MB
POLICY = """
enter: {warn_s: 0, intervene_s: 0, samples: 1}
exit: {dwell_s: 0.2}
soft: {growth_bytes_per_min: 1000000000000, forecast: []}
measure: {after_s: 0.2, falling_share: 1.0}
breaker: {after: 1000}
levels:
  warn: {steps: [{op: checkpoint}], escalate: [], cooldown_s: 0.1}
  intervene: {steps: [], escalate: []}
  emergency: {steps: [{op: abort_experiment, args: {save: none}}], escalate: [], cooldown_s: 0.1}
"""


def run() -> list[Row]:
    """Measure both; nothing else of this kind is there to compare with."""
    rows: list[Row] = []
    with Stage() as stage:
        puppet = stage.puppet("bench", memory_limit_bytes=LIMIT)
        puppet.ask("work")
        short_policy(stage, puppet.run_dir, POLICY)
        stage.guard(puppet.run_dir)
        for level, threshold, op, strive in (
            ("warn", 0.60, "checkpoint", ""),
            ("emergency", 0.90, "abort_experiment", "200 ms"),
        ):
            took = [_reaction_ms(stage, puppet, threshold, op) for _ in range(ROUNDS)]
            what = f"engine latency, {level}: sample → accepted"
            p95 = statistics.quantiles(took, n=20)[-1]
            rows += [
                Row(f"{what}, p50", statistics.median(took), "ms", None, "", strive),
                Row(f"{what}, p95", p95, "ms", None, "1,500 ms", strive),
            ]
    return rows


def _reaction_ms(stage: Stage, puppet: Puppet, threshold: float, op: str) -> float:
    """Press once, and let go again."""
    wait_for(lambda: puppet.ask("done")["at_work"], "an experiment that can be aborted")
    before = len(_accepted(puppet, op))
    begun_us = guard_records(stage, puppet.run_dir)[-1].m_us
    press(stage, puppet, threshold + 0.02, LIMIT)
    wait_for(lambda: len(_accepted(puppet, op)) > before, f"{op} to be accepted")
    accepted = _accepted(puppet, op)[before]
    samples = [
        record
        for record in guard_records(stage, puppet.run_dir, "probe")
        if begun_us < record.m_us <= accepted.m_us
    ]
    satisfying = list(_over_at_last(samples, threshold * LIMIT))[-1]
    puppet.ask("release")
    stage.wait_status(puppet.run_dir, lambda s: s["level"] == "normal", "level normal")
    return (accepted.m_us - satisfying.m_us) / 1000


def _over_at_last(samples: list[Record], threshold: float) -> Iterator[Record]:
    """Yield, newest first, the samples over a threshold since usage rose over it for good."""
    for record in reversed(samples):
        if int(record.members.get("rss_bytes") or 0) < threshold:
            return
        yield record


def _accepted(puppet: Puppet, op: str) -> list[Record]:
    found = agent_records(puppet.run_dir, "command")
    return [r for r in found if (r.text("op"), r.text("state")) == (op, "accepted")]
