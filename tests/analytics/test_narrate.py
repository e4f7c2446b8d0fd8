"""What a record says to people."""

from __future__ import annotations

from typing import Any

import pytest

from memwatch.analytics.narrate import event_of
from tests.builders import record


@pytest.mark.parametrize(
    ("kind", "members", "text", "severity"),
    [
        ("checkpoint.commit", {"kind": "full", "bytes": 7}, "full checkpoint 7B", "info"),
        ("checkpoint.commit", {"kind": "experiment"}, "checkpoint of the experiment", "info"),
        ("purge.end", {"tier": "recent", "entries": 1}, "purge recent: 1 entry", "info"),
        (
            "purge.end",
            {"tier": "recent", "entries": 0, "refused": "no space\x1b[31m"},
            "purge recent: 0 entries; not all went: no space",
            "warning",
        ),
        (
            "retention",
            {"tier": "recent", "what": "experiments", "old": 5, "new": 3, "why": "too large"},
            "retention of recent: experiments 5 to 3, too large",
            "notice",
        ),
        (
            "retention",
            {
                "tier": "history",
                "what": "asked",
                "old": {"count": None, "ttl_s": 9},
                "new": {"count": 7, "ttl_s": "\x1b[31m"},
                "why": "asked by engine",
            },
            "retention of history: asked count None, ttl_s 9 to count 7, ttl_s",
            "notice",
        ),
    ],
)
def test_one_line_and_how_grave_it_is(
    kind: str, members: dict[str, Any], text: str, severity: str
) -> None:
    event = event_of(record(1, kind, **members))
    assert event is not None
    assert event.text.startswith(text)
    assert "\x1b" not in event.text
    assert event.severity == severity
