"""What an intervention did, in few words: the verdict is the snapshot's, and never more than it."""

from __future__ import annotations

from memwatch.domain.intervention import IN_VAIN, Intervention, ResourceEffect
from memwatch.domain.text import inert
from memwatch.domain.units import bytes_text, duration_text, rough_text, share_text, short_text
from memwatch.domain.wording import op_text
from memwatch.ui.format import clock_text, count_text
from memwatch.ui.panels.table import Cell

_SCREEN = "screen-"
_SHORT_S = 0.001
FREED_CELLS = 11
THEN_CELLS = 10

_VERDICTS = {
    "pending": "measuring",
    "none": "no effect",
    "worse": "worse",
    "unmeasured": "unmeasured",
}


def what_words(one: Intervention) -> str:
    """Return what was done to what, and how far it came where that is not done."""
    action = op_text(one.action.replace("-", "_")).replace("incremental", "incr")
    words = f"{action} {inert(one.tier, 20)}".strip()
    if one.count > 1:
        words += f" ×{one.count}"
    return words if succeeded(one) else f"{words} {inert(one.state, 12)}"


def succeeded(one: Intervention) -> bool:
    """Return whether the agent did what was asked, whatever it freed."""
    return one.state in ("done", "effective")


def who_words(one: Intervention) -> str:
    """Return who asked for it; which screen a person sat at is told by the evidence."""
    if one.origin == "operator":
        return "person" if one.by.startswith(_SCREEN) else inert(one.by or "person", 12)
    return "guard" if one.origin == "engine" else inert(one.origin, 12)


def amount_text(amount: float | None, unit: str) -> str:
    """Return an amount of bytes, or of tokens with a t: the two are never added up.

    >>> amount_text(61.4e6, "bytes"), amount_text(12_400, "tokens"), amount_text(None, "tokens")
    ('61M', '12kt', '–')
    """
    if unit != "tokens":
        return bytes_text(amount)
    if amount is None:
        return "–"
    sign = "-" if amount < 0 else ""
    return f"{sign}{count_text(round(abs(amount)))}t"


def freed_cell(one: Intervention) -> Cell:
    """Return what was really freed, or the verdict where nothing was."""
    if one.is_checkpoint:  # it is there to be loaded: what it freed says nothing of it
        return Cell("–" if one.claimed is None else f"wrote {bytes_text(one.claimed)}", "dim")
    if one.overlaps:
        return Cell("overlaps", "dim")
    if one.verdict == "worse" and one.freed_bytes is not None:
        return Cell(f"worse {amount_text(-one.freed_bytes, one.unit)}", "warn")
    if one.verdict in IN_VAIN:
        return Cell(_VERDICTS[one.verdict], "warn")
    if one.freed_bytes is None:
        return Cell(_VERDICTS.get(one.verdict, "–"), "dim")
    return Cell(_freed_text(one.freed_bytes, one.freed_share, one.unit))


def _freed_text(freed: float, share: float | None, unit: str) -> str:
    text = amount_text(freed, unit)
    both = f"{text} {share_text(share):>4}"
    fits = share is not None and len(both) <= FREED_CELLS
    return both if fits else text  # half a figure would be another one


def then_text(one: Intervention) -> str:
    """Return what became of what was freed: back after so long, or held so long until now."""
    if one.is_checkpoint:
        return ""
    if one.rebound_s is not None:
        return f"back {rough_text(one.rebound_s)}"
    return "" if one.held_s is None else f"held {rough_text(one.held_s)}"


def took_text(one: Intervention) -> str:
    """Return how long it took; of a series, from its first to its last."""
    took_s = one.duration_s if one.span_s is None else one.span_s
    return "<1ms" if took_s is not None and took_s < _SHORT_S else short_text(took_s)


def deed_cells(one: Intervention, *, seconds: bool) -> tuple[Cell, ...]:
    """Return when, what, by, why, before, after, +10min, freed, then, took."""
    return (
        Cell(clock_text(one.asked_at_us, seconds=seconds), "dim"),
        Cell(what_words(one), "" if succeeded(one) else "warn"),
        Cell(who_words(one), "dim"),
        Cell(inert(one.why, 40), "dim"),
        Cell(amount_text(one.before, one.unit)),
        Cell(amount_text(one.after_10s, one.unit)),
        Cell(amount_text(one.after_10min, one.unit)),
        freed_cell(one),
        Cell(then_text(one), "dim"),
        Cell(took_text(one), "dim"),
    )


def effect_words(effect: ResourceEffect) -> str:
    """Return one resource before and after, and what came of it, as a sentence."""

    def amount(value: float | None) -> str:
        return amount_text(value, effect.unit)

    text = f"{amount(effect.before)} before, {amount(effect.after_10s)} after 10 s"
    if effect.after_10min is not None:
        text += f", {amount(effect.after_10min)} after 10 min"
    if effect.freed is not None:
        grew = effect.freed < 0
        share = "" if effect.freed_share is None else f" ({share_text(abs(effect.freed_share))})"
        changed = f"{amount(abs(effect.freed))}{share}"
        if effect.verdict == "none":  # it is not said to have freed that
            return f"{text}: {changed} {'more' if grew else 'less'}, no effect beyond the noise"
        text += f": {'grew by' if grew else 'freed'} {changed}"
    text += f", {_VERDICTS.get(effect.verdict, effect.verdict)}"
    if effect.rebound_s is not None:
        text += f", back after {duration_text(effect.rebound_s)}"
    elif effect.held_s is not None:
        text += f", held for {duration_text(effect.held_s)} so far"
    return text
