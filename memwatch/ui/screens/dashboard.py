"""The dashboard of one run: lights above, panels below, keys at the foot."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from textual import events
from textual.app import ComposeResult
from textual.containers import Container
from textual.screen import Screen

from memwatch.domain.units import window_label
from memwatch.ui.actions import PANELS
from memwatch.ui.frame import Frame
from memwatch.ui.line import Line
from memwatch.ui.panels.acts import TITLE as ACTS_TITLE
from memwatch.ui.panels.acts import acts
from memwatch.ui.panels.banner import banner
from memwatch.ui.panels.footer import footer, next_step, tabs
from memwatch.ui.panels.growth import growth
from memwatch.ui.panels.header import header
from memwatch.ui.panels.lights import lights
from memwatch.ui.panels.log import LogPanel, log_title
from memwatch.ui.panels.processes import processes
from memwatch.ui.panels.recovery import recovery, recovery_heading
from memwatch.ui.panels.since import since_heading, since_left
from memwatch.ui.view import window_s
from memwatch.ui.widgets.chart import Ask, ChartView
from memwatch.ui.widgets.lines import LinesView
from memwatch.ui.widgets.panel import PanelView, StripView

ALL_PANELS = (110, 32)
"""From this size on all panels are shown at once."""
ONE_PANEL = (50, 15)
"""Below this size only the lights and the keys are."""


class DashboardScreen(Screen[None]):
    """All that is known about one run, on one screen."""

    def __init__(self, ask: Ask, dress: Callable[[LinesView], None]) -> None:
        super().__init__()
        self._ask = ask
        self._dress = dress
        self.frame = Frame()
        self.one_panel = False
        """A person asked for one panel alone."""

    def compose(self) -> ComposeResult:
        """Mount everything once: later only lines change."""
        self.chart = ChartView("tiers", 1, self._ask)
        self.panels: dict[str, PanelView] = {
            "tiers": self.chart,
            "growth": PanelView("growth", 2, lambda _: "growth a minute", growth),
            "acts": PanelView("acts", 3, lambda _: ACTS_TITLE, acts, lambda _: "i all of them"),
            "recovery": PanelView(
                "recovery", 4, recovery_heading, recovery, lambda _: "k checkpoints"
            ),
            "since": PanelView("since", 5, since_heading, since_left),
            "procs": PanelView("procs", 6, lambda _: "processes", processes),
            "log": PanelView("log", 7, _log_heading, LogPanel(), log_title),
        }
        self._strips = [
            StripView("header", lambda frame, width, _: [header(frame, width)]),
            StripView("banner", lambda frame, width, _: banner(frame, width)),
            StripView("lights", lights),
            StripView("tabs", self._tab_lines),
        ]
        self._feet = [
            StripView("next", self._next_lines),
            StripView("footer", lambda frame, width, _: [footer(frame, width)]),
        ]
        for widget in (*self._strips, *self.panels.values(), *self._feet):
            self._dress(widget)
        self._set_classes()  # before the first layout, which then is the only one
        yield from self._strips
        with Container(id="body"):
            yield from (self.panels[name] for name in ("tiers", "growth", "procs", "acts"))
            yield from (self.panels[name] for name in ("recovery", "log", "since"))
        yield from self._feet

    def update(self, frame: Frame) -> None:
        """Paint a frame; panels that are not shown wait until they are."""
        self.frame = frame
        if not self.is_mounted:
            return
        if self._since_wanted != self.has_class("-since"):
            self._set_classes()
        for widget in self._shown():
            widget.update(frame)

    def _shown(self) -> Iterator[PanelView | StripView]:
        yield from self._strips
        if self.has_class("-single"):
            yield self.panels[self.frame.panel]
        elif not self.has_class("-tiny"):
            hidden = set() if self.has_class("-since") else {"since"}
            yield from (panel for name, panel in self.panels.items() if name not in hidden)
        yield from self._feet

    def _tab_lines(self, frame: Frame, width: int, _height: int) -> list[Line]:
        return [tabs(frame, width)] if self.has_class("-single") else []

    def _next_lines(self, frame: Frame, width: int, _height: int) -> list[Line]:
        small = self.has_class("-single") or self.has_class("-tiny")
        return next_step(frame, width, advice=small and frame.panel != "since")

    def on_mount(self) -> None:
        """Arrange for the size there is."""
        self.choose_layout()
        self.bring_to_front(self.frame.panel)

    def on_resize(self, _event: events.Resize) -> None:
        """Arrange for the new size."""
        self.choose_layout()

    def choose_layout(self) -> None:
        """Choose between all panels, one, and none, by the size there is."""
        self._set_classes()
        self.update(self.frame)

    @property
    def _since_wanted(self) -> bool:
        """There is something to tell, or a person asked for it; else the log has the room."""
        snapshot = self.frame.snapshot
        told = snapshot is not None and bool(snapshot.since or snapshot.alerts or snapshot.advice)
        return told or self.frame.panel == "since"

    def _set_classes(self) -> None:
        width, height = self.app.size
        tiny = width < ONE_PANEL[0] or height < ONE_PANEL[1]
        small = width < ALL_PANELS[0] or height < ALL_PANELS[1]
        self.set_class(tiny, "-tiny")
        self.set_class((small or self.one_panel) and not tiny, "-single")
        self.set_class(self._since_wanted, "-since")
        for name, panel in self.panels.items():
            panel.set_class(name == self.frame.panel, "-front")

    def bring_to_front(self, name: str) -> None:
        """Focus a panel; where there is room for one, it is this."""
        for other, panel in self.panels.items():
            panel.set_class(other == name, "-front")
        self.set_class(name == "since" or self._since_wanted, "-since")
        self.set_focus(self.panels[name], scroll_visible=False)

    def neighbour(self, step: int) -> str:
        """Return the panel before or after the one in front."""
        return PANELS[(PANELS.index(self.frame.panel) + step) % len(PANELS)]


def _log_heading(frame: Frame) -> str:
    if frame.view.live:
        return "log"
    return f"log of the {window_label(window_s(frame.view, frame.bounds))} in view"
