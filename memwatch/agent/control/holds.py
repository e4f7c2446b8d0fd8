"""Leased holds: who keeps the agent paused or read-only, and until when.

A hold is a file that its writer renews. The lease counts on the agent's boot clock from when a
renewal was seen, so neither a dead writer nor a stepped clock holds the agent for longer than it
said. `memwatch.wal.spool_format` has the rules.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from memwatch.agent.context import Context
from memwatch.agent.control.operation import RefusedError
from memwatch.agent.control.spool import Spool, Stamp
from memwatch.domain.text import inert
from memwatch.wal.spool_format import ANY_RUN, HOLD, HoldFile, HoldState

FORGET_US = 3600 * 1_000_000
"""The file of a hold that is over for so long is removed: its writer is gone."""


class Hold(Struct, frozen=True, kw_only=True):
    """A hold that is known, live or over."""

    name: str
    owner: str
    file: HoldFile
    """As of its newest renewal."""
    stamp: Stamp
    lease_ends_us: int
    """Boot clock."""
    orphan: bool = False
    """Its file was refused: it ends with the lease that it had."""

    @property
    def ends_us(self) -> int | None:
        """Boot clock; None for one that stays until it is deleted."""
        return None if self.file.kept and not self.orphan else self.lease_ends_us

    @property
    def about(self) -> str:
        """Kind, owner and reason, for people."""
        reason = f": {inert(self.file.reason, 80)}" if self.file.reason else ""
        return f"{self.file.op} by {self.owner}{reason}"

    def told_back(self, *, drained: bool) -> HoldState:
        """Return the answer to it."""
        return HoldState(
            id=self.file.id,
            op=self.file.op,
            owner=self.owner,
            seen=self.file.renewed,
            effective=True,
            drained=drained,
            ends_us=self.ends_us,
        )


class Holds:
    """The folder `hold/` of a run as its agent sees it."""

    def __init__(
        self,
        context: Context,
        spool: Spool,
        stale: Callable[[int | None], str],
        refuse: Callable[[str, str], None],
    ) -> None:
        """`stale` says why an epoch is over, or nothing; `refuse` is told id (or "") and why."""
        self._context = context
        self._clock = context.clock
        self._spool = spool
        self._stale = stale
        self._refuse = refuse
        self._known: dict[str, Hold] = {}

    def read(self) -> None:
        """Read what changed in the folder; raises OSError."""
        found = self._spool.stamps(HOLD)
        for name in self._known.keys() - found.keys():
            if not self._known[name].orphan:
                del self._known[name]
        for name, stamp in found.items():
            known = self._known.get(name)
            if known is None or known.stamp != stamp:
                with suppress(OSError):  # one bad file does not hold up the others
                    self._take(name, stamp, known)

    def live(self) -> list[Hold]:
        """Return those that hold now, in order of their names."""
        now_us = self._clock.boot_us()
        live = []
        for name, hold in sorted(self._known.items()):
            if hold.ends_us is None or hold.ends_us > now_us:
                live.append(hold)
            elif hold.orphan:
                del self._known[name]
            elif now_us - hold.lease_ends_us > FORGET_US:
                self._spool.drop(HOLD, name)
        return live

    def _take(self, name: str, stamp: Stamp, known: Hold | None) -> None:
        try:
            owner, file = self._spool.read_hold(name)
        except FileNotFoundError:
            return
        except RefusedError as error:
            self._set_aside(name, known, "", str(error))
            return
        if file.run_id not in (self._context.run_id, ANY_RUN):
            self._set_aside(name, known, file.id, "wrong_run: it names another run")
        elif stale := self._stale(file.epoch):
            self._set_aside(name, known, file.id, stale)
        elif known is not None and not _is_renewal(file, known.file):
            self._known[name] = replace(known, stamp=stamp)
        else:
            ends_us = self._clock.boot_us() + file.lease_us
            self._known[name] = Hold(
                name=name, owner=owner, file=file, stamp=stamp, lease_ends_us=ends_us
            )

    def _set_aside(self, name: str, known: Hold | None, hold_id: str, why: str) -> None:
        self._spool.set_aside(HOLD, name)
        self._refuse(hold_id, why)
        if known is not None:
            self._known[name] = replace(known, orphan=True)


def _is_renewal(file: HoldFile, before: HoldFile) -> bool:
    return file.id != before.id or file.renewed > before.renewed
