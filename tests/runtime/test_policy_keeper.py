"""A changed policy is taken over while the guard runs; a broken one changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from memwatch.config.load import named_profile
from memwatch.runtime.guard.policy_keeper import LOOK_US, PolicyKeeper

OPS = frozenset({"checkpoint", "purge", "reclaim", "pause", "read_only", "abort_experiment"})
CHANGED = "thresholds:\n  intervene: 0.8\n"


class Bench:
    """A keeper on a clock that the test moves, and one file that it follows."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "home" / "policy.yaml"
        self.file.parent.mkdir()
        self.run_dir = folder / "run"
        self.run_dir.mkdir()
        self.m_us = 0
        self.keeper = self.begin()

    def begin(self) -> PolicyKeeper:
        return PolicyKeeper(
            named_profile("native"), self.run_dir, self.file.parent, None, OPS | {"retain"}
        )

    def look(self) -> dict[str, object] | None:
        self.m_us += LOOK_US
        return self.keeper.look(self.m_us)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return Bench(tmp_path)


def test_nothing_changed_is_nothing_told(bench: Bench) -> None:
    assert bench.look() is None
    assert bench.keeper.of("verification") != bench.keeper.of(None)


def test_a_change_is_taken_over_and_named(bench: Bench) -> None:
    bench.file.write_text(CHANGED)
    told = bench.look()
    assert told is not None
    assert told["error"] == ""
    named = ("thresholds.intervene", "exit.intervene")  # the exit follows a threshold that was set
    assert told["changed"] == [*named, *(f"phases.verification.{name}" for name in named)]
    assert bench.keeper.of(None).thresholds.intervene == 0.8
    bench.file.unlink()
    assert bench.look() is not None
    assert bench.keeper.of(None).thresholds.intervene == 0.75


def test_a_broken_one_is_said_once_and_the_one_before_stays(bench: Bench) -> None:
    bench.file.write_text(CHANGED)
    bench.look()
    bench.file.write_text("thresholds:\n  warm: 0.4\n")
    told = bench.look()
    assert told is not None
    assert "warm" in str(told["error"])
    assert bench.keeper.error == told["error"]
    assert bench.keeper.of(None).thresholds.intervene == 0.8
    assert bench.look() is None
    bench.file.write_text(CHANGED)
    told = bench.look()
    assert told is not None
    assert (told["error"], told["changed"], bench.keeper.error) == ("", [], "")


def test_a_guard_begins_whatever_its_files_hold(bench: Bench) -> None:
    bench.file.write_text("mode: [")
    keeper = bench.begin()
    assert keeper.error
    assert keeper.of(None).mode == "shadow"
    bench.file.write_text("mode: observe\n")
    assert keeper.look(LOOK_US) is not None
    assert keeper.of(None).mode == "observe"


def test_looks_are_bounded(bench: Bench) -> None:
    bench.look()
    bench.file.write_text("mode: observe\n")
    assert bench.keeper.look(bench.m_us + LOOK_US - 1) is None
    assert bench.keeper.look(bench.m_us + LOOK_US) is not None


def test_another_agent_may_lack_something_else(bench: Bench) -> None:
    assert "retain" not in bench.keeper.book.missing
    bench.keeper.follow_agent(frozenset({"checkpoint", "pause", "read_only"}))
    bench.look()
    assert "purge" in bench.keeper.book.missing
