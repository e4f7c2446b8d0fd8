"""Plans teach: as a whole by what was measured, by step as the agent says; restarts come last."""

from __future__ import annotations

import json

from msgspec.structs import replace

from memwatch.analytics.advice import not_undone
from memwatch.config.policy import PURGE_EXPIRED, Action, LevelRule, Policy
from memwatch.domain.intervention import Advice, Intervention, Stage
from memwatch.domain.recovery import Recovery, Span
from tests.analytics.test_advice import LIMITS, MB, WARN, advice, done

EXPIRED = "purge what is expired"
COMPRESS = Action(op="purge", args={"tier": "history", "how": "compress"})


def plan(freed_mb: float, *told: tuple[str, int | None], level: str = "warn") -> Intervention:
    """Return a plan that freed so much, and what the agent says of its steps."""
    return done(
        f"plan {level}",
        freed_mb,
        0.4,
        how="purge, give memory back",
        plan=f"5f-{level}",
        stages=tuple(Stage(name=name, freed_bytes=freed) for name, freed in told),
    )


def test_a_plan_is_the_cheapest_deed_by_its_measured_total_and_names_the_step_as_a_claim() -> None:
    past = (
        plan(200, (EXPIRED, 4 * MB), ("allocator", 180 * MB)),
        plan(180, (EXPIRED, 2 * MB), ("allocator", 160 * MB)),
        done("reclaim", 500, 9.0),
    )
    (found,) = advice(*past, memory=WARN)
    assert found.text == (
        "a plan of warn (purge, give memory back): ~190M in 0.40s (2 times), the cheapest that "
        "brings memory under 55%; most of it by allocator, as the agent says: 170M"
    )
    abort = replace(past[0], how="abort the experiment, purge", duration_s=0.1)
    (found,) = advice(abort, past[2], memory=WARN)
    assert found.text.startswith("give memory back: ~500M"), "an abort costs more than its time"


def test_a_restart_is_named_where_nothing_else_is_enough() -> None:
    (found,) = advice(done("restart", 600, 3.0), done("reclaim", 500, 9.0), memory=WARN)
    assert found.text.startswith("give memory back: ~500M")
    (found,) = advice(done("restart", 600, 3.0), done("reclaim", 50, 9.0), memory=WARN)
    assert found.text.startswith("restart: ~600M in 3.0s (once)")


def test_where_all_was_in_vain_that_is_said_with_what_a_restart_costs() -> None:
    past = (plan(0), plan(-5), done("reclaim", 0))
    known = Recovery(rto_s=Span(low=0.3, likely=0.4, high=0.5))
    (found,) = advice(*past, memory=WARN, recovery=known)
    assert (found.kind, found.text) == (
        "action",
        "nothing that was tried frees memory: a plan of warn (purge, give memory back) (2 times), "
        "give memory back (once); a restart is back in 0.40s by the estimate",
    )
    assert advice(past[2], memory=WARN, recovery=known) == [], "once may be chance"
    calm = replace(WARN, level="normal")
    assert advice(*past, memory=calm, recovery=known) == []


def test_a_step_that_frees_nothing_by_the_agents_own_account_is_no_step() -> None:
    past = [plan(50, (EXPIRED, freed), ("allocator", 9 * MB)) for freed in (0, 900, 0)]
    hidden = [replace(one, verdict="unmeasured", overlaps=True) for one in past]
    (found,) = advice(*hidden)
    assert found.text == (
        "purge what is expired freed 900B at most in 3 plans, by the agent's own account: not "
        "worth a step of levels.warn.steps"
    )
    key, _, value = found.set.partition("=")
    assert (key, [step["op"] for step in json.loads(value)]) == (
        "levels.warn.steps",
        ["checkpoint"],
    )
    assert advice(*hidden[:2]) == []
    assert advice(*hidden, plan(50, (EXPIRED, 2 * MB))) == [], "it did once"
    assert advice(*hidden, plan(50, (EXPIRED, None))) == [], "once it did not say"


def test_a_plan_that_stopped_working_is_named() -> None:
    past = (plan(0), plan(1), plan(300), plan(280))
    past = (past[0], replace(past[1], verdict="none"), *past[2:])
    (found,) = advice(*past)
    assert found.kind == "stopped"
    assert "stopped working: no effect the last 2 times, before that it freed ~290M" in found.text


def test_two_pieces_of_advice_do_not_set_the_same_value() -> None:
    """Whoever follows both would have the second alone, without what the first put in."""
    both = [
        replace(one, id="x")
        for one in [plan(50, (EXPIRED, 0), ("purge history, compressed in place", 0), level=level)
                    for level in ("intervene", "warn")] * 3
    ]  # fmt: skip
    policy = Policy(
        levels=replace(
            Policy().levels,
            warn=LevelRule(steps=(PURGE_EXPIRED, COMPRESS, Action(op="reclaim"))),
        )
    )
    found = [one.set.partition("=")[0] for one in advice(*both, policy=policy) if one.set]
    assert sorted(found) == ["levels.intervene.steps", "levels.warn.steps"]
    twice = [Advice(text="a", kind="policy", set="k=1"), Advice(text="b", kind="policy", set="k=2")]
    other = [Advice(text="c", kind="action"), Advice(text="d", kind="action")]
    assert [one.text for one in not_undone([*twice, *other])] == ["a", "c", "d"]


def test_under_a_soft_limit_that_was_lowered_memory_must_go_further() -> None:
    held = replace(WARN, used=450 * MB)
    past = (done("reclaim", 30), done("purge", 120, 3.0))
    assert advice(*past, memory=held) == [], "it is under the usual end of warn"
    lowered = replace(LIMITS, soft_share=0.40)
    (found,) = advice(*past, memory=held, limits=lowered)
    assert found.text.startswith("purge all that may go: ~120M")
    assert "under 35%" in found.text
