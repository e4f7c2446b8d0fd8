"""Keeps the holds that were asked for: written, renewed, put back when somebody took them away.

A hold that only its lease ends is renewed each quarter of it, with a rising `renewed`; so it ends
by itself soon after we died. The agent's own shell can delete a hold: what vanished without our
release is written again, and told. `memwatch.wal.spool_format` has the rules.
Source: control, 2.7; R8, R9.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from memwatch.actuators.folder import ControlFolder, handing_over
from memwatch.actuators.spool import sender
from memwatch.domain.clock import Clock
from memwatch.domain.operations import ENGINE, HoldOp
from memwatch.domain.text import inert
from memwatch.wal.spool_format import (
    ANY_RUN,
    HOLD,
    HoldFile,
    encode,
    hold_name,
    parse_hold,
    parse_hold_name,
)

_TELL_AGAIN_US = 60_000_000


class Kept(Struct, kw_only=True):
    """A hold that we keep."""

    owner: str
    file: HoldFile
    """As of its newest renewal."""
    since_us: int
    """Wall clock."""
    due_m_us: int
    """Boot clock: of its next renewal."""
    trouble: str = ""
    told_m_us: int = 0


class HoldKeeper:
    """The holds of one guard. Its caller holds a lock."""

    def __init__(
        self, folder: ControlFolder, clock: Clock, refusal: Callable[[str], str | None]
    ) -> None:
        """`refusal` returns why the agent refused the hold with an id, None when it did not."""
        self._folder = folder
        self._clock = clock
        self._refusal = refusal
        self._kept: dict[str, Kept] = {}
        self._unsynced: set[str] = set()
        self.engine_renews: Callable[[], bool] = lambda: True
        """Whether what the engine holds is renewed; else it ends with its lease."""

    @property
    def kept(self) -> tuple[Kept, ...]:
        """What we keep, in order of their names."""
        return tuple(self._kept[name] for name in sorted(self._kept))

    def put(self, owner: str, file: HoldFile) -> str:
        """Hold; returns the id of the hold of this owner that it takes the place of, or "".

        Raises MemwatchError with the reason.
        """
        name, now_us = hold_name(owner, file.op), self._clock.wall_us()
        before = self._kept.get(name)
        kept = Kept(owner=owner, file=file, since_us=now_us, due_m_us=0)
        with handing_over("the hold"):
            self._write(name, kept, self._clock.boot_us())
        self._kept[name] = kept
        self._unsynced.add(name)
        return before.file.id if before and before.file.id != file.id else ""

    def release(self, op: HoldOp, chosen: Callable[[str, str], bool]) -> list[str]:
        """Delete the holds of a kind whose owner and id are chosen; returns their ids.

        One that cannot be read has the id "". Raises MemwatchError with the reason.
        """
        released = []
        with handing_over("the release"):
            for name, owner, file in list(self._on_disk()):
                hold_id = file.id if file else ""
                if parse_hold_name(name) == (owner, op) and chosen(owner, hold_id):
                    self._unsynced.add(name)
                    with suppress(FileNotFoundError):
                        self._folder.remove(HOLD, name)
                    ours = self._kept.pop(name, None)
                    released.append(hold_id or (ours.file.id if ours else ""))
        for name, kept in list(self._kept.items()):  # somebody took its file away before
            if kept.file.op == op and chosen(kept.owner, kept.file.id):
                del self._kept[name]
                released.append(kept.file.id)
        return released

    def withdraw(self, hold_id: str) -> bool:
        """Take back a hold that was not seen yet."""
        for name, kept in self._kept.items():
            if kept.file.id == hold_id:
                with suppress(FileNotFoundError):
                    self._folder.remove(HOLD, name)
                del self._kept[name]
                return True
        return False

    def has(self, hold_id: str) -> bool:
        """Say whether a hold lies there, or is kept."""
        kept = any(one.file.id == hold_id for one in self._kept.values())
        return kept or any(file and file.id == hold_id for _, _, file in self._on_disk())

    def adopt(self, epoch: int, in_force: Collection[str] | None) -> None:
        """Go on with what the guard before kept: it is renewed at once, as ours.

        `in_force` are the ids that the agent names, None while it says nothing. A pause of the
        engine that ended meanwhile stays over. Holds of others that end with their lease are left
        to whoever renews them. A folder that others may write is not believed: nothing is adopted.
        """
        try:
            found = list(self._on_disk())
        except OSError:  # told by whatever is asked for next
            return
        for name, owner, file in found:
            if file is None or name in self._kept or not (owner == ENGINE or file.kept):
                continue
            if in_force is not None and file.id not in in_force and not file.kept:
                self._discard(name)
                continue
            ours = replace(file, epoch=epoch if owner == ENGINE else None)
            since_us = self._clock.wall_us()
            self._kept[name] = Kept(owner=owner, file=ours, since_us=since_us, due_m_us=0)

    def take_unsynced(self) -> set[str]:
        """Return names of what was put or released, to bring to the device, once."""
        names, self._unsynced = self._unsynced, set()
        return names

    def keep(self, m_us: int) -> tuple[str, ...]:
        """Renew what is due, write again what is gone; returns what people must know."""
        told = (self._keep_one(name, kept, m_us) for name, kept in list(self._kept.items()))
        return tuple(one for one in told if one)

    def _keep_one(self, name: str, kept: Kept, m_us: int) -> str:
        about = f"{kept.file.op.replace('_', '-')} by {kept.owner}"
        if kept.owner == ENGINE and not self.engine_renews():
            self._let_lapse(name, kept, m_us)
            return ""
        try:
            changed = self._what_changed(name, kept)
            if changed and (why := self._refusal(kept.file.id)) is not None:
                del self._kept[name]
                return f"the agent refused the {about}: {why}"
            if changed or m_us >= kept.due_m_us:
                self._write(name, kept, m_us)
        except OSError as error:
            changed = f"cannot be renewed ({error.strerror or error})"
            return self._once(kept, f"the {about} {changed}", m_us)
        if changed:
            return self._once(kept, f"the {about} {changed}; it was put back", m_us)
        return ""

    def _let_lapse(self, name: str, kept: Kept, m_us: int) -> None:
        """Forget a hold whose lease is over: nothing begins it again."""
        if not kept.file.kept and m_us >= kept.due_m_us + kept.file.lease_us * 3 // 4:
            del self._kept[name]
            self._discard(name)

    def _discard(self, name: str) -> None:
        with suppress(OSError):  # the agent does it an hour later
            self._folder.remove(HOLD, name)

    def _what_changed(self, name: str, kept: Kept) -> str:
        """Say what became of a hold's file, nothing when it lies there as we wrote it."""
        if not kept.due_m_us:  # adopted: as the guard before wrote it
            return ""
        try:
            found = parse_hold(self._folder.read(HOLD, name))
        except FileNotFoundError:
            return "was deleted by somebody"
        except (OSError, ValueError):
            return "was changed by somebody"
        return "" if found == kept.file else "was changed by somebody"

    def _write(self, name: str, kept: Kept, m_us: int) -> None:
        renewed = kept.file.renewed + 1
        file = replace(kept.file, renewed=renewed, by=sender(kept.file.by.origin))
        text = encode(file)
        self._folder.publish(HOLD, name, text, self._clock.wall_us(), replace=True)
        kept.file, kept.due_m_us = file, m_us + max(file.lease_us // 4, 1)

    def _once(self, kept: Kept, trouble: str, m_us: int) -> str:
        """Tell a trouble when it begins, and once a minute while it comes again."""
        if trouble == kept.trouble and m_us - kept.told_m_us < _TELL_AGAIN_US:
            return ""
        kept.trouble, kept.told_m_us = trouble, m_us
        return inert(trouble)

    def _on_disk(self) -> Iterator[tuple[str, str, HoldFile | None]]:
        """Give name, owner and text of each hold of this run; what cannot be read has none."""
        try:
            names = self._folder.names(HOLD)
        except FileNotFoundError:
            return
        for name in names:
            named = parse_hold_name(name)
            if named is None:
                continue
            file = None
            with suppress(OSError, ValueError):
                file = parse_hold(self._folder.read(HOLD, name))
            if file is not None and file.run_id not in (self._folder.run_id, ANY_RUN):
                continue
            yield name, named[0], file if file and file.op == named[1] else None
