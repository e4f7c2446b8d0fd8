"""A loop that fails is told and tried again; one that ends, or is ended, is over."""

from __future__ import annotations

import threading

import pytest

from memwatch.runtime.lasting import lasting


def test_it_is_tried_again_until_it_ends(capfd: pytest.CaptureFixture[str]) -> None:
    told: list[str] = []
    outcomes = iter([ValueError("one"), OSError("two"), None])

    def loop() -> None:
        outcome = next(outcomes)
        if outcome is not None:
            raise outcome

    lasting("measuring", loop, threading.Event(), told.append, first_s=0.01)
    assert [text.partition(" (")[2] for text in told] == ["ValueError: one)", "OSError: two)"]
    assert all(text.startswith("measuring failed, tried again in ") for text in told)
    assert "Traceback" in capfd.readouterr().err, "guard.log says more"


def test_who_is_told_to_stop_does_not_wait() -> None:
    stop = threading.Event()
    told: list[str] = []

    def loop() -> None:
        stop.set()
        raise ValueError("while it ends")

    lasting("measuring", loop, stop, told.append, first_s=600)
    assert len(told) == 1


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_what_ends_programs_ends_it(error: type[BaseException]) -> None:
    def loop() -> None:
        raise error

    with pytest.raises(error):
        lasting("measuring", loop, threading.Event(), pytest.fail, first_s=600)
