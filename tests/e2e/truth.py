"""An agent of which it is known what frees how much, when, and how fast that comes back.

As `agent.py`, with `truth FREED LATE_S STAYS_S BACK_S`: the next reclaim frees so many bytes so
long after it was done; they stay free for a while, and grow back evenly. It tells when it freed
them and when all were used again, by the clock of its log. `compact` shortens its context.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

from memwatch.agent.control.operation import Operation, Request
from memwatch.agent.control.reclaim import resident_bytes, trim_allocator
from memwatch.domain.clock import SystemClock
from tests.e2e.agent import Agent, serve

BLOCK = 256 * 1024
"""Smaller than what the allocator asks the system for apart."""
CONTEXT = 40
"""Messages of so many tokens each."""
TOKENS = 250


class Truth(Agent):
    """An agent that keeps account of what it frees."""

    def __init__(self, run_dir: Path, options: dict[str, Any]) -> None:
        compact = Operation(run=self._compact, about="shorten the context")
        super().__init__(run_dir, {**options, "operations": {"compact": compact}})
        self._blocks: list[bytearray] = []
        self._growing: threading.Thread | None = None
        self._plan = (0, 0.0, 0.0, 0.0)
        self._told: dict[str, int] = {}
        self._stopped = threading.Event()
        self.run.register_cache("truth", self._free)

    def truth(self, freed: int, late_s: float, stays_s: float, back_s: float) -> int:
        """Occupy what is going to be freed, and say what is resident."""
        self._plan = (freed, late_s, stays_s, back_s)
        self._grow(freed // BLOCK)
        return resident_bytes()

    def account(self) -> dict[str, int]:
        """Return when it was freed and when it was back, boot clock, and how much went."""
        return dict(self._told)

    def converse(self) -> None:
        """Fill the context."""
        for number in range(CONTEXT):
            self.run.tiers["recent"].put(f"message/{number:03}", {"text": "x"}, tokens=TOKENS)

    def _compact(self, request: Request) -> dict[str, Any]:
        del request
        before = self.run.tiers["recent"].tokens or 0
        for number in range(CONTEXT * 3 // 4):
            self.run.tiers["recent"].delete(f"message/{number:03}")
        after = self.run.tiers["recent"].tokens or 0
        members = {"tier": "recent", "kind": "manual"}
        self.run.record(
            "context.compact", {**members, "before_tokens": before, "after_tokens": after}
        )
        return {"freed_tokens": before - after}

    def _grow(self, count: int) -> None:
        for _ in range(count):
            block = bytearray(BLOCK)
            block[::4096] = b"x" * len(block[::4096])
            self._blocks.append(block)

    def _free(self) -> None:
        """Let go in a thread: at once it would be a part of the reclaim itself."""
        if self._plan[0] and self._growing is None:
            self._growing = threading.Thread(target=self._live, name="truth", daemon=True)
            self._growing.start()
            if not self._plan[1]:
                self._growing.join(0.5)

    def _live(self) -> None:
        freed, late_s, stays_s, back_s = self._plan
        clock = SystemClock()
        self._stopped.wait(late_s)
        before = resident_bytes()
        self._blocks.clear()
        trim_allocator()
        self._told["freed"] = before - resident_bytes()
        self._told["freed_m_us"] = clock.boot_us()
        self._stopped.wait(stays_s)
        began_us, count = clock.boot_us(), freed // BLOCK
        while back_s and len(self._blocks) < count:
            wanted = round(count * min((clock.boot_us() - began_us) / 1e6 / back_s, 1.0))
            self._grow(wanted - len(self._blocks))
            self._stopped.wait(0.05)
        self._told["back_m_us"] = clock.boot_us()


if __name__ == "__main__":
    serve(Truth, sys.argv)
