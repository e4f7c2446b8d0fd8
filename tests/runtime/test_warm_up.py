"""Nothing is foretold from the way up that each start begins with."""

from __future__ import annotations

from tests.runtime.watched import BOOT, MB, Watched


def arrival(watched: Watched) -> tuple[float, float] | None:
    memory = watched.snapshot().resource("memory")
    return memory.time_to_limit_s if memory else None


def test_no_time_to_limit_within_the_first_window_of_a_run() -> None:
    watched = Watched()
    watched.begin(limits={"memory_bytes": 300 * MB})
    watched.live(9, 25 * MB, grow=10 * MB)
    assert arrival(watched) is None
    watched.live(3, 115 * MB, grow=10 * MB)
    assert arrival(watched) is not None


def test_no_time_to_limit_within_the_first_window_after_a_restart_or_a_gap() -> None:
    watched = Watched()
    watched.begin(limits={"memory_bytes": 900 * MB})
    watched.live(20, 25 * MB, grow=10 * MB)
    assert arrival(watched) is not None
    watched.say("run.begin", start_id="s2", boot=BOOT, pid=4343, limits={"memory_bytes": 900 * MB})
    watched.live(9, 25 * MB, grow=15 * MB)
    assert arrival(watched) is None, "the agent began again"
    watched.live(6, 160 * MB, grow=15 * MB)
    assert arrival(watched) is not None
    watched.clock.advance_s(60)
    watched.live(9, 300 * MB, grow=15 * MB)
    assert arrival(watched) is None, "nobody measured for a minute"
