"""What the library writes is what the format says: `memwatch.wal.codec` is its reference."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from memwatch.agent import Cadence, Keep, Run, RunOptions
from memwatch.domain.clock import SystemClock
from memwatch.domain.record import Record
from memwatch.wal import codec
from tests.agent.control.sending import a_command, publish, state_of
from tests.agent.reading import read_log
from tests.waiting import until

UNSEEN = {"checkpoint.abort", "mode"}
"""Kinds that no run of this kind brings."""
COMMON = {"lsn", "t", "m", "k", "x", "th", "crc"}
CONTENT = {"value", "blob", "blob_bytes", "rebuildable", "source", "diff", "from"}
"""Members of a `put` or `update`, which the page describes in words."""
KEEP = {"recent": Keep(experiments=2, demote_to="history", bytes=6_000), "history": Keep()}
NEVER = Cadence(incremental_experiments=10**6, incremental_s=1e9, full_s=1e9)


@dataclass
class Shape:
    """The class of a value that is not plain."""

    sides: int


def stated() -> dict[str, set[str]]:
    """Return the members of each kind as the table of the page states them."""
    assert codec.__doc__ is not None
    table = codec.__doc__.split("left out):\n\n")[1].split("\n\n")[0]
    rows = re.sub(r"\n {8,}", " ", table).splitlines()
    named = [re.findall(r"[a-z][a-z0-9_.]*", row) for row in rows]
    return {kind: set(members) for kind, *members in named}


def test_the_table_has_every_kind_once() -> None:
    assert {"run.begin", "put", "checkpoint.commit", "purge.end", "note"} <= set(stated())
    assert "stall_us" in stated()["checkpoint.commit"]


@pytest.fixture
def records(tmp_path: Path) -> list[Record]:
    """The log of an agent that breaks off once, and does what there is to do."""
    path, workspace = tmp_path / "run", tmp_path / "workspace"
    options = RunOptions(
        agent="a",
        keep=KEEP,
        memory_limit_bytes=10**9,
        types=(Shape,),
        builders={"ones": lambda count: [1] * count},
        workspace=workspace,
        cadence=NEVER,
    )
    run = Run.open(path, options)
    for number in range(1, 5):
        with run.experiment(f"number {number}", phase="exploration") as experiment:
            experiment.metrics["ratio"] = 2.5
            act(run, number)
    obey(run, "checkpoint", {"kind": "full"})
    obey(run, "purge", {"how": "oldest"})
    run.note("half-way")
    run.error("odd", "nothing bad", place="here")
    run.tiers["history"].delete("gone")
    run.experiment("cut short").__enter__()
    run.tiers["recent"].build("built/last", "ones", count=9)
    run.checkpoints.take("experiment")
    run.call("model", "why?", lambda: "because")
    run.close("crashed", "for the test")
    (workspace / "a.txt").unlink()
    before = read_log(path / "wal")[0]
    with Run.open(path, options) as run:
        run.call("model", "why?", lambda: "because")
        run.checkpoints.take("full")
    return before + read_log(path / "wal")[0]


def obey(run: Run, op: str, args: dict[str, str]) -> None:
    command = a_command(SystemClock(), op, op=op, run_id=run.id, args=args)
    publish(run.path, command)

    def done() -> bool:
        run.safe_point()
        return state_of(run.path, op) == "done"

    until(done)


def act(run: Run, number: int) -> None:
    """Put values of every form, call, and write."""
    recent, history = run.tiers["recent"], run.tiers["history"]
    with run.step("look"), run.tool("measure") as call:
        call.bytes_out = 10
    recent.put(f"small/{number}", {"number": number}, tokens=7, importance=0.9, ttl_s=600)
    recent.put(f"large/{number}", "y" * 5_000)
    recent.put(f"shape/{number}", Shape(number), experiment=max(number - 1, 1))
    recent.build(f"built/{number}", "ones", count=number)
    recent.get(f"small/{number}")
    history.put("gone", number)
    history.put("grows", [{"step": at, "text": "some words"} for at in range(20 + number)])
    run.write_file("a.txt", f"{number}")
    run.call("model", {"prompt": number}, lambda: "z" * 5_000)


def test_every_record_of_a_run_is_as_the_page_says(records: list[Record]) -> None:
    table = stated()
    for record in records:
        known = table[record.kind] | COMMON
        known |= CONTENT if record.kind in ("put", "update") else set()
        if record.kind != "error":  # there the agent adds what it likes
            assert set(record.members) <= known, record
    assert set(table) - {record.kind for record in records} == UNSEEN
    content = [set(record.members) & CONTENT for record in records if record.kind == "update"]
    assert {"diff", "from"} in content
