"""`status` says who acts, what is done about the memory, what holds the agent, what happened."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from memwatch.cli.status_text import status_line, status_text
from memwatch.domain.control import Alert, EngineInfo, Hold, SinceLeft, Suggestion
from memwatch.domain.plan import Plan, Step
from memwatch.domain.snapshot import GuardInfo
from tests.runtime.watched import MB, Watched

EVIL = "\x1b[31m\u202e\n"
PLAN = Plan(
    id="5f-intervene",
    level="intervene",
    rule="level",
    why="memory 76.2% of 8.0G, over 75% for 60 s",
    steps=(Step(op="pause", state="done"), Step(op="checkpoint"), Step(op="purge")),
    at=1,
    state="running",
)


def status(**members: Any) -> dict[str, Any]:
    """Return the status of a run at work whose snapshot has these members."""
    watched = Watched()
    watched.begin(limits={"memory_bytes": 100 * MB})
    watched.look(50 * MB)
    snapshot = replace(watched.snapshot(guard=GuardInfo(pid=99)), **members)
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(snapshot))
    return found


def test_who_acts_and_at_what_it_is() -> None:
    acting = EngineInfo(
        mode="act",
        will="WILL ACT (warn, intervene, emergency)",
        until_us=1_800_000_000_000_000,
        plan=PLAN,
        waiting="cool-down until 03:20",
    )
    text = status_text(status(engine=acting))
    assert "\nguard, pid 99: WILL ACT (warn, intervene, emergency) until " in text
    assert (
        "\nplan intervene: step 2 of 3, checkpoint (memory 76.2% of 8.0G, over 75% for 60 s)\n"
    ) in text
    assert "\nnothing is done now: cool-down until 03:20\n" in text
    assert " RUNNING acts " in status_line(status(engine=acting))


def test_a_plan_that_waits_for_a_person_is_said_first() -> None:
    asking = EngineInfo(mode="ask", plan=replace(PLAN, state="proposed", at=0))
    told = status(engine=asking)
    assert "plan intervene waits for you: memwatch ctl run-1 approve, or decline" in status_text(
        told
    )
    assert status_line(told).startswith("ok PLAN WAITS run-1 RUNNING asks")


def test_steps_behind_it_the_plan_is_measured() -> None:
    text = status_text(status(engine=EngineInfo(plan=replace(PLAN, at=3))))
    assert "plan intervene: measuring what it did" in text


def test_a_stop_file_and_a_broken_policy() -> None:
    stopped = EngineInfo(mode="act", stop_file="/home/me/STOP", policy_error="p.yaml line 3: no")
    told = status(engine=stopped)
    text = status_text(told)
    assert "\n/home/me/STOP is there: no engine acts\n" in text
    assert "\npolicy NOT taken over: p.yaml line 3: no\n" in text
    assert " RUNNING STOPPED " in status_line(told)


def test_what_holds_the_agent() -> None:
    holds = (
        Hold(id="a", op="pause", owner="engine", effective=True, ends_us=1, reason="memory 91%"),
        Hold(id="b", op="read_only", owner="ctl"),
    )
    text = status_text(status(holds=holds))
    assert "\nheld by engine: pause, ends at " in text
    assert " (memory 91%)\n" in text
    assert "\nheld by ctl: read-only, not in force yet, until released\n" in text


def test_alerts_suggestion_and_what_happened_since() -> None:
    since = SinceLeft(from_us=5, lines=("31 experiments (9 kept)", "3 purges, 1.2G freed"))
    told = status(
        alerts=(Alert(key="silent", severity="error", text="no record for 5m", raised_us=1),),
        suggestion=Suggestion(op="purge", text="purge workspace: ~400 MB"),
        since=since,
    )
    text = status_text(told)
    assert "\n! no record for 5m\n" in text
    assert "\nsuggested: purge workspace: ~400 MB\n" in text
    assert text.endswith(":\n  31 experiments (9 kept)\n  3 purges, 1.2G freed")
    assert "since you left, " in text
    first = status(since=SinceLeft(from_us=5, first=True))
    assert "since the watch began, " in status_text(first)
    assert status_text(first).endswith("nothing of note")


def test_text_of_others_is_inert() -> None:
    told = status(
        engine=EngineInfo(
            will=EVIL,
            waiting=EVIL,
            policy_error=EVIL,
            stop_file=EVIL,
            plan=replace(PLAN, why=EVIL, steps=(Step(op=EVIL),), at=0),
        ),
        holds=(Hold(id="a", op="pause", owner=EVIL, reason=EVIL),),
        alerts=(Alert(key="x", severity="error", text=EVIL, raised_us=1),),
        suggestion=Suggestion(op="purge", text=EVIL),
        since=SinceLeft(from_us=5, lines=(EVIL,)),
    )
    assert all(line.isprintable() for line in status_text(told).split("\n"))
    assert status_line(told).isprintable()
