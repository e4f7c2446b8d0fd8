"""What became of a request, as one line for people or as the object of `ctl --json`.

Results come from the agent: of each member only what has the expected shape is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from memwatch.cli.engine_text import will_text
from memwatch.domain.command import FINAL_STATES, CommandInfo
from memwatch.domain.operations import RELEASES
from memwatch.domain.text import inert
from memwatch.domain.units import bytes_text, duration_text

Status = dict[str, Any]
Result = Mapping[str, Any]


def answer_object(known: CommandInfo) -> dict[str, Any]:
    """Return the object of `--json`; `done_us` is None until the request has come to an end."""
    over = known.state in FINAL_STATES
    return {
        "id": known.id,
        "op": known.op,
        "state": known.state,
        "detail": known.detail,
        "result": known.result,
        "asked_us": known.asked_us,
        "done_us": known.changed_us if over else None,
        "dry_run": known.dry_run,
    }


def answer_line(known: CommandInfo, action: str, shown: str, status: Status) -> str:
    """Return one line: what was done, by whose word, how long it took, what ends it.

    `shown` is the run as a person types it, `status` the run after the answer, {} when unknown.
    """
    took = duration_text(max(known.changed_us - known.asked_us, 0) / 1e6)
    if known.state != "done":
        detail = inert(known.detail, 160) or _NO_DETAIL.get(known.state, "no reason was given")
        others = known.op in RELEASES and known.state == "failed"
        do = f"; memwatch ctl {shown} {action} --all releases whatever holds it" if others else ""
        return f"{action} {known.state}: {detail}{do}"
    if known.op.startswith("engine."):
        return _engine(known, status)
    head, _, tail = _done(known, shown).partition("; ")
    return f"{head} (agent, {took})" + (f"; {tail}" if tail else "")


_NO_DETAIL = {
    "asked": "the agent has not answered yet",
    "accepted": "the agent has it and has not begun yet",
    "running": "the agent is at it",
    "expired": "the agent did not answer in time",
    "unknown": "whether it was done is not known",
}


def still_held(status: Status, op: str) -> str:
    """Return whose holds of a kind go on after one's own was released; empty when none does."""
    kind = "pause" if op == "resume" else "read_only"
    owners = [inert(str(one["owner"]), 40) for one in status.get("holds", ()) if one["op"] == kind]
    if not owners:
        return ""
    action = "resume" if kind == "pause" else "read-write"
    return (
        f"still {'paused' if kind == 'pause' else 'read-only'}: held by {', '.join(owners)}; "
        f"{action} --all releases that too"
    )


def _done(known: CommandInfo, shown: str) -> str:
    if known.dry_run:
        return _would(known)
    if known.op in _RESULTS and known.result:
        return _RESULTS[known.op](known.result)
    if known.op in ("resume", "read_write") and not known.result:
        return inert(known.detail, 160) or _PLAIN[known.op]  # there was nothing to release
    if known.op == "pause" and known.result.get("drained") is False:
        return _DRAINING.format(shown=shown)
    return _PLAIN.get(known.op, "done; what came of it was not told").format(shown=shown)


def _would(known: CommandInfo) -> str:
    result = known.result
    if known.op == "checkpoint":
        totals = result.get("tiers")
        tiers = totals.values() if isinstance(totals, dict) else ()
        parts = [one for one in tiers if isinstance(one, dict)]
        size = sum(_number(one, "bytes") or 0 for one in parts)
        entries = sum(_number(one, "entries") or 0 for one in parts)
        kind = inert(str(result.get("kind", "")), 20)
        return (
            f"dry run: a {kind} checkpoint of tiers that hold {bytes_text(size)}, "
            f"{_entries(entries)}; nothing was written"
        )
    if known.op == "purge":
        return f"dry run: would free {_freed(result)}; nothing was purged"
    return inert(known.detail, 160) or "dry run: it would be done; nothing was"


def _checkpoint(result: Result) -> str:
    kind = inert(str(result.get("kind", "")), 20)
    return f"{kind} checkpoint of {bytes_text(_number(result, 'bytes'))} is on disk".lstrip()


def _purge(result: Result) -> str:
    refused = inert(str(result.get("refused") or ""), 100)
    return f"purged {_freed(result)}" + (f"; not all could go: {refused}" if refused else "")


def _freed(result: Result) -> str:
    places = (("persisted", "to disk"), ("dropped", "made again on demand"), ("deleted", "deleted"))
    parts = [f"{_number(result, name)} {where}" for name, where in places if _number(result, name)]
    counted = _entries(_number(result, "entries") or 0)
    where = f" ({', '.join(parts)})" if parts else ""
    return f"{bytes_text(_number(result, 'freed_bytes'))} in {counted}{where}"


def _reclaim(result: Result) -> str:
    steps = result.get("steps")
    told = [one for one in steps if isinstance(one, dict)] if isinstance(steps, list) else []
    parts = [f"{inert(str(one.get('name')), 30)} {_step(one)}" for one in told]
    head = f"reclaimed {bytes_text(_number(result, 'freed_bytes'))}"
    return head + (f"; {', '.join(parts)}" if parts else "")


def _step(step: Result) -> str:
    return "failed" if step.get("error") else bytes_text(_number(step, "freed_bytes"))


def _abort(result: Result) -> str:
    number = _number(result, "experiment")
    if number is None:
        return f"none was in progress any more, nothing is aborted; {_saved(result)}"
    return f"experiment {number} is aborted; {_saved(result)}"


def _end(result: Result) -> str:
    return f"the run ends; {_saved(result)}"


def _saved(result: Result) -> str:
    saved = result.get("saved")
    saved = saved if isinstance(saved, dict) else {}
    if saved.get("error"):
        return f"its state could not be saved: {inert(str(saved['error']), 100)}"
    name = inert(str(saved.get("id", "")), 60)
    return f"its state is saved: {name}" if name else "its state was not saved again"


_RESULTS: dict[str, Callable[[Result], str]] = {
    "checkpoint": _checkpoint,
    "purge": _purge,
    "reclaim": _reclaim,
    "abort_experiment": _abort,
    "end_run": _end,
}
_DRAINING = (
    "paused: no new experiment begins; the one in progress goes on to its end; "
    "until: memwatch ctl {shown} resume"
)
_PLAIN = {
    "pause": "paused: no new experiment begins; until: memwatch ctl {shown} resume",
    "read_only": "read-only: no change is taken; until: memwatch ctl {shown} read-write",
    "resume": "resumed: experiments begin again",
    "read_write": "read-write: changes are taken again",
}


def _engine(known: CommandInfo, status: Status) -> str:
    if known.op == "engine.mode":
        return will_text(status) if status else "the mode of the engine is set"
    return {
        "engine.approve": "the plan is let go; memwatch status shows its steps",
        "engine.decline": "the plan is declined; nothing was asked of the agent",
        "engine.reset": "the breakers are closed; plans are made again",
    }.get(known.op, "done")


def _number(result: Result, name: str) -> int | None:
    found = result.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _entries(count: int) -> str:
    return f"{count} entr{'y' if count == 1 else 'ies'}"
