"""What a bad night looks like, on top of the usual snapshot."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from memwatch.domain.command import CommandInfo
from memwatch.domain.control import Alert, Hold, SinceLeft, Suggestion
from memwatch.domain.intervention import Advice
from memwatch.domain.level import EngineMode
from memwatch.domain.plan import Plan, Step
from memwatch.domain.snapshot import Light, Limits, Processes, Progress, Snapshot
from tests.ui import crash

MINUTE_US = 60_000_000
WHY = (
    "memory 76.2% of 300M (profile demo), over 75% for 60 s (thresholds.intervene);"
    " under 70% it would not"
)
STEPS = (
    Step(op="pause", state="done", command_id="p.0", asked_us=1),
    Step(op="checkpoint", args={"kind": "experiment"}, state="asked", command_id="p.1", asked_us=2),
    Step(op="purge", args={"tier": "history", "how": "compress"}, command_id="p.2"),
)
SUGGESTION = Suggestion(
    op="purge",
    args={"tier": "workspace"},
    text="purge workspace, expired first: ~40M, back in ~6m00s",
    gain_bytes=40e6,
    back_s=360.0,
    basis="measured 3 times, last 07:51",
)


def plan(**changes: Any) -> Plan:
    """Return the plan of intervene, in its second step."""
    base = Plan(
        id="61f-intervene",
        level="intervene",
        rule="level",
        why=WHY,
        steps=STEPS,
        at=1,
        state="running",
        made_us=1_800_000_000_000_000 - 4_000_000,
    )
    return replace(base, **changes)


def bad(snapshot: Snapshot) -> Snapshot:
    """Memory is high, the guard pauses and works its plan, and it was so before."""
    now_us = snapshot.t_us
    hold = Hold(
        id="h1",
        op="pause",
        owner="engine",
        since_us=now_us - 4_000_000,
        ends_us=now_us + 2 * MINUTE_US,
        reason="memory 76.2%, over 75%",
        effective=True,
    )
    alert = Alert(
        key="memory", severity="warning", text="memory is at 76% (intervene)", raised_us=now_us
    )
    since = SinceLeft(
        from_us=now_us - 500 * MINUTE_US,
        highest="intervene",
        lines=(
            "31 experiments (9 kept, 20 discarded, 2 crashed), best ratio 3.6",
            "2 warnings, 1 intervention; 3 purges freed 1.2G; nothing lost",
            "1 plan without effect, then the pause helped",
        ),
    )
    return replace(
        snapshot,
        run=replace(snapshot.run, state="draining"),
        level="intervene",
        engine=replace(snapshot.engine, plan=plan()),
        holds=(hold,),
        alerts=(alert,),
        since=since,
        suggestion=SUGGESTION,
        commands=(
            CommandInfo(
                id="p.1",
                op="checkpoint",
                state="asked",
                asked_us=now_us - 1_200_000,
                changed_us=now_us,
                origin="engine",
                plan="61f-intervene",
            ),
        ),
    )


ADVICE = (
    Advice(
        text="purge workspace, expired first, brings memory under warn: 37M each in 0.9s, 3 times",
        kind="action",
    ),
    Advice(
        text="give memory back stopped working: none of the last 2, 4 of 5 before",
        kind="stopped",
        set="levels.warn.steps=[purge]",
    ),
)


def teaching(snapshot: Snapshot) -> Snapshot:
    """Things were done, with every verdict, and they teach something."""
    return replace(snapshot, interventions=crash.deeds(snapshot.t_us), advice=ADVICE)


def over(snapshot: Snapshot) -> Snapshot:
    """A crash would cost more than it may, and a restore would not fit."""
    recovery = crash.over_budget(snapshot.recovery)
    return replace(snapshot, recovery=recovery)


def store(snapshot: Snapshot) -> Snapshot:
    """A directory of a trainer instead of a run of our own format; its newest is torn."""
    return replace(
        snapshot,
        run=replace(
            snapshot.run,
            id="directory-outputs-1f2e3d4c",
            agent="directory",
            profile="directory",
            path="/data/outputs",
            ops=(),
            phase=None,
            experiment=None,
            switches={},
            state="silent",
        ),
        limits=Limits(),
        resources=(),
        tiers=(),
        processes=Processes(),
        progress=Progress(),
        interventions=(),
        checkpoints=crash.trainer(snapshot.t_us),
        recovery=crash.load_alone(),
        profile_note="",
        lights=(
            *(Light(name=name, word="no data", figure="–") for name in ("MEMORY", "PROCS")),
            Light(name="DISK", word="ok", figure="212G"),
            Light(name="CKPT", word="WARN", figure="20m39s ago", meaning="newest incomplete"),
            Light(name="STEP", word="no data", figure="–"),
        ),
    )


def asking(snapshot: Snapshot) -> Snapshot:
    """The guard asks before it acts."""
    steps = tuple(replace(step, state="proposed", asked_us=0) for step in STEPS)
    proposal = plan(state="proposed", at=0, steps=steps)
    return in_mode(replace(snapshot, engine=replace(snapshot.engine, plan=proposal)), "ask")


def in_mode(snapshot: Snapshot, mode: EngineMode, **engine: Any) -> Snapshot:
    """Return the same with the guard in another mode, which it words itself."""
    acts = mode == "act"
    engine.setdefault("will", snapshot.engine.will if acts else f"WILL NOT ACT ({mode})")
    return replace(
        snapshot,
        guard=replace(snapshot.guard, engine=mode),
        engine=replace(snapshot.engine, mode=mode, **engine),
    )
