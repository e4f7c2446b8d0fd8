"""Which processes belong to an agent: its descendants, remembered from first sight.

One listing of /proc a look; only numbers not seen before are read, so that a look costs little on
a busy host. A process is ours when its parent is, or when it belongs to a session or process group
that one of ours leads or has led: that finds what a short-lived child left behind. Ours stays ours
when it is re-parented. Source: metrics (usage of the tree).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from memwatch.host.process import Identity, boot_id
from memwatch.host.procfs import Stat, list_pids, read_stat

_RESCAN_LOOKS = 30  # how often strangers are looked at anew: their number may have been reused
_LEADER_LOOKS = 2  # how long the number of a dead one still stands for its session


class ProcessTree:
    """The living members of one tree. Processes of `exclude` and their children never belong."""

    def __init__(self, root: Identity, proc: Path, exclude: Iterable[int]) -> None:
        self._root = root
        self._proc = proc
        self._here = root.start_ticks > 0 and root.boot_id == boot_id(proc)
        self._ours: dict[int, int] = {}  # start ticks, by pid
        self._alive_at: dict[int, int] = {}  # look at which each of ours was last alive
        self._strangers: set[int] = set()
        self._named = frozenset(exclude)
        self._excluded = set(self._named)
        self._looks = 0

    def look(self) -> dict[int, Stat]:
        """Return the living members by pid."""
        if not self._here:
            return {}
        self._looks += 1
        present = set(list_pids(self._proc))
        living = self._still_alive(present)
        self._forget(present)
        new = present - living.keys() - self._strangers - self._excluded
        stats = (read_stat(self._proc, pid) for pid in new)
        living |= self._adopt([stat for stat in stats if stat is not None and not stat.dead])
        self._alive_at |= dict.fromkeys(living, self._looks)
        self._forget_leaders(living)
        return living

    def _still_alive(self, present: set[int]) -> dict[int, Stat]:
        living: dict[int, Stat] = {}
        for pid, start_ticks in list(self._ours.items()):
            stat = read_stat(self._proc, pid) if pid in present else None
            if stat is not None and not stat.dead and stat.start_ticks == start_ticks:
                living[pid] = stat
            else:
                del self._ours[pid]
        return living

    def _forget(self, present: set[int]) -> None:
        rescan = self._looks % _RESCAN_LOOKS == 0
        self._strangers = set() if rescan else self._strangers & present
        self._excluded = set(self._named) if rescan else self._excluded & present | self._named

    def _adopt(self, candidates: list[Stat]) -> dict[int, Stat]:
        """Take in those that are ours; parents come before their children, but for a tie."""
        adopted: dict[int, Stat] = {}
        rest = sorted(candidates, key=lambda stat: (stat.start_ticks, stat.pid))
        while True:
            ours = [stat for stat in rest if self._take(stat)]
            if not ours:
                break
            adopted |= {stat.pid: stat for stat in ours if stat.pid in self._ours}
            rest = [stat for stat in rest if stat not in ours]
        self._strangers |= {stat.pid for stat in rest}
        return adopted

    def _take(self, stat: Stat) -> bool:
        """Say whether a process is settled: ours, or excluded with its parent.

        The agent itself is ours although it may be a child of an excluded one that started it.
        """
        if stat.ppid in self._excluded and stat.pid != self._root.pid:
            self._excluded.add(stat.pid)
        elif self._belongs(stat):
            self._ours[stat.pid] = stat.start_ticks
            self._alive_at[stat.pid] = self._looks
        else:
            return False
        return True

    def _belongs(self, stat: Stat) -> bool:
        if stat.pid == self._root.pid:
            return stat.start_ticks == self._root.start_ticks
        return (
            stat.ppid in self._ours
            or stat.group in self._alive_at
            or stat.session in self._alive_at
        )

    def _forget_leaders(self, living: dict[int, Stat]) -> None:
        led = {stat.group for stat in living.values()} | {stat.session for stat in living.values()}
        for pid, look in list(self._alive_at.items()):
            if look < self._looks - _LEADER_LOOKS and pid not in led:
                del self._alive_at[pid]
