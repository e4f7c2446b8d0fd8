"""What keys ask of the guard: what it may do by itself, and its plans. Pure."""

from __future__ import annotations

from typing import Any

from memwatch.domain.snapshot import Snapshot
from memwatch.domain.text import inert
from memwatch.domain.wording import op_text
from memwatch.ui.deeds.choices import LEAVE, Request, choice, command, of_run
from memwatch.ui.deeds.dialog import Choice, Question
from memwatch.ui.deeds.offers import proposed
from memwatch.ui.words import does_words, guard_words, step_words

CAREFUL = ("checkpoint", "pause")
"""What a guard may do that is to take nothing away."""


def decline(snapshot: Snapshot) -> Request:
    """Tell the guard that its plan is not to go."""
    plan = proposed(snapshot)
    asked = command("decline", "engine.decline", plan=plan.id if plan else "")
    return Request(command=asked, sent="the guard is told to drop its plan")


def approve(snapshot: Snapshot) -> Question:
    """Show the plan step by step, then let this one go, and no other."""
    plan = proposed(snapshot)
    if plan is None:  # declined or run out between the look and the key
        return Question(action="approve", title="no plan waits", choices=(LEAVE,))
    steps = "; then ".join(step_words(step) for step in plan.steps)
    asked = command("approve", "engine.approve", plan=plan.id)
    return Question(
        action="approve",
        title=f"plan for {plan.level}",
        lines=(inert(plan.why, 300), f"of {of_run(snapshot)}: {steps}"),
        choices=(LEAVE, choice(asked, text="let the plan go")),
    )


def _may(mode: str, text: str, allow: tuple[str, ...] = (), note: str = "") -> Choice:
    args: dict[str, Any] = {"mode": mode}
    if allow:
        args["allow"] = list(allow)
    return choice(command("engine", "engine.mode", **args), text=text, note=note)


_WATCH = _may("shadow", "watch: plan, send nothing", note="you see what it would have done")


def _acting(snapshot: Snapshot) -> tuple[Choice, Choice]:
    careful = (
        "at its levels it checkpoints, and lets no new experiment begin; nothing is taken away"
    )
    if missing := [op for op in CAREFUL if op not in snapshot.run.ops]:
        careful += f" (this agent does not take: {', '.join(op_text(op) for op in missing)})"
    return (
        _may("act", "act: checkpoint and pause", CAREFUL, careful),
        _may("act", "act: everything of the policy", note=_everything(snapshot)),
    )


def _everything(snapshot: Snapshot) -> str:
    """Say what the policy lets the guard do: what a person chose before may be less."""
    allow = snapshot.engine.policy_allow
    if allow is None:
        return "memwatch policy shows what that is"
    words = ", ".join(op_text(op) for op in allow) or "nothing: its `allow` is empty"
    return words if "end_run" in allow else f"{words}; never end the run"


def engine(snapshot: Snapshot) -> Question:
    """Ask what the guard may do by itself."""
    engine = snapshot.engine
    by = f", set by {inert(engine.by, 24)}" if engine.by else ""
    does = f"; {words}" if (words := does_words(engine)) else ""
    lines = [f"now: {guard_words(engine, engine.mode)}{by}{does}"]
    if engine.stop_file:
        lines.append(f"whatever is chosen, it does not act while {inert(engine.stop_file)} exists")
    choices = [LEAVE]
    if engine.open_breakers:
        levels = ", ".join(engine.open_breakers)
        again = "what it did there had no effect, so it stopped; this lets it begin anew"
        reset = command("engine", "engine.reset")
        choices.append(choice(reset, text=f"let it try again: {levels}", note=again))
    choices += [
        _WATCH,
        _may("ask", "ask: a person lets each plan go (Y, N)", note="nobody there: it does nothing"),
        *_acting(snapshot),
        _may("observe", "levels alone", note="they are shown, no plan is made"),
    ]
    title = "what may the guard do by itself?"
    return Question(action="engine", title=title, lines=tuple(lines), choices=tuple(choices))


def first_question(snapshot: Snapshot) -> Question:
    """Return what is asked once for each run: what the guard may do while nobody looks."""
    later = Choice(
        text="decide later: it watches and does not act", note="asked again at the next visit"
    )
    return Question(
        action="engine",
        title="what may the guard do by itself?",
        lines=(
            f"nobody has said yet for {of_run(snapshot)}",
            "in force until the run ends, whether you look or not; G changes it at any time",
        ),
        choices=(
            later,
            _WATCH,
            *_acting(snapshot),
        ),
    )


def wants_first_question(snapshot: Snapshot | None, *, view_only: bool) -> bool:
    """Return whether the person is to be asked: a guard that could act on a run not the demo's."""
    if snapshot is None or view_only or snapshot.engine.asked or not snapshot.engine.will:
        return False
    if snapshot.checkpoints.source != "native":
        return False
    return snapshot.run.state == "running" and "demo" not in (
        snapshot.run.profile,
        snapshot.run.agent,
    )
