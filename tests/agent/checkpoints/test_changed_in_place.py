"""Values that the agent changes in place: what is committed is what the log says, always."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memwatch.agent.checkpoints import lines as module
from memwatch.agent.checkpoints.checkpointer import Kind
from memwatch.agent.memory.entry import Entry
from tests.agent.checkpoints.bench import Bench


class Interloper:
    """Changes a value at the moment when the checkpoint's thread looks at it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.act: Callable[[], None] = lambda: None
        original = module.Lines._text

        def text(lines: module.Lines, tier: str, entry: Entry) -> Any:
            act, self.act = self.act, lambda: None
            act()
            return original(lines, tier, entry)

        monkeypatch.setattr(module.Lines, "_text", text)


@pytest.fixture
def interloper(monkeypatch: pytest.MonkeyPatch) -> Interloper:
    return Interloper(monkeypatch)


@pytest.mark.parametrize("kind", ["full", "incremental"])
def test_a_change_that_was_never_put_is_logged_and_named(bench: Bench, kind: Kind) -> None:
    bench.checkpoints.take("full")
    history = [1, 2, 3]
    bench.tiers["recent"].put("h", history)
    history.append(4)
    assert bench.checkpoints.take(kind).committed
    (abort,) = bench.records("checkpoint.abort")
    assert "'h' of tier recent" in abort.text("reason")
    (error,) = bench.records("error")
    assert (error.text("kind"), error.text("key")) == ("changed_in_place", "h")
    bench.check()
    assert bench.recover()[0]["recent"]["h"] == [1, 2, 3, 4]


def test_it_happens_once_a_key(bench: Bench) -> None:
    history = [1]
    bench.tiers["recent"].put("h", history)
    history.append(2)
    bench.checkpoints.take("full")
    for number in (3, 4):
        history.append(number)
        assert bench.checkpoints.take("full").committed
        history.append(number)
        bench.tiers["recent"].put("h", history)
        bench.check()
    assert len(bench.records("checkpoint.abort")) == 1
    assert bench.recover()[0]["recent"]["h"] == [1, 2, 3, 3, 4, 4]


def test_a_change_that_is_put_while_it_is_written(bench: Bench, interloper: Interloper) -> None:
    history = [1]
    bench.tiers["recent"].put("h", history)

    def append_and_put() -> None:
        history.append(2)
        bench.tiers["recent"].put("h", history)

    interloper.act = append_and_put
    outcome = bench.checkpoints.take("full")
    assert outcome.committed
    bench.check()
    assert bench.records("error") == [], "the agent did all that it must"
    assert bench.recover()[0]["recent"]["h"] == [1, 2]


def test_one_that_changes_again_and_again_ends_the_attempt(
    bench: Bench, interloper: Interloper
) -> None:
    values: list[list[int]] = [[n] for n in range(9)]
    for number, value in enumerate(values):
        bench.tiers["recent"].put(f"h{number}", value)
    left = list(values)

    def change_the_next() -> None:
        left.pop().append(99)
        interloper.act = change_the_next if left else lambda: None

    interloper.act = change_the_next
    outcome = bench.checkpoints.take("full")
    assert outcome.committed or "changed in place" in outcome.reason
    assert bench.checkpoints.take("full").committed
    bench.check()


@pytest.mark.parametrize("bad", [float("nan"), object(), "\ud800"])
def test_one_that_no_log_can_hold_any_more_aborts_and_is_named(bench: Bench, bad: object) -> None:
    value: dict[str, Any] = {"n": 1}
    bench.tiers["recent"].put("fine", 1)
    bench.tiers["recent"].put("h", value)
    value["n"] = bad
    outcome = bench.checkpoints.take("full")
    assert not outcome.committed
    assert "'h' of tier recent" in outcome.reason
    assert bench.names() == []
    bench.tiers["recent"].put("h", {"n": 2})
    assert bench.checkpoints.take("full").committed
    bench.check()


def test_a_large_value_changed_in_place_is_found_too(bench: Bench) -> None:
    value = {"text": "x" * 5000}
    bench.tiers["recent"].put("h", value)
    value["text"] = "y" * 5000
    assert bench.checkpoints.take("full").committed
    bench.check()
    assert bench.recover()[0]["recent"]["h"] == {"text": "y" * 5000}


def hold_itself(value: dict[str, Any]) -> None:
    value["self"] = value


def hold_nan(value: dict[str, Any]) -> None:
    value["loss"] = float("nan")


def hold_an_object(value: dict[str, Any]) -> None:
    value["file"] = object()


SPOIL = (hold_itself, hold_nan, hold_an_object)


@pytest.mark.parametrize("spoil", SPOIL)
@pytest.mark.parametrize("kind", ["full", "incremental"])
def test_a_value_that_became_unkeepable_is_saved_as_it_was_logged(
    bench: Bench, kind: Kind, spoil: Callable[[dict[str, Any]], None]
) -> None:
    bench.tiers["recent"].put("other", 1)
    bench.checkpoints.take("full")
    value: dict[str, Any] = {"text": "x" * 5_000}
    bench.tiers["recent"].put("large", value)
    spoil(value)
    bench.tiers["recent"].put("other", 2)
    for _ in range(2):
        assert bench.checkpoints.take(kind).committed
    assert bench.recover()[0]["recent"]["large"] == {"text": "x" * 5_000}
    bench.check()
    told = bench.records("error")[0]
    assert (told.text("tier"), told.text("key")) == ("recent", "large")
    assert "put it again" in told.text("message")
    bench.tiers["recent"].put("large", {"text": "y" * 5_000})
    assert bench.checkpoints.take(kind).committed
    bench.check()


@pytest.mark.parametrize("spoil", SPOIL)
def test_one_whose_text_nobody_has_any_more_is_named(
    bench: Bench, spoil: Callable[[dict[str, Any]], None]
) -> None:
    value: dict[str, Any] = {"n": 1}
    bench.tiers["recent"].put("small", value)
    spoil(value)
    outcome = bench.checkpoints.take("full")
    assert not outcome.committed
    assert "'small' of tier recent" in outcome.reason
    assert "put it again" in outcome.reason
    (abort,) = bench.records("checkpoint.abort")
    assert "put it again" in abort.text("reason")
    bench.tiers["recent"].put("small", {"n": 2})
    assert bench.checkpoints.take("full").committed
    bench.check()
