"""The five answers to "is it fine?": a word, a figure, and what it means in time.

Words: ok, watch (a remark, the level is still normal), WARN, ACT, CRIT, and "no data", which is
a third answer beside good and bad. Source: screens, requirement D2.
"""

from __future__ import annotations

from memwatch.config.schema import Lights
from memwatch.domain.checkpoints import Checkpoints
from memwatch.domain.level import Level
from memwatch.domain.recovery import RecoveryBudget
from memwatch.domain.snapshot import (
    GONE,
    PAST,
    Disk,
    GuardInfo,
    Light,
    Limits,
    Processes,
    Progress,
    Resource,
    RunInfo,
    Word,
)
from memwatch.domain.units import arrival_text, bytes_text, counted, duration_text, share_text

LEVEL_WORDS: dict[Level, Word] = {
    "normal": "ok",
    "warn": "WARN",
    "intervene": "ACT",
    "emergency": "CRIT",
    "hard": "CRIT",
}

_NO_BUDGET = RecoveryBudget()
_GRAVITY: tuple[Word, ...] = ("ok", "WARN", "ACT", "CRIT")


def age_words(age_s: float, run: RunInfo) -> str:
    """Return an age in whole seconds; of a run that is over, how long before its end it was."""
    words = f"{int(age_s)}s" if age_s < 10 else duration_text(float(int(age_s)))
    if run.state in PAST:
        return f"{words} before end"
    return f"{words} ago" if age_s >= 1 else "now"


def memory_light(memory: Resource | None, limits: Limits, run: RunInfo) -> Light:
    """MEMORY: share of the binding limit, and when it is reached."""
    if memory is None or memory.used is None:
        return Light(name="MEMORY", word="no data", figure="–", meaning="not measured yet")
    if memory.limit is None:
        figure = bytes_text(memory.used)
        return Light(name="MEMORY", word="no data", figure=figure, meaning="no limit known")
    figure = f"{share_text(memory.share)} {bytes_text(memory.used)}/{bytes_text(memory.limit)}"
    word = LEVEL_WORDS[memory.level]
    meaning = ""
    if run.state in PAST:
        meaning = "at the end"
    elif memory.time_to_limit_s is not None:
        low, high = memory.time_to_limit_s
        meaning = f"limit in {arrival_text(low, high)}"
        if word == "ok" and low < 3600:
            word = "watch"
    elif limits.binding is not None:
        meaning = f"limit: {limits.binding.name}"
    return Light(name="MEMORY", word=word, figure=figure, meaning=meaning)


def disk_light(disk: Disk, guard: GuardInfo, settings: Lights, level: Level = "normal") -> Light:
    """DISK: free bytes of the run's file system; CRIT when a guard cannot record.

    `level` is the engine's, where the policy has one for `disk`: the graver of the two is said.
    """
    figure = "–" if disk.free_bytes is None else bytes_text(disk.free_bytes)
    if guard.pid and not guard.recording:
        meaning = f"not recording: {guard.not_recording_why}"
        return Light(name="DISK", word="CRIT", figure=figure, meaning=meaning)
    if disk.free_bytes is None:
        return Light(name="DISK", word="no data", figure="–", meaning="the file system is silent")
    word: Word = "ok"
    if disk.free_bytes < settings.disk_critical_bytes:
        word = "CRIT"
    elif disk.free_bytes < settings.disk_act_bytes:
        word = "ACT"
    elif disk.free_bytes < settings.disk_warn_bytes:
        word = "WARN"
    word = max(word, LEVEL_WORDS[level], key=_GRAVITY.index)
    run = "" if disk.run_bytes is None else f"run holds {bytes_text(disk.run_bytes)}"
    return Light(name="DISK", word=word, figure=figure, meaning=run)


def processes_light(processes: Processes, run: RunInfo, settings: Lights) -> Light:
    """PROCS: how many processes the agent has, and leftovers among them."""
    if run.state in PAST:
        word: Word = "WARN" if processes.count else "ok"
        meaning = f"left behind by {run.agent}" if processes.count else "none is left"
        return Light(name="PROCS", word=word, figure=str(processes.count), meaning=meaning)
    if processes.count == 0:
        return Light(name="PROCS", word="no data", figure="–", meaning="not measured yet")
    word, meaning = "ok", f"{processes.threads} thr"
    if processes.fds is not None:
        meaning += f" · {processes.fds} fds"
    if processes.orphans >= settings.orphans_watch:
        word, meaning = "watch", f"{processes.orphans} left behind by a parent"
    if processes.count >= settings.processes_act:
        word = "ACT"
    elif processes.count >= settings.processes_warn:
        word = "WARN"
    return Light(name="PROCS", word=word, figure=str(processes.count), meaning=meaning)


def checkpoint_light(
    checkpoints: Checkpoints, run: RunInfo, budget: RecoveryBudget = _NO_BUDGET
) -> Light:
    """CKPT: age of the last complete checkpoint, whether it is there, and what is due.

    `budget` is what a crash may cost: once the run is over it costs nothing any more.
    """
    age_s = checkpoints.age_s
    over = budget.over[0] if budget.over and run.state not in PAST else ""
    if age_s is None:
        if over:
            return Light(name="CKPT", word="WARN", figure="none", meaning=f"none yet, {over}")
        if checkpoints.overdue:
            return Light(name="CKPT", word="WARN", figure="none", meaning="none yet, overdue")
        if run.state in PAST:
            return Light(name="CKPT", word="watch", figure="none", meaning="none was ever complete")
        return Light(name="CKPT", word="no data", figure="–", meaning="none yet")
    found = _checkpoint_warning(checkpoints, over), _checkpoint_remark(checkpoints)
    meaning = found[0] or found[1] or due_text(checkpoints)
    word: Word = "WARN" if found[0] else "watch" if found[1] else "ok"
    if not meaning and checkpoints.writing:
        meaning = "one is being written"
    return Light(name="CKPT", word=word, figure=age_words(age_s, run), meaning=meaning)


_BROKEN = {"aborted": "failed", "incomplete": "is incomplete", "damaged": "is damaged"}


def _checkpoint_warning(checkpoints: Checkpoints, over: str) -> str:
    """Return the gravest of what makes a recovery worse than it should be; empty for nothing."""
    if checkpoints.missing:
        return missing_text(checkpoints)
    if over:
        return over
    if checkpoints.overdue:
        return "full overdue" if checkpoints.overdue_kind == "full" else "overdue"
    last = checkpoints.last
    if last is not None and last.state in _BROKEN:
        return f"the newest one {_BROKEN[last.state]}"
    if checkpoints.next_fits is False:
        return "no room for the next"
    return "bloat" if checkpoints.bloat.verdict == "bloat" else ""


def _checkpoint_remark(checkpoints: Checkpoints) -> str:
    """Return what is worth an eye."""
    if checkpoints.bloat.verdict == "watching":
        return "bloat, perhaps"
    return "one is incomplete" if checkpoints.incomplete else ""


def missing_text(checkpoints: Checkpoints) -> str:
    """Return which committed checkpoints are gone from the disk, or are damaged there."""
    gone = [name for name in checkpoints.missing if name not in checkpoints.damaged]
    how = "missing on disk" if gone else "damaged on disk"
    full = any(name.startswith("full") for name in checkpoints.missing)
    if full or checkpoints.last_recoverable_full is None:
        return f"full is {how}"
    count = len(checkpoints.missing)
    return f"{counted(count, 'increment')} {how}"


def due_text(checkpoints: Checkpoints) -> str:
    """Return when the next checkpoint is due: after experiments or a time, which comes first.

    By habit, where no cadence is told, after a time.
    """
    in_s, of, done = (
        checkpoints.due_in_s,
        checkpoints.due_experiments,
        checkpoints.due_experiments_done,
    )
    if in_s is None:
        return ""
    kind = "full" if checkpoints.next_kind == "full" else "next"
    if in_s <= -1:
        return f"late {duration_text(-in_s)}"
    if in_s <= 0 or (of is not None and (done or 0) >= of):
        return f"{kind} due now"
    soon = duration_text(max(round(in_s), 1))
    return f"{kind} in {soon}" if of is None else f"{kind} in {of - (done or 0)} exp or {soon}"


def step_light(
    progress: Progress, run: RunInfo, settings: Lights, *, foreign: bool = False
) -> Light:
    """STEP: age of the last progress; CRIT when the process is gone without a word."""
    age = progress.last_step_s
    figure = "–" if age is None else age_words(age, run)
    if run.state in GONE:
        return Light(name="STEP", word="CRIT", figure=figure, meaning=f"{run.agent} {run.state}")
    if run.state == "ended":
        return Light(name="STEP", word="ok", figure=figure, meaning="run ended")
    if age is None:
        meaning = "checkpoints alone tell no steps" if foreign else "no step yet"
        return Light(name="STEP", word="no data", figure="–", meaning=meaning)
    if run.state in ("paused", "read_only"):
        meaning = run.state.replace("_", "-")
        return Light(name="STEP", word="watch", figure=figure, meaning=meaning)
    meaning = "no sign of life" if run.state == "silent" else "no progress"
    if age >= settings.step_warn_s:
        return Light(name="STEP", word="WARN", figure=figure, meaning=meaning)
    if age >= settings.step_watch_s:
        return Light(name="STEP", word="watch", figure=figure, meaning=meaning)
    return Light(name="STEP", word="ok", figure=figure)
