"""What past interventions teach stands in the snapshot, from more of them than it shows."""

from __future__ import annotations

import pytest

from memwatch.domain.intervention import Intervention, Verdict
from tests.builders import T0_US
from tests.runtime.watched import Watched


def test_advice_comes_from_all_that_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched()
    assert watched.snapshot().advice == ()
    verdicts: tuple[Verdict, ...] = ("none", "none", "none", "effective")
    past = [
        Intervention(
            id=f"i{n}",
            action="reclaim",
            verdict=verdict,
            asked_at_us=T0_US,
            freed_bytes=5e6 * (n // 3),
        )
        for n, verdict in enumerate(verdicts)
    ]
    monkeypatch.setattr(watched.builder.interventions, "rows", lambda limit: past[:limit])
    (found,) = watched.snapshot().advice
    assert found.kind == "stopped"
    assert found.text.startswith("give memory back stopped working: no effect the last 3 times")
