"""What takes no commands refuses each of them with its reason, and leaves no trace."""

from __future__ import annotations

import pytest

from memwatch.actuators.actuator import Reach
from memwatch.actuators.none import NoActuator
from memwatch.domain.command import Command
from memwatch.domain.errors import MemwatchError
from memwatch.domain.operations import HOLDS, JOBS, RELEASES

WHY = "a checkpoint store takes no commands"


def test_every_operation_is_refused_with_the_reason() -> None:
    reach: Reach = NoActuator(WHY)
    offers = reach.offers()
    assert set(offers) == {*JOBS, *HOLDS, *RELEASES}
    assert {offer.why_not for offer in offers.values()} == {reach.no_commands} == {WHY}
    with pytest.raises(MemwatchError, match=WHY):
        reach.begin(Command(op="pause", id="c1"), 0)
    assert (reach.has("c1"), reach.answer("c1"), reach.withdraw("c1")) == (False, None, False)


def test_guards_are_told_apart_all_the_same() -> None:
    reach: Reach = NoActuator(WHY)
    reach.claim()
    assert [reach.claim_epoch(6), reach.epoch, reach.alone] == [7, 7, True]
    reach.let_go()
    assert (reach.holds(), reach.keep(0), reach.state()) == ((), (), None)
