"""The queue of a channel under a clock that moves when told: retries, quiet hours, overflow."""

from __future__ import annotations

import threading

from memwatch.actuators.notify.deliver import Outcome
from memwatch.actuators.notify.notice import Notice, NoticeState
from memwatch.actuators.notify.outbox import MOST_WAITING, Attempt, Outbox
from memwatch.domain.clock import ManualClock
from tests.waiting import until

OK = Outcome(ok=True, detail="answered 200")
DOWN = Outcome(ok=False, detail="connection refused")
REFUSED = Outcome(ok=False, detail="answered 403 Forbidden", again=False)


def notice(key: str = "memory", state: NoticeState = "raised", text: str = "t") -> Notice:
    return Notice(key=key, state=state, severity="warning", text=text, run="r")


class Channel:
    """An outbox whose other end a test plays."""

    def __init__(self, retries: int = 5) -> None:
        self.clock = ManualClock()
        self.outcome = OK
        self.quiet = False
        self.sent: list[Notice] = []
        self.log: list[Attempt] = []
        self.box = Outbox(
            "ntfy",
            self._send,
            self.clock,
            retries=retries,
            quiet=lambda one, _: self.quiet and one.key != "crashed",
            log=self.log.append,
        )

    def _send(self, one: Notice) -> Outcome:
        self.sent.append(one)
        return self.outcome

    def told(self) -> list[tuple[str, str, int, float | None]]:
        return [(it.key, it.state, it.tries, it.again_s) for it in self.log]


def test_what_is_put_in_is_sent_once_in_order_and_logged() -> None:
    channel = Channel()
    channel.box.put(notice("a"))
    channel.box.put(notice("b"))
    assert channel.box.info.waiting == 2
    assert channel.box.turn() is None
    assert channel.box.turn() is None
    assert [one.key for one in channel.sent] == ["a", "b"]
    assert channel.told() == [("a", "sent", 1, None), ("b", "sent", 1, None)]
    info = channel.box.info
    assert (info.state, info.detail, info.waiting) == ("sent", "answered 200", 0)
    assert info.at_us == channel.clock.wall_us()


def test_it_is_tried_again_later_and_later_and_given_up() -> None:
    channel = Channel(retries=5)
    channel.outcome = DOWN
    channel.box.put(notice())
    waits: list[float] = []
    while (wait_s := channel.box.turn()) is not None:
        waits.append(wait_s)
        channel.clock.advance_s(wait_s - 0.001)
        tries = len(channel.sent)
        channel.box.turn()
        assert len(channel.sent) == tries, "not before its time"
        channel.clock.advance_s(0.001)
    assert waits == [5.0, 15.0, 45.0, 135.0, 405.0]
    assert channel.told() == [
        ("memory", "failed", n, again_s) for n, again_s in enumerate([*waits, None], start=1)
    ]
    assert channel.box.info.waiting == 0


def test_what_is_refused_for_good_is_not_tried_again() -> None:
    channel = Channel()
    channel.outcome = REFUSED
    channel.box.put(notice())
    assert channel.box.turn() is None
    assert channel.told() == [("memory", "failed", 1, None)]


def test_one_that_waits_delays_no_other() -> None:
    channel = Channel()
    channel.outcome = DOWN
    channel.box.put(notice("a"))
    channel.box.turn()
    channel.outcome = OK
    channel.box.put(notice("b"))
    assert channel.box.turn() == 5.0
    assert channel.told()[-1] == ("b", "sent", 1, None)


def test_a_newer_notice_takes_the_place_of_one_that_was_not_sent() -> None:
    channel = Channel()
    channel.outcome = DOWN
    channel.box.put(notice(text="intervene"))
    channel.box.turn()
    channel.outcome = OK
    channel.box.put(notice(state="cleared", text="intervene"))
    assert channel.box.turn() is None
    assert [one.state for one in channel.sent] == ["raised", "cleared"]


def test_quiet_hours_hold_what_is_not_grave_and_tell_its_end_alone() -> None:
    channel = Channel()
    channel.quiet = True
    channel.box.put(notice("memory"))
    channel.box.put(notice("disk"))
    channel.box.put(notice("crashed"))
    assert channel.box.turn() == 30.0, "it looks again: a clock may be set"
    assert channel.box.turn() == 30.0
    assert [one.key for one in channel.sent] == ["crashed"]
    assert channel.told() == [
        ("memory", "held", 0, None),
        ("disk", "held", 0, None),
        ("crashed", "sent", 1, None),
    ]
    channel.box.put(notice("memory", "cleared"))
    channel.box.turn()
    channel.quiet = False
    assert channel.box.turn() is None
    assert [(it.key, it.state) for it in channel.sent[1:]] == [
        ("disk", "raised"),
        ("memory", "cleared"),
    ]


def test_a_test_is_sent_in_quiet_hours_and_remembered() -> None:
    channel = Channel()
    channel.quiet = True
    channel.outcome = REFUSED
    channel.box.put(notice("test", "test"))
    channel.box.turn()
    assert (channel.box.info.state, channel.box.info.tested_us) == ("failed", None)
    channel.outcome = OK
    channel.box.put(notice("test", "test"))
    channel.box.turn()
    assert channel.box.info.tested_us == channel.clock.wall_us()


def test_too_many_cost_the_oldest() -> None:
    channel = Channel()
    channel.quiet = True
    for place in range(MOST_WAITING + 10):
        channel.box.put(notice(f"k{place}"))
    assert (channel.box.info.waiting, channel.box.info.dropped) == (MOST_WAITING, 10)
    channel.quiet = False
    channel.box.turn()
    assert [channel.sent[0].key, len(channel.sent)] == ["k10", MOST_WAITING]


def test_the_thread_sends_what_comes_and_ends_while_the_other_end_hangs() -> None:
    clock, release, begun = ManualClock(), threading.Event(), threading.Event()
    sent: list[str] = []

    def send(one: Notice) -> Outcome:
        begun.set()
        if one.key == "hangs":
            release.wait(20)
        sent.append(one.key)
        return OK

    box = Outbox("json", send, clock)
    box.start()
    box.put(notice("a"))
    until(lambda: sent == ["a"])
    begun.clear()
    box.put(notice("hangs"))
    assert begun.wait(20)
    box.put(notice("b"))
    box.stop()
    release.set()
    assert box.stopping.is_set()
    until(lambda: not any(t.name == "memwatch-notify-json" for t in threading.enumerate()))
    assert sent == ["a", "hangs"], "what waits is for the next guard"
