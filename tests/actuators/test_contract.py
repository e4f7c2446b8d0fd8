"""What every actuator promises, asked of the control spool with a real agent."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memwatch.actuators.actuator import Actuator, Answer
from memwatch.actuators.native import NativeActuator
from memwatch.agent import Run, RunOptions
from memwatch.domain.clock import SystemClock
from memwatch.domain.command import FINAL_STATES, Command
from memwatch.wal.manifest import parse_run
from tests.actuators.native_run import a_native_run
from tests.waiting import wait_for

CLOCK = SystemClock()
OPTIONS = RunOptions(agent="tester", sample_s=3600.0)
PURGE = Command(op="purge", id="c1", args={"how": "expired"}, origin="engine")


class World:
    """An actuator and the agent behind it, which comes by at safe points."""

    def __init__(self, folder: Path) -> None:
        self.run = Run.open(folder / "run", OPTIONS)
        ops = parse_run((self.run.path / "run.json").read_bytes()).ops
        native = NativeActuator(self.run.path, self.run.id, ops, CLOCK)
        native.claim_epoch()
        self.actuator: Actuator = native

    def begin(self, command: Command) -> None:
        self.actuator.begin(command, CLOCK.wall_us())

    def ended(self, command_id: str) -> Answer:
        def look() -> Answer | None:
            answer = self.actuator.answer(command_id)
            return answer if answer and answer.state in FINAL_STATES else None

        return wait_for(look, f"the end of {command_id}")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    stop = threading.Event()

    def work() -> None:
        while not stop.wait(0.01):
            made.run.safe_point()

    thread = threading.Thread(target=work, name="agent", daemon=True)
    thread.start()
    yield made
    stop.set()
    thread.join(20)
    made.run.close()


def test_it_has_a_name_for_people(world: World) -> None:
    assert world.actuator.name == "control spool"


def test_what_it_offers_is_offered_and_what_it_lacks_has_a_reason(world: World) -> None:
    offers = world.actuator.offers()
    assert {"checkpoint", "purge", "pause", "resume", "read_only", "read_write"} <= offers.keys()
    assert not offers["purge"].why_not
    assert offers["compact"].why_not


@pytest.mark.parametrize("op", ["checkpoint", "reclaim", "pause", "read_only", "resume"])
def test_what_was_begun_comes_to_an_end(world: World, op: str) -> None:
    world.begin(Command(op=op, id="c1", origin="engine"))
    assert world.ended("c1").state == "done"


def test_nothing_is_known_of_what_was_never_begun(world: World) -> None:
    assert world.actuator.answer("never") is None
    assert not world.actuator.withdraw("never")


def test_the_same_id_is_the_same_request(world: World) -> None:
    for _ in range(3):
        world.begin(PURGE)
    first = world.ended("c1")
    world.begin(PURGE)
    assert world.ended("c1") == first


def test_what_was_done_is_not_taken_back(world: World) -> None:
    world.begin(PURGE)
    before = world.ended("c1")
    assert not world.actuator.withdraw("c1")
    assert world.ended("c1") == before


def test_holds_are_told_as_the_agent_tells_them(world: World) -> None:
    world.begin(Command(op="pause", id="p1", by="tui"))
    wait_for(lambda: [h for h in world.actuator.holds() if h.effective], "a hold in force")
    (hold,) = world.actuator.holds()
    assert (hold.id, hold.op, hold.owner, hold.effective) == ("p1", "pause", "tui", True)


def test_keeping_says_nothing_while_all_is_well(world: World) -> None:
    world.begin(Command(op="pause", id="p1", origin="engine"))
    world.ended("p1")
    for after_us in (0, 1_000_000, 10**9):
        assert world.actuator.keep(CLOCK.boot_us() + after_us) == ()


def tree(folder: Path) -> dict[str, tuple[int, int, int, int]]:
    """Return what changes when anything below a folder is touched."""
    found = {}
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files, "."):
            seen = (Path(place) / name).lstat()
            at = str(Path(place) / name)
            found[at] = (seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
    return found


@contextmanager
def nothing_changes(folder: Path) -> Iterator[None]:
    before = tree(folder)
    yield
    assert tree(folder) == before


def test_the_dry_run_of_a_hold_touches_nothing(tmp_path: Path) -> None:
    native = a_native_run(tmp_path, CLOCK)
    native.begin(Command(op="pause", id="p1", by="tui"), CLOCK.wall_us())
    with nothing_changes(tmp_path):
        for op in ("pause", "read_only", "resume", "read_write"):
            native.begin(Command(op=op, id=op, by="tui", dry_run=True), CLOCK.wall_us())
            answer = native.answer(op)
            assert answer is not None
            assert answer.state == "done"
            assert answer.detail.startswith("dry run: ")
            assert not native.withdraw(op)
