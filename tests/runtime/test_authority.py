"""The engine acts only by somebody's word, for as long as it was given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memwatch.config.policy import Policy
from memwatch.domain.clock import ManualClock
from memwatch.domain.errors import SessionError
from memwatch.runtime.guard.authority import STOP_FILE, Authority
from tests.builders import T0_US, record


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(T0_US, 0)


@pytest.fixture
def authority(tmp_path: Path, clock: ManualClock) -> Authority:
    authority = Authority(tmp_path, clock)
    authority.follow(Policy(mode="act", allow=("checkpoint",)))
    return authority


def give(authority: Authority, **args: Any) -> None:
    authority.take(authority.give(args, "ctl", "for the night"))


def standing(authority: Authority) -> tuple[str, list[str]]:
    return authority.mode, sorted(authority.allow)


def test_without_a_person_the_policy_says(authority: Authority) -> None:
    assert standing(authority) == ("act", ["checkpoint"])
    assert not authority.asked
    authority.follow(Policy())
    assert standing(authority)[0] == "shadow"
    assert not authority.acts


def test_a_persons_word_goes_before_the_policys(authority: Authority) -> None:
    give(authority, mode="ask", allow=["pause"])
    authority.follow(Policy(mode="act"))
    assert standing(authority) == ("ask", ["pause"])
    assert authority.grant.by == "ctl"
    assert authority.asked
    give(authority, mode="act")
    assert authority.allow == frozenset(Policy().allow)


def test_it_ends_when_its_time_is_over_and_says_so_once(
    authority: Authority, clock: ManualClock
) -> None:
    give(authority, mode="act", until_us=T0_US + 3_600_000_000)
    assert authority.look() == []
    clock.advance_s(3600)
    assert standing(authority)[0] == "shadow"
    assert len(authority.look()) == 1
    assert authority.look() == []
    give(authority, mode="act")
    assert standing(authority)[0] == "act"


def test_the_stop_file_keeps_every_engine_from_acting(authority: Authority, tmp_path: Path) -> None:
    (tmp_path / STOP_FILE).touch()
    assert "no engine acts" in authority.look()[0]
    assert standing(authority)[0] == "shadow"
    assert authority.stop_file == str(tmp_path / STOP_FILE)
    give(authority, mode="observe")
    assert standing(authority)[0] == "observe", "it raises nothing"
    give(authority, mode="act")
    (tmp_path / STOP_FILE).unlink()
    authority.look()
    assert standing(authority)[0] == "act"
    assert authority.stop_file == ""


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"mode": "on"},
        {"mode": True},
        {"mode": "act", "until_us": T0_US},
        {"mode": "act", "until_us": "8h"},
        {"mode": "act", "allow": "pause"},
        {"mode": "act", "allow": ["pause"] * 99},
        {"mode": "act", "allow": ["pause", "checkpont"]},
    ],
)
def test_what_is_no_grant_changes_nothing(authority: Authority, args: dict[str, Any]) -> None:
    with pytest.raises(SessionError):
        authority.give(args, "ctl", "")
    assert not authority.asked


def test_the_next_guard_goes_on_with_it(authority: Authority, tmp_path: Path) -> None:
    give(authority, mode="act", allow=["pause"], until_us=T0_US + 9)
    written = record(1, "engine.mode", **authority.grant.members())
    unreadable = record(2, "engine.mode", mode=[], allow={})
    later = Authority(tmp_path, ManualClock(T0_US, 0))
    later.restore([written, unreadable])
    assert later.grant == authority.grant
