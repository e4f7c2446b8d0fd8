"""What interventions did, as text: the verdict in words, and nothing before it was measured."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from memwatch.domain.intervention import Intervention, ResourceEffect
from memwatch.ui.frame import Frame
from memwatch.ui.panels.acts import acts
from memwatch.ui.panels.effect import freed_cell, then_text
from tests.ui import crash, night
from tests.ui.harness import frame_of, snapshot_of, texts

NOW_US = snapshot_of().t_us
PURGE = Intervention(id="1", action="purge", tier="workspace", before=1.0)


def changed(**changes: object) -> Frame:
    return frame_of(snapshot=replace(snapshot_of(), **changes))


def test_acts_show_before_freed_and_what_came_of_it_newest_last() -> None:
    frame = changed(interventions=crash.deeds(NOW_US))
    assert texts(acts(frame, 71, 8)) == [
        "when  what                   by     before       freed then        took",
        "07:53 purge workspace        guard     62M    37M  59% back 6min  0.90s",
        "07:55 give memory back       person   112M   no effect             1.4s",
        "07:56 compact                agent   142kt  104kt  73% held 3min    12s",
        "07:58 restart                agent     98M   worse 30M              17s",
        "07:59 pause                  guard    128M   measuring            0.20s",
    ]
    assert texts(acts(frame, 118, 8))[0].split() == [
        "when", "what", "by", "why", "before", "after", "+10min", "freed", "then", "took",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"verdict": "pending"}, "measuring"),
        ({"verdict": "none", "freed_bytes": 5e5, "freed_share": 0.004}, "no effect"),
        ({"verdict": "worse", "freed_bytes": -3e7}, "worse 30M"),
        ({"verdict": "unmeasured"}, "unmeasured"),
        ({"verdict": "effective", "freed_bytes": 4.12e8, "freed_share": 0.08}, "412M   8%"),
        ({"verdict": "effective", "freed_bytes": 4.12e8, "overlaps": True}, "overlaps"),
        ({"verdict": "none", "action": "checkpoint", "claimed": 1_200_000}, "wrote 1.2M"),
        ({"verdict": "effective", "action": "checkpoint full", "freed_bytes": -9e6}, "–"),
        (
            {
                "verdict": "effective",
                "freed_bytes": 104_000,
                "freed_share": 0.73,
                "effects": (ResourceEffect(resource="tokens:c", unit="tokens"),),
            },
            "104kt  73%",
        ),
    ],
)
def test_what_was_freed_is_the_verdict_in_words(changes: dict[str, object], said: str) -> None:
    assert freed_cell(replace(PURGE, **changes)).text == said


def test_nothing_is_called_held_or_back_before_it_is() -> None:
    assert then_text(PURGE) == ""
    assert then_text(replace(PURGE, held_s=3_120.0)) == "held 52min"
    wrote = replace(PURGE, action="checkpoint full", rebound_s=16.0)
    assert then_text(wrote) == "", "a checkpoint frees nothing that could be back"
    assert then_text(replace(PURGE, rebound_s=360.0, held_s=360.0)) == "back 6min"


def test_a_series_of_purges_is_one_row_above_and_what_overlaps_says_so() -> None:
    found = snapshot_of().interventions
    purge = next(one for one in found if one.action == "purge")
    series = replace(purge, count=9, span_s=15.0, freed_bytes=None, asked_at_us=1)
    asked = replace(purge, id="x", why="key P", origin="operator", overlaps=True, freed_bytes=None)
    rows = texts(acts(changed(interventions=(asked, *found, series)), 71, 12))
    assert rows[1].split()[1:4] == ["purge", "workspace", "×9"]
    assert rows[1].split()[-1] == "15s"
    (row,) = (row for row in rows if " person " in row)
    assert "overlaps" in row


def test_a_plan_that_is_over_is_told_for_a_while_step_by_step() -> None:
    plan = night.plan(
        state="done",
        effect="effective",
        before_bytes=98e6,
        after_bytes=62e6,
        made_us=NOW_US - 60_000_000,
    )
    engine = replace(snapshot_of().engine, last=plan)
    first = texts(acts(changed(engine=engine), 118, 8))[0]
    assert first == (
        "plan intervene done, effect effective, freed 36M  1m00s ago:"
        " pause done, checkpoint asked, purge proposed"
    )
    old = replace(engine, last=replace(plan, made_us=NOW_US - 3_600_000_000))
    assert not any("plan" in row for row in texts(acts(changed(engine=old), 118, 8)))
