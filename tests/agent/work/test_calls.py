"""External calls: none is made twice after a crash, and none is answered from another's past."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from memwatch.domain.errors import CallInDoubtError, LogError, ReadOnlyError, UnkeepableError
from tests.agent.work.desk import Desk
from tests.faults.failing_files import FailingFiles


class Reply(Struct):
    text: str
    score: float


class Service:
    """Counts how often it was really asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked = 0

    def __call__(self) -> Any:
        self.asked += 1
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def later(self) -> Any:
        return self()


class Died(BaseException):
    """The agent was killed here."""


BIG = "x" * 10_000


def test_a_call_is_logged_before_and_after(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.begin()
    assert desk.calls.call("model", {"prompt": "hi"}, Service({"text": "ho"})) == {"text": "ho"}
    assert desk.calls.call("disk", {}, Service(1), paid=False) == 1
    begun, done, *_ = (record.members for record in desk.records("call"))
    assert (begun["state"], begun["service"], begun["paid"], begun["x"]) == (
        "begun",
        "model",
        True,
        1,
    )
    assert begun["id"] == done["id"]
    assert begun["request"] == done["request"]
    assert (done["state"], done["value"]) == ("done", {"text": "ho"})
    assert desk.synced == 1, "only what is paid is on the device before it is made"


@pytest.mark.parametrize("answer", [7, None, BIG, b"\0\1", Reply("yes", 1.0), [BIG, {"a": None}]])
@pytest.mark.parametrize("within", [True, False])
def test_the_next_start_is_answered_from_the_log(
    tmp_path: Path, answer: object, within: bool
) -> None:
    first = Desk(tmp_path, types=(Reply,))
    if within:
        first.begin()
    first.calls.call("model", {"prompt": BIG}, Service(answer))
    for _ in range(3):  # and so is the one after that, should this one die as well
        second, service = Desk(tmp_path, types=(Reply,)), Service()
        if within:
            second.begin()
        assert second.calls.call("model", {"prompt": BIG}, service) == answer
        assert service.asked == 0
    assert second.calls.call("model", {"prompt": "other"}, Service(2)) == 2
    assert second.calls.call("model", {"prompt": BIG}, Service(3)) == 3, "each answers once"


def test_an_answer_is_for_the_place_that_asked(tmp_path: Path) -> None:
    first = Desk(tmp_path)
    first.calls.call("model", 1, Service("outside"))
    first.begin()
    first.calls.call("model", 1, Service("inside"))
    second = Desk(tmp_path)
    second.begin()
    assert second.calls.call("model", 1, Service()) == "inside"
    assert second.calls.call("other", 1, Service("new")) == "new"
    second.end("kept")
    assert second.calls.call("model", 1, Service()) == "outside"
    second.begin()
    assert second.calls.call("model", 1, Service("new")) == "new", "settled by the one before"


def test_a_call_made_outside_is_not_settled_by_an_experiment_that_began_before_its_answer(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)

    def meanwhile() -> int:
        desk.begin()
        return 7

    assert desk.calls.call("model", {"prompt": "hi"}, meanwhile) == 7
    desk.end("done")
    again = Desk(tmp_path)
    assert again.calls.call("model", {"prompt": "hi"}, pytest.fail) == 7


def test_a_second_attempt_of_the_same_start_finds_the_answers_again(tmp_path: Path) -> None:
    first = Desk(tmp_path)
    first.begin()
    first.calls.call("model", 1, Service("paid"))
    second = Desk(tmp_path)
    for _ in range(2):
        second.begin()
        assert second.calls.call("model", 1, Service()) == "paid"
        second.end("failed")
    third = Desk(tmp_path)
    third.begin()
    assert third.calls.call("model", 1, Service()) == "paid"


def test_what_a_failed_experiment_was_answered_is_for_the_next_start_only(tmp_path: Path) -> None:
    first = Desk(tmp_path)
    first.begin()
    first.calls.call("model", 1, Service("one"))
    first.end("failed")
    first.begin()
    assert first.calls.call("model", 1, Service("two")) == "two"
    first.end("failed")
    second = Desk(tmp_path)
    second.begin()
    assert second.calls.call("model", 1, Service()) == "two"


def test_a_paid_call_in_doubt_is_not_repeated_by_itself(tmp_path: Path) -> None:
    first = Desk(tmp_path)
    first.begin()
    with pytest.raises(Died):
        first.calls.call("model", 1, Service(Died()))
    for _ in range(2):
        desk, service = Desk(tmp_path), Service("again")
        desk.begin()
        for _ in range(2):
            with pytest.raises(CallInDoubtError, match=r"a paid call to model .* in_doubt"):
                desk.calls.call("model", 1, service)
        assert service.asked == 0
    assert desk.calls.call("model", 1, service, in_doubt="repeat") == "again"
    last = Desk(tmp_path)
    last.begin()
    assert last.calls.call("model", 1, Service()) == "again", "and is in doubt no longer"


def test_a_free_call_in_doubt_is_made_again(tmp_path: Path) -> None:
    first = Desk(tmp_path)
    with pytest.raises(Died):
        first.calls.call("disk", 1, Service(Died()), paid=False)
    assert Desk(tmp_path).calls.call("disk", 1, Service("again"), paid=False) == "again"


def test_a_call_that_failed_is_made_again(tmp_path: Path) -> None:
    first = Desk(tmp_path)
    with pytest.raises(ValueError, match="busy"):
        first.calls.call("model", 1, Service(ValueError("busy")))
    assert first.calls.call("model", 1, Service("well")) == "well"
    assert [r.text("state") for r in first.records("call")] == ["begun", "failed", "begun", "done"]
    assert Desk(tmp_path).calls.call("model", 1, Service()) == "well"


async def test_awaited_calls_do_the_same(tmp_path: Path) -> None:
    first = Desk(tmp_path)
    assert await first.calls.call_async("model", 1, Service("one").later) == "one"
    with pytest.raises(Died):
        await first.calls.call_async("model", 2, Service(Died()).later)
    second, service = Desk(tmp_path), Service()
    assert await second.calls.call_async("model", 1, service.later) == "one"
    with pytest.raises(CallInDoubtError):
        await second.calls.call_async("model", 2, service.later)
    assert service.asked == 0


def test_what_cannot_be_kept_is_refused_before_or_told_after(tmp_path: Path) -> None:
    desk, service = Desk(tmp_path), Service(object())
    with pytest.raises(UnkeepableError):
        desk.calls.call("model", object(), service)
    assert service.asked == 0
    with pytest.raises(UnkeepableError):
        desk.calls.call("model", 1, service)
    assert [r.text("state") for r in desk.records("call")] == ["begun", "failed"]


def test_nothing_is_called_where_nothing_may_change(tmp_path: Path) -> None:
    desk, service = Desk(tmp_path), Service(1)
    desk.read_only()
    with pytest.raises(ReadOnlyError):
        desk.calls.call("model", 1, service)
    assert (service.asked, desk.records("call")) == (0, [])


def test_nothing_is_called_that_could_not_be_logged(tmp_path: Path) -> None:
    files = FailingFiles()
    desk, service = Desk(tmp_path, files=files), Service(1)
    files.fail_all("write")
    with pytest.raises(LogError):
        desk.calls.call("model", 1, service)
    assert service.asked == 0


def test_blobs_of_settled_calls_are_let_go(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.begin()
    desk.calls.call("model", 1, Service(BIG))
    (blob,) = (tmp_path / "run/blobs").iterdir()
    assert desk.journal.blobs() == [blob.name]
    assert desk.blobs.collect(desk.context.log.last_lsn) == (0, 0)
    desk.end("done")
    assert desk.journal.blobs() == []
    assert desk.blobs.collect(desk.context.log.last_lsn)[0] == 1
