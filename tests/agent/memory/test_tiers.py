"""All tiers of a run together: totals, captures, a recovered state, threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from memwatch.domain.errors import UsageError
from memwatch.domain.policy import Keep
from tests.agent.memory.holding import Held

Hold = Callable[..., Held]
LARGE = "x" * 10_000


def test_totals_leave_out_what_is_not_known(hold: Hold) -> None:
    keep = {"workspace": Keep(bytes=1000), "recent": Keep()}
    assert hold(keep).tiers.totals() == {
        "workspace": {"entries": 0, "bytes": 0, "limit": 1000},
        "recent": {"entries": 0, "bytes": 0},
    }
    limited = hold(keep, limit_bytes=10_000, share_cap=0.25).tiers.totals()
    assert [tier["limit"] for tier in limited.values()] == [1000, 2500]


def test_a_tier_cannot_be_demoted_to_one_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no other tier"):
        Held(tmp_path, {"recent": Keep(demote_to="history")})


def test_a_capture_does_not_change_with_the_tiers(hold: Hold) -> None:
    held = hold()
    held.tier.put("a", {"n": 1})
    held.tier.put("b", 1)
    capture = held.tiers.capture()
    held.tier.put("a", {"n": 2})
    held.tier.delete("b")
    assert capture.last_lsn == 2
    assert [(e.key, e.lsn, e.value) for e in capture.tiers["recent"].values()] == [
        ("a", 1, {"n": 1}),
        ("b", 2, 1),
    ]


def test_a_recovered_state_goes_on(hold: Hold) -> None:
    keep = {"recent": Keep(ttl_s=60)}
    before, after = hold(keep), hold(keep)
    before.tier.put("small", {"n": 1}, tokens=3)
    before.tier.put("large", LARGE)
    before.tier.get("large")
    before.tiers.purge(how="compress", cause="operator")
    found = {entry.key: entry for entry in before.tier.entries()}
    packed = found["large"].packed
    assert packed is not None
    assert len(packed) < 1000
    found["large"].heat = found["large"].heat.by_hour(before.clock.boot_us())
    found["large"].blob = None
    changes = before.tiers.take_changes()
    after.tiers.adopt({"recent": found, "elsewhere": {}}, changes)
    assert after.tiers.take_changes() == {**changes, "elsewhere": {}}
    assert (after.tier.tokens, after.tier.get("large"), after.tier.get("small")) == (
        3,
        LARGE,
        {"n": 1},
    )
    assert after.tiers["elsewhere"].in_force == Keep()
    with pytest.raises(ValueError, match="already"):
        after.tiers.adopt({"recent": found}, {})
    after.clock.advance_s(61)
    after.tier.put("new", 1)
    assert [entry.key for entry in after.tier.entries()] == ["new"]


def test_threads_put_at_the_same_time(hold: Hold) -> None:
    held = hold({"recent": Keep(count=40)}, limit_bytes=400_000)
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(60):
                key = f"{number}/{turn % 12}"
                held.tier.put(key, {"of": number, "turn": turn, "text": "z" * (turn * 150)})
                if turn % 7 == 0:
                    held.tiers.purge(target_bytes=5_000, cause="pressure")
                value = held.tier.get(key) if key in held.tier else {"of": number}
                assert value["of"] == number
        except KeyError:
            pass  # another thread's put let it go in between
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not failures
    assert not any(thread.is_alive() for thread in threads)
    assert held.replay() == held.state()
    assert held.tier.bytes == sum(entry.bytes for entry in held.tier.entries())
