"""What the threads tell the screen. None carries a snapshot: the newest is taken when handled."""

from __future__ import annotations

from textual.message import Message


class SnapshotReady(Message):
    """A newer snapshot can be taken from the bridge."""


class LinkChanged(Message):
    """The connection changed, or nothing came for a while."""


class Answered(Message):
    """A job of the bridge is done, or failed."""

    def __init__(self, slot: str, answer: object, error: str) -> None:
        super().__init__()
        self.slot = slot
        self.answer = answer
        self.error = error
        """Why there is no answer; empty when there is one."""


class EvidenceRequested(Message):
    """A person asks where the figures of a panel come from."""

    def __init__(self, panel: str) -> None:
        super().__init__()
        self.panel = panel


class PanelFocused(Message):
    """A panel came to the front."""

    def __init__(self, panel: str) -> None:
        super().__init__()
        self.panel = panel


class NoteWritten(Message):
    """A person finished a note."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text
