"""What a record of the guard says to people."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memwatch.analytics.narrate import event_of
from memwatch.analytics.narrate_guard import TELLERS
from tests.builders import record

STEPS = [{"op": "checkpoint"}, {"op": "purge"}]
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(),
    st.lists(st.text()),
    st.dictionaries(st.text(), st.text()),
)
NAMES = st.sampled_from(
    [
        "mode",
        "allow",
        "by",
        "what",
        "state",
        "effect",
        "steps",
        "level",
        "changed",
        "severity",
        "lasted_us",
        "before_bytes",
        "after_bytes",
        "error",
        "channel",
        "resource",
        "why",
        "at",
        "event",
        "verdict",
        "effects",
        "total_s",
        "estimate",
    ]
)


@pytest.mark.parametrize(
    ("kind", "members", "told"),
    [
        (
            "guard.begin",
            {"epoch": 3, "version": "1", "mode": "shadow"},
            ("engine", "guard 1 began, epoch 3, engine: shadow", "notice"),
        ),
        (
            "engine.mode",
            {"mode": "act", "allow": ["pause"], "by": "ctl", "why": "night"},
            ("engine", "engine: act (pause), by ctl: night", "notice"),
        ),
        (
            "engine.mode",
            {"mode": "shadow", "allow": ["pause"]},
            ("engine", "engine: shadow", "notice"),
        ),
        (
            "engine.decision",
            {"what": "shout", "why": "pause of 30 min did not help"},
            ("engine", "guard: pause of 30 min did not help", "error"),
        ),
        (
            "plan",
            {"level": "warn", "state": "asked", "at": 0, "steps": STEPS, "why": "over 60%"},
            ("plan", "plan warn begun (checkpoint, purge): over 60%", "warning"),
        ),
        (
            "plan",
            {
                "level": "warn",
                "state": "done",
                "effect": "none",
                "before_bytes": 9_000_000,
                "after_bytes": 9_000_000,
                "dry": True,
            },
            ("plan", "dry plan warn: without effect, 9.0M to 9.0M", "warning"),
        ),
        (
            "level",
            {"level": "hard", "resource": "disk", "why": "96% of 10G"},
            ("level", "disk hard: 96% of 10G", "error"),
        ),
        (
            "level",
            {"level": "warn", "why": "memory 62% of 300M"},
            ("level", "memory warn: 62% of 300M", "warning"),
        ),
        (
            "intervention",
            {"op": "purge", "what": "purge workspace", "state": "asked", "by": "dashboard"},
            ("command", "purge workspace asked (dashboard)", "info"),
        ),
        (
            "policy",
            {"source": "policy.yaml", "changed": list("abcdef")},
            ("policy", "policy taken over from policy.yaml: a, b, c, d and 2 more", "notice"),
        ),
        (
            "policy",
            {"error": "line 3"},
            ("policy", "policy not taken over, the one before stays: line 3", "error"),
        ),
        (
            "alert",
            {"state": "raised", "key": "disk", "severity": "error", "text": "disk: 1M free"},
            ("alert", "disk: 1M free", "error"),
        ),
        (
            "alert",
            {"state": "cleared", "text": "memory", "lasted_us": 120_000_000},
            ("alert", "all clear after 2m00s: memory", "notice"),
        ),
        (
            "notify",
            {"state": "failed", "channel": "ntfy", "key": "disk", "detail": "404"},
            ("notify", "ntfy could not be told of disk: 404", "warning"),
        ),
        ("budget", {"what": "memory", "state": "kept"}, ("budget", "guard memory: kept", "notice")),
        (
            "restart",
            {"total_s": 4.2, "estimate": {"low": 3.1, "likely": 4.9, "high": 6}},
            (
                "recovery",
                "back 4.2s after its process began, estimated 4.9s (3.1–6.0s): −14 %",
                "notice",
            ),
        ),
        (
            "restart",
            {"total_s": 4.2, "lossy": True, "estimate": None},
            ("recovery", "back 4.2s after its process began", "error"),
        ),
        (
            "efficacy",
            {
                "at": "10min",
                "plan": "p",
                "action": "purge",
                "how": "oldest",
                "tier": "recent",
                "verdict": "worse",
                "before": 8e6,
                "after_10min": 9e6,
                "effects": [{"unit": "bytes"}],
            },
            (
                "plan",
                "purge oldest recent: usage rose meanwhile, 8.0M to 9.0M in 10 min",
                "warning",
            ),
        ),
        (
            "efficacy",
            {
                "at": "10min",
                "plan": "p",
                "action": "compact",
                "verdict": "none",
                "before": 9_000,
                "after_10min": 9_000,
                "effects": [{"unit": "tokens"}],
            },
            ("plan", "compact: without effect", "warning"),
        ),
        (
            "store",
            {"event": "committed", "id": "c-5", "kind": "full", "bytes": 5e8, "duration_us": 2e6},
            ("checkpoint.full", "checkpoint c-5 complete in 2.0s", "info"),
        ),
        (
            "store",
            {"event": "committed", "id": "c-6", "kind": "incremental", "bytes": 5_000_000},
            ("checkpoint.incremental", "checkpoint c-6 complete, 5.0M", "info"),
        ),
        (
            "store",
            {"event": "incomplete", "id": "c\n7", "bytes": 0},
            (
                "checkpoint.abort",
                "checkpoint c 7 is incomplete, and nobody is writing it, 0B",
                "warning",
            ),
        ),
        (
            "store",
            {"event": "deleted", "id": "c-1"},
            ("checkpoint.deleted", "checkpoint c-1 deleted", "notice"),
        ),
    ],
)
def test_one_line_and_how_grave_it_is(
    kind: str, members: dict[str, Any], told: tuple[str, str, str]
) -> None:
    event = event_of(record(1, kind, **members))
    assert event is not None
    assert (event.kind, event.text, event.severity) == told
    assert event.origin == "guard"


@pytest.mark.parametrize(
    ("kind", "members"),
    [
        ("engine.decision", {"what": "ask", "why": "step 1"}),
        ("plan", {"state": "running", "at": 1}),
        ("notify", {"state": "sent", "channel": "bell"}),
        ("intervention", {"op": "purge", "state": "running"}),
        ("engine.state", {"state": {}}),
        ("alert", {"state": "stands", "text": "memory"}),
        ("alert", {"state": "raised", "key": "memory", "text": "memory warn"}),
        ("alert", {"state": "raised", "key": "breaker.warn", "text": "plans of warn"}),
        ("alert", {"state": "cleared", "text": "memory", "moot": True}),
        ("viewer", {"state": "came"}),
        ("intervention", {"state": "asked", "op": "purge", "dry_run": True}),
        ("command", {"state": "done", "op": "purge", "dry_run": True}),
        ("estimate", {"low_s": 1.0, "likely_s": 2.0, "high_s": 3.0}),
        ("efficacy", {"at": "10s", "verdict": "none", "plan": "p", "action": "purge"}),
        ("efficacy", {"at": "10min", "verdict": "effective", "plan": "p", "action": "purge"}),
        ("efficacy", {"at": "10min", "verdict": "none", "plan": "", "action": "purge"}),
    ],
)
def test_what_other_records_tell_is_not_told_twice(kind: str, members: dict[str, Any]) -> None:
    assert event_of(record(1, kind, **members)) is None


@given(kind=st.sampled_from(sorted(TELLERS)), members=st.dictionaries(NAMES, VALUES))
def test_whatever_a_record_holds_it_is_one_inert_line(kind: str, members: dict[str, Any]) -> None:
    event = event_of(record(1, kind, **members))
    if event is not None:
        assert event.text.isprintable()
        assert len(event.text) <= 400
