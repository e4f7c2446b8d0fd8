"""The dashboard's keys: another view, a box of text, a request, or a question first."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec.structs import replace
from textual import on
from textual.app import SystemCommand
from textual.binding import Binding, BindingType

from memwatch.domain.command import Command
from memwatch.domain.snapshot import Snapshot
from memwatch.domain.text import inert
from memwatch.ui import actions, messages, view
from memwatch.ui.charts.course import first_sample_us
from memwatch.ui.deeds.agent import note
from memwatch.ui.deeds.choices import Request
from memwatch.ui.deeds.dialog import Choice
from memwatch.ui.deeds.guard import first_question, wants_first_question
from memwatch.ui.deeds.offers import refusal
from memwatch.ui.deeds.table import DEEDS, Deed, deed
from memwatch.ui.live import LiveApp
from memwatch.ui.terminal.driver import ThriftyDriver
from memwatch.ui.view import View
from memwatch.ui.words import guard_words

if TYPE_CHECKING:
    from textual.screen import Screen

    from memwatch.ui.screens.dialog import DialogScreen
    from memwatch.ui.screens.listing import Listing, ListingScreen
    from memwatch.ui.screens.overlay import DrawText

REFRESHES_S = (0.5, 1.0, 2.0, 5.0, 10.0)


class DashboardApp(LiveApp):
    """The dashboard on one session, worked by keys."""

    CSS_PATH = "memwatch.tcss"
    TITLE = "memwatch"
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "run('quit')", "quit", show=False, priority=True),
        *(
            Binding(",".join(one.keys), f"run('{one.id}')", one.label, show=False, id=one.id)
            for one in actions.ACTIONS
        ),
    ]

    _dialog: DialogScreen | None = None
    _requests = 0
    _asked_first = False
    _first_is_open = False
    _seen = False

    def action_run(self, name: str) -> None:
        """Do what the table says, or say why not."""
        action = actions.BY_ID[name]
        why_not = refusal(action, self._newest, view_only=self.frame.view_only)
        if why_not:
            self.say(f"{action.shown} {action.label}: {why_not}")
            return
        if action.id in DEEDS and self._newest is not None:
            self._begin(deed(action.id, self._newest))
            return
        verb, _, argument = name.partition(":")
        change = VIEW_CHANGES.get(verb)
        if change is not None:
            self._change_view(change)
        elif argument:
            getattr(self, f"_do_{verb}")(argument)
        else:
            getattr(self, f"_do_{verb}")()

    def _do_pan_back(self) -> None:
        """Look back; how far that goes is asked when it is first needed."""
        snapshot = self._newest
        if snapshot is not None and self.frame.first_us is None:
            now_us = snapshot.t_us
            self.bridge.ask("first", lambda session: first_sample_us(session, now_us))
        self._change_view(view.pan_back)

    # -- requests --------------------------------------------------------------------------------

    def _begin(self, what: Deed) -> None:
        """Hand a request over, or ask the person first."""
        if isinstance(what, Request):
            self._submit(what.command, what.sent)
            return
        from memwatch.ui.screens.dialog import DialogScreen

        def why_not() -> str:
            action = actions.BY_ID[what.action]
            return refusal(action, self._newest, view_only=self.frame.view_only)

        self._dialog = DialogScreen(self.frame, what, self.bridge.ask, self._dress, why_not)
        self._dialog.set_class(self.ascii_only, "-ascii")
        self.push_screen(self._dialog, self._chosen)

    def _chosen(self, choice: Choice | None) -> None:
        self._dialog, self._first_is_open = None, False
        if choice is not None and choice.command is not None:
            self._submit(choice.command, choice.sent)

    def _submit(self, command: Command, words: str) -> None:
        self._requests += 1
        self.bridge.ask(f"request {self._requests}", lambda session: session.submit(command))
        self.say(words)

    def _tried(self, message: messages.Answered) -> None:
        """Tell the question on the screen what the agent says that it would do."""
        if self._dialog is not None:
            self._dialog.answered(message.slot, message.answer, message.error)

    def _look_at(self, snapshot: Snapshot) -> None:
        """Open what a store is looked at for; ask once what the guard may do, where nobody said."""
        if not self._seen:
            self._seen = True
            if snapshot.checkpoints.source != "native":
                self._do_checkpoints()
        if self._first_is_open and snapshot.engine.asked:
            self._answered_elsewhere(snapshot)
        if self._asked_first or self.screen is not self.dashboard:
            return
        if wants_first_question(snapshot, view_only=self.frame.view_only):
            self._asked_first = self._first_is_open = True
            self._begin(first_question(snapshot))

    def _answered_elsewhere(self, snapshot: Snapshot) -> None:
        """Take the question back that another viewer or `ctl` answered: it says what is not so."""
        if self._dialog is not None and self.screen is self._dialog:
            self._dialog.dismiss(None)
            engine = snapshot.engine
            words = guard_words(engine, engine.mode)
            self.say(f"said meanwhile by {inert(engine.by, 24)}: {words}")

    def _do_note(self) -> None:
        from memwatch.ui.screens.overlay import NoteScreen

        self.push_screen(NoteScreen(classes="-ascii" if self.ascii_only else None))

    @on(messages.NoteWritten)
    def _note_written(self, message: messages.NoteWritten) -> None:
        self._begin(note(message.text))

    # -- panels and pace -------------------------------------------------------------------------

    def _do_panel(self, name: str) -> None:
        self._leave_listing()
        self.dashboard.bring_to_front(name)

    def _do_next_panel(self, step: str) -> None:
        self.dashboard.bring_to_front(self.dashboard.neighbour(int(step)))

    @on(messages.PanelFocused)
    def _panel_focused(self, message: messages.PanelFocused) -> None:
        if message.panel != self.frame.panel:
            self._show(replace(self.frame, panel=message.panel))

    def _do_one_panel(self) -> None:
        self.dashboard.one_panel = not self.dashboard.one_panel
        self.dashboard.choose_layout()

    def _do_slower(self) -> None:
        self._set_refresh(next((s for s in REFRESHES_S if s > self.bridge.refresh_s), 10.0))

    def _do_faster(self) -> None:
        slower = [s for s in REFRESHES_S if s < self.bridge.refresh_s]
        self._set_refresh(slower[-1] if slower else REFRESHES_S[0])

    def _set_refresh(self, seconds: float) -> None:
        self.bridge.refresh_s = seconds
        self.frame = replace(self.frame, refresh_s=seconds)
        self.say(f"an update each {seconds:g} s")

    # -- long tables ---------------------------------------------------------------------------

    def _do_checkpoints(self) -> None:
        from memwatch.ui.screens.listings import CheckpointListing

        self._list(CheckpointListing())

    def _do_interventions(self) -> None:
        from memwatch.ui.screens.listings import InterventionListing

        self._list(InterventionListing())

    def _list(self, listing: Listing) -> None:
        """Open a listing in place of another one; the key of the open one closes it."""
        from memwatch.ui.screens.listing import ListingScreen

        shown = self.listing
        self._leave_listing()
        if shown is not None and shown.listing.name == listing.name:
            return
        screen = ListingScreen(self.frame, listing, self.bridge.ask, self._dress, self._box)
        screen.set_class(self.ascii_only, "-ascii")
        self.listing = screen
        self.push_screen(screen, lambda _: self._listing_left(screen))

    def _leave_listing(self) -> None:
        if self.listing is not None and self.screen is self.listing:
            left = self.listing
            left.dismiss()
            self._listing_left(left)

    def _listing_left(self, left: ListingScreen) -> None:
        if self.listing is left:  # it may be told of one that another has replaced by now
            self.listing = None
            self._next_frame()

    def _listed(self, message: messages.Answered) -> None:
        """Hand the rows to the table that asked for them."""
        if self.listing is not None:
            self.listing.answered(message.slot, message.answer)

    # -- boxes over the dashboard ----------------------------------------------------------------

    @on(messages.EvidenceRequested)
    def _evidence_requested(self, message: messages.EvidenceRequested) -> None:
        self._open("evidence", message.panel)

    def _do_evidence(self) -> None:
        self._open("evidence", self.frame.panel)

    def _do_policy(self) -> None:
        self._open("policy")

    def _do_help(self) -> None:
        self._open("help")

    def _open(self, name: str, panel: str = "") -> None:
        from memwatch.ui.screens.boxes import box

        self._box(*box(name, panel))

    def _box(self, title: str, draw: DrawText) -> None:
        from memwatch.ui.screens.overlay import Overlay

        overlay = Overlay(self.frame, title, draw, self._dress)
        overlay.set_class(self.ascii_only, "-ascii")
        self.push_screen(overlay)

    # -- the terminal ----------------------------------------------------------------------------

    def _do_mouse(self) -> None:
        if isinstance(self._driver, ThriftyDriver):
            self.say("mouse on" if self._driver.switch_mouse() else "mouse off")

    def _do_redraw(self) -> None:
        if isinstance(self._driver, ThriftyDriver):
            self._driver.forget()
        self.screen.refresh(layout=True)

    def _do_quit(self) -> None:
        self.exit()

    def get_system_commands(self, _screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Offer every action by name in the command palette."""
        for action in actions.ACTIONS:
            label = f"{action.label} ({action.shown})"
            yield SystemCommand(label, action.help, lambda name=action.id: self.action_run(name))


VIEW_CHANGES: dict[str, Callable[[View, view.Bounds], View]] = {
    "zoom_in": view.zoom_in,
    "zoom_out": view.zoom_out,
    "pan_forward": view.pan_forward,
    "to_now": view.to_now,
    "freeze": view.toggle_freeze,
}
