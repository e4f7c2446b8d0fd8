"""Between a session that blocks and a screen that must not."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from textual.message import Message

from memwatch.domain.clock import SystemClock
from memwatch.domain.command import Command
from memwatch.domain.errors import SessionError
from memwatch.runtime.protocol.numbers import GuardSilentError
from memwatch.ui.bridge import Bridge
from memwatch.ui.messages import Answered, SnapshotReady
from tests.ui.fake_session import FakeRun, FakeSession
from tests.waiting import until


class Listener:
    """Keeps what was posted."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    def post(self, message: Message) -> bool:
        self.messages.append(message)
        return True

    @property
    def answers(self) -> list[Answered]:
        return [m for m in self.messages if isinstance(m, Answered)]


@pytest.fixture
def run() -> FakeRun:
    return FakeRun(SystemClock())


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def bridge(run: FakeRun, listener: Listener) -> Iterator[Bridge]:
    found = Bridge(run.connect, listener.post, refresh_s=0.01)
    found.start()
    yield found
    found.stop()


def test_the_newest_snapshot_wins_and_is_taken_once(bridge: Bridge, listener: Listener) -> None:
    until(lambda: len(listener.messages) >= 5)
    first = bridge.take()
    assert first is not None
    assert first.seq >= 4  # those before it were never looked at
    assert all(isinstance(message, SnapshotReady) for message in listener.messages)


def test_a_lost_guard_is_told_and_found_again(
    bridge: Bridge, run: FakeRun, listener: Listener
) -> None:
    until(lambda: bridge.link.state == "live")
    run.down = True
    until(lambda: bridge.link.state == "lost")
    assert bridge.link.why in ("the guard hung up", "no guard listens")
    bridge.take()
    run.down = False
    until(lambda: bridge.link.state == "live")
    until(lambda: bridge.take() is not None)


def test_the_age_of_the_data_grows_while_nothing_comes(bridge: Bridge, run: FakeRun) -> None:
    until(lambda: bridge.link.state == "live")
    run.silent = True
    until(lambda: bridge.link.age_s > 1.2)
    assert bridge.link.state == "live"
    assert bridge.link.quiet_s < bridge.link.age_s, "an answer without news is a sign of life"


def test_a_guard_that_hangs_gives_no_sign_of_life(bridge: Bridge, run: FakeRun) -> None:
    until(lambda: bridge.link.state == "live")
    run.hangs.set()
    until(lambda: bridge.link.quiet_s > 0.2)
    run.hangs.clear()
    until(lambda: bridge.link.quiet_s < 0.1)


def test_a_guard_that_is_there_and_does_not_answer_is_not_called_gone(
    listener: Listener,
) -> None:
    def connect() -> FakeSession:
        raise GuardSilentError("the guard is there and does not answer")

    bridge = Bridge(connect, listener.post, refresh_s=0.01)
    bridge.start()
    until(lambda: bridge.link.state == "silent")
    bridge.stop()


def test_a_job_is_answered(bridge: Bridge, listener: Listener) -> None:
    bridge.ask("chart", lambda session: len(session.series("memory", 0, 100, 10)))
    until(lambda: listener.answers)
    answer = listener.answers[0]
    assert (answer.slot, answer.answer, answer.error) == ("chart", 10, "")
    until(lambda: bridge.unanswered == 0)


def test_an_older_question_of_the_same_slot_is_dropped(bridge: Bridge, listener: Listener) -> None:
    go_on = threading.Event()
    bridge.ask("other", lambda _: go_on.wait(5))
    done: list[int] = []
    for value in range(5):
        bridge.ask("chart", lambda _, value=value: done.append(value))  # type: ignore[misc]  # bound now
    go_on.set()
    until(lambda: len(listener.answers) == 2)
    assert done == [4]


def test_requests_in_slots_of_their_own_all_arrive(bridge: Bridge, run: FakeRun) -> None:
    command = Command(op="checkpoint")
    for number in range(3):
        bridge.ask(f"request {number}", lambda session: session.submit(command))
    until(lambda: len(run.submitted) == 3)


def test_a_broken_job_is_told_and_the_next_one_works(bridge: Bridge, listener: Listener) -> None:
    bridge.ask("chart", lambda _: 1 // 0)
    until(lambda: listener.answers)
    assert "zero" in listener.answers[0].error
    bridge.ask("chart", lambda _: 7)
    until(lambda: len(listener.answers) == 2)
    assert listener.answers[1].answer == 7


def test_a_session_is_used_by_one_thread_only(listener: Listener, run: FakeRun) -> None:
    users: dict[int, set[str]] = {}

    class Watched(FakeSession):
        def _check(self) -> None:
            users.setdefault(id(self), set()).add(threading.current_thread().name)

    kept: list[Watched] = []

    def connect() -> Watched:
        kept.append(Watched(run))
        return kept[-1]

    bridge = Bridge(connect, listener.post, refresh_s=0.01)
    bridge.start()
    bridge.ask("chart", lambda session: session.series("memory", 0, 100, 10))
    until(lambda: listener.answers and len(listener.messages) > 3)
    bridge.stop()
    assert all(len(names) == 1 for names in users.values())
    assert {name for names in users.values() for name in names} == {
        "viewer-snapshots",
        "viewer-jobs",
    }


def test_stopping_does_not_wait_for_the_other_end(listener: Listener, run: FakeRun) -> None:
    hangs = threading.Event()

    class Hanging(FakeSession):
        def latest(self, after_seq: int, timeout_s: float) -> None:
            hangs.wait(30)
            raise SessionError("hung up")

    bridge = Bridge(lambda: Hanging(run), listener.post, refresh_s=0.01)
    bridge.start()
    bridge.stop()  # returns although `latest` never does
    threads = [t for t in threading.enumerate() if t.name.startswith("viewer-")]
    assert all(thread.daemon for thread in threads)
    hangs.set()


def test_a_closed_screen_ends_the_threads(run: FakeRun) -> None:
    def closed(_message: Message) -> bool:
        raise RuntimeError("Event loop is closed")

    before = {t for t in threading.enumerate() if t.name == "viewer-snapshots"}
    bridge = Bridge(run.connect, closed, refresh_s=0.01)
    bridge.start()
    until(
        lambda: (
            not {
                t for t in threading.enumerate() if t.name == "viewer-snapshots" and t not in before
            }
        )
    )
    bridge.stop()
