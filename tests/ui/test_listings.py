"""The long tables of checkpoints and interventions, as text."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from memwatch.domain.checkpoints import Bloat, Checkpoint, Prune
from memwatch.domain.intervention import ExperimentsAround, Intervention, ResourceEffect
from memwatch.ui.frame import Frame
from memwatch.ui.line import text_of, width_of
from memwatch.ui.panels.checkpoints import checkpoint_facts, checkpoint_sheet, state_words
from memwatch.ui.panels.effect import effect_words
from memwatch.ui.panels.facts import fact_lines
from memwatch.ui.panels.interventions import (
    SORTS,
    in_order,
    intervention_facts,
    intervention_sheet,
)
from memwatch.ui.panels.sheet import Cursor, sheet_lines
from memwatch.ui.screens.listings import InterventionListing
from tests.ui import crash, night
from tests.ui.harness import frame_of, snapshot_of, texts

NOW_US = snapshot_of().t_us
HOSTILE = "\x1b[2J\x1b]0;owned\x07[red]记忆体[/] \u202e\u200b\r\n" + "x" * 500


def changed(**changes: object) -> Frame:
    return frame_of(snapshot=replace(snapshot_of(), **changes))


def checkpoints(frame: Frame, width: int = 100, height: int = 20) -> list[str]:
    assert frame.snapshot is not None
    shown = checkpoint_sheet(frame, frame.snapshot.checkpoints.newest, width)
    return texts(sheet_lines(shown, Cursor(), width, height))


def interventions(frame: Frame, sort: str, width: int = 100) -> list[str]:
    assert frame.snapshot is not None
    shown = intervention_sheet(frame, frame.snapshot.interventions, sort, width)
    return texts(sheet_lines(shown, Cursor(), width, 20))


def test_checkpoints_of_our_own() -> None:
    assert checkpoints(frame_of())[:12] == [
        "recovery  back in 21s (18–26s)  good  drill 3h ago  last 5: −8 … +12 %",
        "next        18s  to go, 1 experiment since, a full one of ~4.3M fits",
        "course    33 complete, one every 27s, took 0.05s (p95 0.10s), 0.4% of the time",
        "size      full ones 4.2M (p95 4.3M), +31k from one to the next, 31M on disk,"
        " written at 42M/s",
        "chain     2 deltas, 36% of 5.0M",
        "bloat     stable: full ones grow 0.7 % each, as the state does",
        "prune     the agent prunes by itself: two full ones stay",
        "  when     kind   size entries  took   age on           state",
        "▸ 07:59:33 full   4.2M     126 0.10s   26s              complete, a recovery loads it",
        "  07:59:06 incr   900k      11 0.04s   53s C-29         complete",
        "  07:58:39 incr   900k      11 0.04s  1min C-29         complete",
        "  07:58:12 incr   900k      11 0.04s  2min C-29         complete",
    ]


def test_checkpoints_of_a_trainer_whose_newest_is_torn() -> None:
    assert checkpoints(changed(checkpoints=crash.trainer(NOW_US)), 110)[1:] == [
        "broken    1 incomplete: checkpoint-2000",
        "next      OVERDUE full, a full one of ~2.7G DOES NOT FIT",
        "course    3 complete, 1 failed, one every 20m00s, took at least 21s, 1.8% of the time",
        "size      full ones 2.7G, 9.3G on disk",
        "bloat     BLOAT: 8.1G written for 2.7G of state, none was pruned;"
        " save_total_limit: 3 would hold 8.1G at most",
        "prune     none may go: the newest is incomplete",
        "  when     name            step  size files took≥   age state",
        "▸ 07:59:00 checkpoint-2000 2000  1.2G     3     –  1min"
        " incomplete: no trainer_state.json, model.safetensors…",
        "  07:39:21 checkpoint-1500 1500  2.7G     9   21s 21min complete, newest to start from",
        "  07:19:21 checkpoint-1000 1000  2.7G     9   21s 41min complete, adapter only",
        "  06:59:21 checkpoint-500   500  2.7G     9   21s 61min complete",
    ]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"state": "begun"}, "being written"),
        ({"state": "aborted", "reason": "disk full"}, "aborted: disk full"),
        ({"state": "damaged", "reason": "entries: 1 of 2 bytes"}, "DAMAGED: entries: 1 of 2 bytes"),
        ({"id": "lost"}, "MISSING ON DISK"),
        ({"id": "old", "partial": True}, "complete, adapter only, may go"),
    ],
)
def test_the_state_of_a_checkpoint_is_said_in_words(changes: dict[str, object], said: str) -> None:
    found = replace(snapshot_of().checkpoints, missing=("lost",), prune=Prune(ids=("old",)))
    one = replace(Checkpoint(id="x", kind="full", state="committed"), **changes)
    assert state_words(one, replace(snapshot_of(), checkpoints=found))[0] == said


def test_what_is_wrong_outlives_the_figures_where_there_is_little_room() -> None:
    found = replace(crash.trainer(NOW_US), bloat=Bloat(verdict="bloat", why="it grows"))
    rows = checkpoints(changed(checkpoints=found), 110, 7)
    assert rows[:2] == [
        "broken    1 incomplete: checkpoint-2000",
        "next      OVERDUE full, a full one of ~2.7G DOES NOT FIT",
    ]
    assert len(rows) == 7


def test_no_figure_of_a_checkpoint_is_cut_off_at_the_edge_of_its_column() -> None:
    one = replace(
        crash.trainer(NOW_US).newest[-1],
        step=123_456_789,
        duration_s=1500.0,
        committed_us=NOW_US - 6_000_000_000,
    )
    found = replace(crash.trainer(NOW_US), newest=(one,))
    row = checkpoints(changed(checkpoints=found), 110)[-1]
    assert " 123456789 " in row
    assert row.split()[-3:] == ["25min", "2h", "complete"]


def test_experiments_that_take_twice_as_long_afterwards_are_told_whole() -> None:
    around = ExperimentsAround(before=3, after=3, before_s=2.0, after_s=5.0, after_ok=3)
    deeds = [replace(one, experiments=around) for one in crash.deeds(NOW_US)]
    frame = changed(interventions=tuple(deeds))
    assert all("+150% 3/3" in row for row in interventions(frame, "time", 150)[-len(deeds) :])
    slow = replace(around, after_s=50.0)
    frame = changed(interventions=(replace(deeds[0], experiments=slow),))
    assert "×25 3/3" in interventions(frame, "time", 150)[-1]


def test_interventions_stand_by_the_bytes_that_they_really_freed() -> None:
    frame = frame_of(snapshot=night.teaching(snapshot_of()))
    assert interventions(frame, "bytes freed", 80) == [
        "advice    purge workspace, expired first, brings memory under warn: 37M each in",
        "          0.9s, 3 times",
        "advice    give memory back stopped working: none of the last 2, 4 of 5 before",
        "          set levels.warn.steps=[purge]",
        "verdicts  2 effective, 1 without effect, 1 worse, 1 being measured",
        "  when     what              by       before  after      freed↓ then        took",
        "▸ 07:53:20 purge workspace   guard       62M    25M    37M  59% back 6min  0.90s",
        "  07:55:00 give memory back  person     112M   112M   no effect             1.4s",
        "  07:56:40 compact           agent     142kt   38kt  104kt  73% held 3min    12s",
        "  07:58:20 restart           agent       98M   128M   worse 30M              17s",
        "  07:59:56 pause             guard      128M      –   measuring            0.20s",
    ]


def test_every_sort_puts_the_greatest_first_and_the_unknown_last() -> None:
    deeds = list(crash.deeds(NOW_US))
    named = {sort: [one.action for one in in_order(deeds, sort)] for sort in SORTS}
    assert named["share freed"][:2] == ["compact", "purge"]
    assert named["time"] == ["pause", "restart", "compact", "reclaim", "purge"]
    assert named["duration"][0] == "restart"
    assert named["how long it held"][:2] == ["purge", "compact"]
    assert all(len(order) == len(deeds) for order in named.values())
    write = Intervention(id="w", action="checkpoint full", freed_bytes=9e9, verdict="none")
    assert in_order([write, *deeds], "bytes freed")[-1] is write, "it is not meant to free any"


def test_tokens_are_not_taken_for_bytes() -> None:
    tokens = next(one for one in crash.deeds(NOW_US) if one.action == "compact")
    assert SORTS["bytes freed"](tokens) == 0


def test_an_interventions_evidence_names_all_that_was_measured() -> None:
    snapshot = snapshot_of()
    purge, reclaim = crash.deeds(NOW_US)[4], crash.deeds(NOW_US)[3]
    told = "\n".join(texts(fact_lines(intervention_facts(purge, snapshot), 200)))
    for said in (
        "verdict      effective",
        "workspace    62M before, 25M after 10 s: freed 37M (59%), effective, back after 6m00s",
        "112M before, 98M after 10 s: freed 14M (12%), effective, held for 6m30s so far",
        "experiments  before: 3 experiments, median 8.7s, 3 ended well; after: 3 experiments,",
        "meanwhile    experiment 97 began meanwhile",
        "agent says   48M, by its own account: not what we measured",
    ):
        assert said in told
    told = "\n".join(texts(fact_lines(intervention_facts(reclaim, snapshot), 200)))
    assert "of it        garbage 400k in 0.30s" in told
    assert "allocator: no malloc_trim here" in told


def test_nothing_of_a_stranger_leaves_a_listing_unmasked() -> None:
    checkpoint = Checkpoint(
        id=HOSTILE, kind=HOSTILE, state="incomplete", base=HOSTILE, reason=HOSTILE, thread=HOSTILE
    )
    deed = replace(
        crash.deeds(NOW_US)[4],
        id=HOSTILE, tier=HOSTILE, why=HOSTILE, by=HOSTILE, how=HOSTILE, plan=HOSTILE,
        confounders=(HOSTILE,),
    )  # fmt: skip
    found = replace(
        crash.trainer(NOW_US),
        newest=(checkpoint,),
        incomplete=(HOSTILE,),
        writing=(HOSTILE,),
        bloat=Bloat(verdict="bloat", why=HOSTILE, do=HOSTILE),
        prune=Prune(why=HOSTILE),
    )
    frame = changed(checkpoints=found, interventions=(deed,), advice=(night.ADVICE[0],))
    assert frame.snapshot is not None
    for width in (38, 78, 118, 198):
        sheets = (
            checkpoint_sheet(frame, found.newest, width),
            intervention_sheet(frame, (deed,), "time", width),
        )
        lines = [line for one in sheets for line in sheet_lines(one, Cursor(), width, 40)]
        lines += fact_lines(checkpoint_facts(checkpoint, frame.snapshot), width)
        lines += fact_lines(intervention_facts(deed, frame.snapshot), width)
        assert all(text_of(line).isprintable() and width_of(line) <= width for line in lines)


def test_the_evidence_of_the_newest_row_is_whole_though_a_snapshot_holds_it_short() -> None:
    whole = replace(crash.deeds(NOW_US)[4], confounders=("one", "two", "the third of them"))
    short = replace(whole, effects=whole.effects[:1], confounders=("one",), stages=())
    frame = changed(interventions=(short,))
    listing = InterventionListing()

    def evidence(frame: Frame) -> str:
        _, draw = listing.evidence(short.id)
        return " ".join(text_of(line) for line in draw(frame, 100))

    assert "the third of them" not in evidence(frame)
    before = listing.known(frame)
    listing.take([whole])
    assert "the third of them" in evidence(frame)
    later = changed(interventions=(replace(short, after_10min=7.0),))
    assert listing.known(later) != before, "it is asked for again"
    assert "the third of them" not in evidence(later), "newer figures go before"


def test_what_overlaps_others_is_counted_as_its_row_says() -> None:
    hidden = Intervention(id="p", action="purge", tier="recent", overlaps=True)
    sheet = intervention_sheet(frame_of(), [hidden], "time", 120)
    above = texts([line for _, line in sheet.above])
    assert "verdicts  1 overlapping others" in above


def test_a_change_within_the_noise_is_not_said_to_have_been_freed() -> None:
    noise = ResourceEffect(
        resource="tier:recent",
        before=6_200_000,
        after_10s=4_800_000,
        freed=1_400_000,
        freed_share=0.23,
        verdict="none",
    )
    assert effect_words(noise) == (
        "6.2M before, 4.8M after 10 s: 1.4M (23%) less, no effect beyond the noise"
    )
