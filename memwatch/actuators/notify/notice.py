"""What is sent: one alert raised or cleared, in one line that is safe for any reader."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from memwatch.analytics.alerts import AlertSeverity
from memwatch.domain.text import inert
from memwatch.domain.units import duration_text

NoticeState = Literal["raised", "cleared", "told", "test"]
"""told: something that ends at once and is never cleared."""
WIDTH = 400


class Notice(Struct, frozen=True, kw_only=True):
    """One message to people."""

    key: str
    state: NoticeState
    severity: AlertSeverity
    text: str
    run: str
    host: str = ""
    at_us: int = 0
    """Wall time at which it began, or was over."""
    lasted_us: int | None = None
    """Of one that is cleared."""

    @property
    def line(self) -> str:
        """The whole of it as one line without control characters: `run: text`.

        It begins with our own word, so that no program takes it for an option.
        """
        word = "memwatch"
        if self.state == "cleared":
            span = "" if self.lasted_us is None else f" after {duration_text(self.lasted_us / 1e6)}"
            word += f": all clear{span}"
        return inert(f"{word}: {self.run}: {self.text}", WIDTH)
