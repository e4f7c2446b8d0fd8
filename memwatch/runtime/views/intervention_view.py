"""What was done about memory and what it did, newest first: by the log, and by the ledger (R13)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from memwatch.analytics.efficacy.effect import When
from memwatch.analytics.efficacy.window import Reading, Spans
from memwatch.config.schema import Windows
from memwatch.domain.command import CommandInfo
from memwatch.domain.intervention import Intervention
from memwatch.runtime.views.around_deeds import AroundDeeds
from memwatch.runtime.views.deed import SERIES, Deed
from memwatch.runtime.views.deed_watch import STAGES, DeedWatch, Known, Stage
from memwatch.runtime.views.log_deeds import LogDeeds
from memwatch.runtime.views.mode_deeds import ModeDeeds
from memwatch.runtime.views.request_deeds import RequestDeeds
from memwatch.runtime.views.ring import Ring
from memwatch.runtime.views.row_choice import shown, surplus

_TOLD_ON_CHANGE = ("tier:", "tokens:")
_RECALLED = 256
_MOMENT_US = 1_000_000


class InterventionView:
    """Watches each intervention until nothing about it can change, then remembers it."""

    def __init__(self, ring: Ring, windows: Windows | None = None) -> None:
        self._ring = ring
        self._spans = spans = spans_of(windows or Windows())
        self._log = LogDeeds(ring)
        self._requests = RequestDeeds(ring)
        self._modes = ModeDeeds(ring)
        self._around = AroundDeeds(ring, spans)
        self._watches: dict[str, DeedWatch] = {}
        self._told: dict[str, Stage] = {}
        self._recalled: dict[str, Known] = {}

    def newest(
        self,
        now_at_us: int,
        commands: tuple[CommandInfo, ...] = (),
        limit_bytes: int | None = None,
        *,
        over: bool = False,
    ) -> tuple[Intervention, ...]:
        """Return the newest interventions, newest first, as known at an instant of the axis.

        `commands` are the requests of the ledger: they say who asked, and why. `limit_bytes` is
        the binding limit. Of a run that is over nothing more will be measured. Called with the
        ring's lock held.
        """
        self._take(commands, now_at_us)
        self._around.mind_limit(now_at_us, limit_bytes)
        at_us = self._ring.mind_clock() if over else now_at_us
        for watch in self._watches.values():
            if watch.is_due(at_us):
                self._look(watch, at_us, over=over)
        return shown(self._watches.values(), (known.row for known in self._recalled.values()))

    def rows(self, limit: int) -> list[Intervention]:
        """Return all that are remembered, newest first, with all that was measured of each."""
        with self._ring.lock:
            found = list(self._rows())
        return sorted(found, key=lambda row: row.asked_at_us, reverse=True)[:limit]

    def news(self, now_at_us: int) -> list[Known]:
        """Return those of which more is known than at the call before: to be written down."""
        with self._ring.lock:
            found = []
            for name, watch in self._watches.items():
                told = self._told.get(name, "")
                stage = _next_stage(watch, told)
                if stage == told or self._log.is_open(watch.deed, now_at_us):
                    continue
                self._told[name] = stage
                if told or not self._is_long_over(watch, now_at_us):
                    found.append(Known(stage, watch.row))
            return found

    def _is_long_over(self, watch: DeedWatch, now_us: int) -> bool:
        """Say whether it was done before anyone watched here."""
        return watch.when is None or now_us - watch.when.done_us > self._spans.watch_us

    def recall(self, known: Iterable[Known]) -> None:
        """Go on with what a guard before this one measured; once, before anyone looks."""
        with self._ring.lock:
            self._recalled = {one.row.id: one for one in list(known)[-_RECALLED:]}

    def _rows(self) -> Iterator[Intervention]:
        yield from (watch.row for watch in self._watches.values())
        yield from (known.row for known in self._recalled.values())

    # -- taking in ---------------------------------------------------------------------------

    def _take(self, commands: tuple[CommandInfo, ...], now_us: int) -> None:
        ledger = {info.id: info for info in commands}
        new = [*self._log.new(), *self._requests.new(commands)]
        for deed in new:
            self._put(deed)
        for deed in self._modes.new(now_us, self._rows()):
            new.append(deed)
            self._put(deed)
        open_ones = [watch for watch in self._watches.values() if not watch.settled]
        named = [watch for watch in open_ones if self._name_who_asked(watch, ledger)]
        if not new and not named:
            return
        for name in surplus(self._watches.values()):
            del self._watches[name]
            self._told.pop(name, None)
        self._around.mind(watch.deed for watch in self._watches.values())

    def _put(self, deed: Deed) -> None:
        known = self._watches.get(deed.id)
        if known is not None and known.deed.when == deed.when:
            known.told(deed)
            return
        tree = self._ring.tree
        watch = DeedWatch(deed, self._spans, tree.used_bytes if tree else 0.0)
        self._watches[deed.id] = watch
        told = self._told.pop(deed.id, "")
        recalled = self._recalled.pop(deed.id, None)
        if known is not None:
            same = told and _is_moment(known.when, deed.when)
            recalled = Known(told, known.row) if same else known.recalled
        if recalled is not None and _is_of(recalled.row, deed):
            watch.recall(recalled)
            self._told[deed.id] = recalled.stage
        if deed.kind == "routine":
            self._recalled = {n: k for n, k in self._recalled.items() if not _holds(k.row, deed)}

    def _name_who_asked(self, watch: DeedWatch, ledger: dict[str, CommandInfo]) -> bool:
        """Say who asked for a deed of the log, once that is known; True when it was news."""
        origin, name = self._log.request_of(watch.deed)
        if not origin:
            return False
        deed, info = watch.deed, ledger.get(name)
        row = replace(deed.row, origin=origin)
        if deed.kind == "checkpoint" and deed.row.why == "cadence":
            row = replace(row, why="asked")
        if info is not None:
            row = replace(row, by=info.by, why=info.why or row.why, plan=info.plan)
        if row == deed.row:
            return False
        watch.told(replace(deed, row=row))
        return True

    # -- looking -----------------------------------------------------------------------------

    def _look(self, watch: DeedWatch, now_us: int, *, over: bool) -> None:
        deed = watch.deed
        if watch.is_early:
            for one in watch.watches:
                one.voided = self._around.voids(deed, one.resource)
            watch.others = self._around.others(deed)
        if watch.experiments is None or watch.experiments.after < 3:
            found = self._around.experiments(deed)
            before = watch.experiments
            if found and before and before.before > found.before:  # they left the window
                found = replace(
                    found,
                    before=before.before, before_s=before.before_s, before_ok=before.before_ok,
                )  # fmt: skip
            watch.experiments = found
        until_us = self._ring.axis_of(self._ring.state.last) if over else now_us
        watch.pause_s, watch.pause_over = self._around.pause(deed, until_us)
        watch.look(
            now_us,
            lambda name: self._reading(name, over=over),
            lambda name: self._around.next_us(deed, name),
        )

    def _reading(self, resource: str, *, over: bool) -> Reading | None:
        """Return the samples of a resource; of a run that is over none holds beyond its end."""
        name = SERIES.get(resource, resource)
        series = self._ring.series_of(name)
        if series is None:
            return None
        held = resource.startswith(_TOLD_ON_CHANGE) and not over
        return Reading(series, self._ring.max_gap_us("memory" if over else name), held=held)


def _next_stage(watch: DeedWatch, told: Stage) -> Stage:
    """Return the stage to write down next: ten minutes before the end, where both came at once."""
    if watch.when is None or STAGES.index(watch.stage) <= STAGES.index(told):
        return told
    late = watch.row.after_10min is not None and told in ("", "10s")
    return "10min" if late and watch.stage == "settled" else watch.stage


def spans_of(windows: Windows) -> Spans:
    """Return the windows of a profile in microseconds."""
    return Spans(
        before_us=round(windows.before_s * 1e6),
        settle_us=round(windows.settle_s * 1e6),
        late_us=round(windows.late_s * 1e6),
        watch_us=round(windows.rebound_s * 1e6),
    )


def _is_moment(before: When | None, now: When | None) -> bool:
    """Say whether a deed was done when it was thought to have been, by and large."""
    return before is not None and now is not None and abs(now.done_us - before.done_us) < _MOMENT_US


def _is_of(row: Intervention, deed: Deed) -> bool:
    """Say whether a row tells of a deed as it is known now: it may have gone on since."""
    return (row.count, row.done_at_us) == (deed.row.count, deed.row.done_at_us)


def _holds(row: Intervention, deed: Deed) -> bool:
    """Say whether a recalled series holds the first purge of one that was read again."""
    same = row.action == deed.row.action and row.tier == deed.row.tier and row.count > 1
    return same and row.asked_at_us <= deed.row.asked_at_us <= (row.done_at_us or 0)
