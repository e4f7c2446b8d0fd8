"""How often levels change and flap on recorded traces: the literal thresholds and the engine.

Needs the corpus `leakbench` beside the checkout. Counted as the corpus' scorer does.
"""

from __future__ import annotations

import sys

from memwatch.config.policy import Policy, SoftLimit
from tests.benchmarks.table import Row
from tests.engine import leakbench
from tests.engine.leakbench import SETS, Changes


def run() -> list[Row]:
    """Measure; the reference is the literal thresholds on the same traces."""
    if not leakbench.CORPUS.is_dir():
        print("flaps: the corpus leakbench is not beside the checkout, skipped", file=sys.stderr)
        return []
    rows = []
    for kinds, name in ((("dev",), "dev"), (SETS, "dev and public")):
        literal = leakbench.count(
            lambda trace: leakbench.levels_of(trace, Policy(), "off", grows=False), kinds
        )
        rows += _rows(name, _play(Policy(), kinds), literal)
        plain = _play(Policy(soft=SoftLimit(forecast=())), kinds)
        rows += _rows(f"{name}, no forecast", plain, literal)
    return rows


def _play(policy: Policy, kinds: tuple[str, ...]) -> Changes:
    return leakbench.count(lambda trace: leakbench.levels_of(trace, policy), kinds)


def _rows(name: str, ours: Changes, literal: Changes) -> list[Row]:
    return [
        Row(f"flaps, {name}", ours.flaps, "/24 h", literal.flaps, "≤ 1.5", ""),
        Row(f"level changes, {name}", ours.levels, "/24 h", literal.levels, "", ""),
    ]
