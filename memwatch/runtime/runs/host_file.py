"""`$MEMWATCH_HOME/host.json`: what all runs of this machine have in common, learnt by their guards.

    {"format": 1, "disks": {"254:0": {"read_bytes_per_s", "write_bytes_per_s", "t_us", "cold",
    "how"}}, "costs": {"native": …}}

Read tolerantly, and whole: a member that cannot be read is as if it were not there, one that is
unknown stays. Changed under a lock, which nobody holds for longer than a write takes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from memwatch.agent.files import SYSTEM_FILES, Files
from memwatch.analytics.recovery.sound import is_amount
from memwatch.domain.recovery import DiskRate
from memwatch.domain.text import inert
from memwatch.host.deadline import ask
from memwatch.host.lock import FileLock
from memwatch.runtime.runs.target import read_json

HOST_FILE = "host.json"
HOST_LOCK = "host.lock"
_FORMAT = 1
_MOST_DISKS = 64
_LEAST_RATE, _MOST_RATE = 1e3, 1e13
"""Bytes a second that a disk may have."""
_DEADLINE_S = 2.0


class HostFile:
    """The file in one home of memwatch."""

    def __init__(self, home: Path, files: Files = SYSTEM_FILES) -> None:
        self._path = home / HOST_FILE
        self._files = files

    @property
    def damaged(self) -> bool:
        """Whether something lies there and is no such file: it is made anew."""
        return os.path.lexists(self._path) and self._known() is None

    def disk(self, device: str) -> DiskRate | None:
        """Return what was measured of a device (`device_below`), None where nothing was."""
        return _rate(self._part("disks").get(device))

    def costs(self, what: str = "native") -> Any:
        """Return what `change_costs` made, as plain JSON; None before."""
        return self._part("costs").get(what)

    def remember_disk(self, device: str, rate: DiskRate) -> None:
        """Keep a rate of a device; raises OSError, LockHeldError."""
        told = msgspec.to_builtins(rate) | {"cold": rate.read_bytes_per_s is not None}

        def add(disks: dict[str, Any]) -> dict[str, Any]:
            disks.pop(device, None)
            return dict([*disks.items(), (device, told)][-_MOST_DISKS:])

        self._change("disks", add)

    def change_costs(self, change: Callable[[Any], object], what: str = "native") -> None:
        """Keep what `change` makes of the costs as they are, which others may have kept meanwhile.

        Raises OSError, LockHeldError.
        """
        self._change(
            "costs", lambda known: known | {what: msgspec.to_builtins(change(known.get(what)))}
        )

    def _known(self) -> dict[str, Any] | None:
        known = read_json(self._path)
        return known if known is not None and known.get("format") == _FORMAT else None

    def _part(self, name: str) -> dict[str, Any]:
        return _part_of(self._known() or {}, name)

    def _change(self, name: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        with FileLock.acquire(self._path.with_name(HOST_LOCK)):
            known = self._known() or {}
            try:
                text = _changed(known, name, change)
            except RecursionError:  # it could just be read
                text = _changed({}, name, change)
            self._files.replace(self._path, text.encode(), mode=0o600)


def _changed(
    known: dict[str, Any], name: str, change: Callable[[dict[str, Any]], dict[str, Any]]
) -> str:
    """Return the new text; by the library that read it, which writes whatever it can read."""
    return json.dumps({**known, "format": _FORMAT, name: change(_part_of(known, name))})


def device_below(path: Path) -> str | None:
    """Return the device that a path lies on, as `major:minor`; None where that does not answer."""
    device = ask(f"device of {path}", lambda: path.stat().st_dev, _DEADLINE_S)
    return None if device is None else f"{os.major(device)}:{os.minor(device)}"


def useful(rate: DiskRate | None) -> DiskRate | None:
    """Return a rate that says anything, else None."""
    nothing = rate is None or rate.read_bytes_per_s is rate.write_bytes_per_s is None
    return None if nothing else rate


def _part_of(known: dict[str, Any], name: str) -> dict[str, Any]:
    part = known.get(name)
    return part if isinstance(part, dict) else {}


def _rate(value: object) -> DiskRate | None:
    try:
        rate = msgspec.convert(value, DiskRate)
    except (ValueError, RecursionError):  # of a wrong shape, or half a surrogate pair
        return None
    found = (rate.read_bytes_per_s, rate.write_bytes_per_s)
    believable = all(one is None or _LEAST_RATE <= one <= _MOST_RATE for one in found)
    return replace(rate, how=inert(rate.how, 120)) if believable and is_amount(rate.t_us) else None
