"""The memory of the agent's process and all its descendants, one look after the other."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from memwatch.domain.clock import Clock
from memwatch.domain.sample import ProcessInfo, TreeSample
from memwatch.host.process import Identity
from memwatch.host.procfs import (
    PROC,
    Memory,
    Stat,
    count_descriptors,
    read_arguments,
    read_memory,
)
from memwatch.ingest.process_name import process_name
from memwatch.ingest.process_tree import ProcessTree

_MEMBERS_NAMED = 10
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class _Member(NamedTuple):
    stat: Stat
    memory: Memory
    orphan: bool


class TreeProbe:
    """Samples one process tree.

    Usage is resident plus swapped bytes of each process, a plain sum: pages that processes share
    count once for each. Processes of `exclude` (by default the calling one) and their children
    never count. Source: requirement R11.
    """

    def __init__(
        self,
        identity: Identity,
        clock: Clock,
        proc: Path = PROC,
        exclude: Collection[int] | None = None,
    ) -> None:
        self._root = identity
        self._clock = clock
        self._proc = proc
        self._tree = ProcessTree(identity, proc, (os.getpid(),) if exclude is None else exclude)

    def sample(self) -> TreeSample:
        """Look at the tree. Never raises for processes that vanish or are closed to us."""
        t_us, m_us = self._clock.wall_us(), self._clock.boot_us()
        living = self._tree.look()
        root = self._root.pid
        members = [
            _Member(stat, read_memory(self._proc, pid), pid != root and stat.ppid not in living)
            for pid, stat in living.items()
        ]
        members.sort(key=lambda member: sum(member.memory), reverse=True)
        return TreeSample(
            t_us=t_us,
            m_us=m_us,
            alive=root in living,
            rss_bytes=sum(member.memory.rss_bytes for member in members),
            swap_bytes=sum(member.memory.swap_bytes for member in members),
            processes=len(members),
            orphans=sum(member.orphan for member in members),
            threads=sum(member.stat.threads for member in members),
            fds=count_descriptors(self._proc, root) if root in living else None,
            members=tuple(self._info(member, m_us) for member in members[:_MEMBERS_NAMED]),
        )

    def _info(self, member: _Member, m_us: int) -> ProcessInfo:
        stat = member.stat
        return ProcessInfo(
            pid=stat.pid,
            ppid=stat.ppid,
            start_ticks=stat.start_ticks,
            name=process_name(read_arguments(self._proc, stat.pid), stat.command),
            rss_bytes=member.memory.rss_bytes,
            swap_bytes=member.memory.swap_bytes,
            threads=stat.threads,
            age_s=max(m_us / 1e6 - stat.start_ticks / _TICKS_PER_S, 0.0),
            orphan=member.orphan,
        )
