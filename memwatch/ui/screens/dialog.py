"""A question over the dashboard, worked by keys alone; what keys do is in `deeds.dialog`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING

from msgspec.structs import replace
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen

from memwatch.domain.command import CommandInfo
from memwatch.ui.bridge import TRIAL, Job
from memwatch.ui.deeds.dialog import Choice, Question, is_open, opened, pasted, pressed, tried
from memwatch.ui.frame import Frame
from memwatch.ui.line import Line
from memwatch.ui.panels.banner import banner
from memwatch.ui.panels.dialog import dialog_lines
from memwatch.ui.screens.overlay import BOX_CELLS, FRAME_CELLS, Dress
from memwatch.ui.widgets.lines import LinesView

if TYPE_CHECKING:
    from memwatch.runtime.session import Session

Ask = Callable[[str, Job], None]
"""Slot of the bridge, and the job; the outcome comes as `Answered`."""
LOOK_S = 0.3
"""How often an answer of the agent is looked for."""
_EDGES = 2
_numbers = count(1)


class DialogScreen(ModalScreen[Choice | None]):
    """One question. Its result is what was chosen, None for leaving everything as it is."""

    def __init__(
        self,
        frame: Frame,
        question: Question,
        ask: Ask,
        dress: Dress,
        why_not: Callable[[], str],
    ) -> None:
        """`why_not` says why nothing of it can be done any more, by the newest snapshot."""
        super().__init__()
        self.dialog = opened(question)
        self._frame = frame
        self._ask = ask
        self._dress = dress
        self._why_not = why_not
        self._slot = f"{TRIAL} {next(_numbers)}."  # an answer to an earlier dialog is not ours

    def compose(self) -> ComposeResult:
        """Mount the lines."""
        self._text = LinesView(id="dialog-text")
        self._dress(self._text)
        with Vertical(id="dialog-box") as box:
            box.border_title = Content(self.dialog.question.title)
            yield self._text

    def on_mount(self) -> None:
        """Ask the agent about the first thing that could be done, before anybody moves."""
        self.set_interval(LOOK_S, self._look)
        if not self._why_not():
            first = next((n for n, one in enumerate(self.dialog.question.choices) if one.trial), -1)
            self._try(first)
        self._paint()

    def on_resize(self) -> None:
        """Fill the new size."""
        self._paint()

    def update(self, frame: Frame) -> None:
        """Take a newer frame: what is asked stays, whether it can be done may change."""
        self._frame = frame
        self._paint()

    def on_key(self, event: events.Key) -> None:
        """Do what the key does, and let nothing else have it."""
        event.stop()
        event.prevent_default()
        after = pressed(self.dialog, event.key, event.character if event.is_printable else None)
        self.dialog = after.dialog
        if after.over and not (after.chosen and self._why_not()):
            self.dismiss(after.chosen)
            return
        if self.dialog.untried and not self._why_not():
            self._try(self.dialog.at)
        self._paint()

    def on_paste(self, event: events.Paste) -> None:
        """Take a name that is pasted."""
        event.stop()
        self.dialog = pasted(self.dialog, event.text)
        self._paint()

    def _paint(self) -> None:
        if not self.is_mounted:
            return
        width = max(min(self.app.size.width, BOX_CELLS) - FRAME_CELLS, 10)
        height = max(self.app.size.height - _EDGES, 1)
        alarms = [line for line in banner(self._frame, width) if line[0][1] == "alarm"]
        above = alarms[: max(height - 8, 0)]
        lines: list[Line] = [
            *above,
            *dialog_lines(self.dialog, width, height - len(above), self._why_not()),
        ]
        grown = len(lines) != len(self._text.lines)
        self._text.show(lines)
        if grown:
            self._text.refresh(layout=True)

    # -- what the agent would do -----------------------------------------------------------------

    def _try(self, at: int) -> None:
        command = self.dialog.question.choices[at].command if at >= 0 else None
        if command is None:
            return
        rehearsal = replace(command, dry_run=True, why="what it would do")

        def job(session: Session) -> CommandInfo:
            return session.command(session.submit(rehearsal))

        self.dialog = tried(self.dialog, at, "")
        self._ask(f"{self._slot}{at}", job)

    def _look(self) -> None:
        for at, trial in self.dialog.trials.items():
            if is_open(trial) and isinstance(trial, CommandInfo):
                self._ask(f"{self._slot}{at}", _state_of(trial.id))

    def answered(self, slot: str, answer: object, error: str) -> None:
        """Take an answer of the bridge, where it is to this dialog."""
        at = slot.removeprefix(self._slot)
        if at == slot:
            return
        found = answer if isinstance(answer, CommandInfo) else error or "no answer"
        self.dialog = tried(self.dialog, int(at), found)
        self._paint()


def _state_of(command_id: str) -> Job:
    return lambda session: session.command(command_id)
