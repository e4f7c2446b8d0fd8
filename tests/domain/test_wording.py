"""Requests in words: whatever their arguments hold, one inert line."""

from __future__ import annotations

from typing import Any

import pytest

from memwatch.domain.wording import request_text


@pytest.mark.parametrize(
    ("op", "args", "words"),
    [
        (
            "purge",
            {"keys": ["a", "b"], "target_bytes": 400_000_000},
            "purge all that may go, 2 keys, until 400M are free",
        ),
        ("purge", {"tier": "x", "how": "least_accessed"}, "purge x, least accessed first"),
        ("purge", {"tier": "history", "how": "compress"}, "purge history, compressed in place"),
        ("checkpoint", {}, "incremental checkpoint"),
        ("checkpoint", {"kind": "experiment"}, "checkpoint of the experiment"),
        ("abort_experiment", {"save": "none"}, "abort the experiment, nothing saved"),
        ("end_run", {}, "end the run, saved before"),
        ("pause", {}, "pause"),
        (
            "pause",
            {"lease_us": 120_000_000, "on_lease_end": "release"},
            "pause, ends 2m00s after the guard does",
        ),
        ("read_write", {"all": True}, "read-write, whoever holds it"),
        ("resume", {"holds": ["a"]}, "resume, 1 hold"),
        ("resume", {"owner": "engine"}, "resume, held by engine"),
        ("engine.mode", {"mode": "act"}, "guard mode act"),
        ("leak", {"\x1b": "x" * 999}, None),
    ],
)
def test_a_request_in_words(op: str, args: dict[str, Any], words: str | None) -> None:
    text = request_text(op, args)
    assert text == words or (words is None and text.isprintable() and len(text) <= 120)
