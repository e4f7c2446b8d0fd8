"""Pressure stall information: how long tasks waited for memory, or a disk, as the kernel saw it.

For memory of the agent's own control group (version 2) where there is one, else of the machine,
else unknown: kernels before 4.20, `psi=0`, a container that hides it. Source: kernel,
Documentation/accounting/psi.rst; control, 5.
"""

from __future__ import annotations

from pathlib import Path

from memwatch.domain.control import Pressure
from memwatch.host.limits import group_of
from memwatch.host.procfs import PROC, read

_EVENTS = (b"max", b"oom")
"""Usage met the group's limit; nothing could be reclaimed."""


def memory_pressure(pid: int | None, proc: Path = PROC, root: Path = Path("/")) -> Pressure | None:
    """Return the pressure on a process's group, or on the machine; None where nobody tells.

    `root` stands before mount points. The top group of the machine is the machine.
    """
    group = group_of(pid, proc, root) if pid is not None else None
    if group is not None:
        events = read(f"{group}/memory.events")  # the top group has none
        figures = _figures(read(f"{group}/memory.pressure"))
        if events is not None and figures is not None:
            return Pressure(
                scope="cgroup",
                some_avg10=figures["some"][0],
                some_avg60=figures["some"][1],
                full_avg10=figures["full"][0],
                events=_events(events),
            )
    figures = _figures(read(f"{proc}/pressure/memory"))
    if figures is None:
        return None
    some, full = figures["some"], figures["full"]
    return Pressure(scope="system", some_avg10=some[0], some_avg60=some[1], full_avg10=full[0])


def io_pressure(proc: Path = PROC) -> float | None:
    """Return the share of the last 10 s that some task of the machine waited for a disk, in %.

    None where nobody tells.
    """
    figures = _figures(read(f"{proc}/pressure/io"))
    return figures["some"][0] if figures else None


def _figures(text: bytes | None) -> dict[str, tuple[float, float]] | None:
    """Return averages of 10 s and 60 s for some and full; None for a file that is no such."""
    found: dict[str, tuple[float, float]] = {}
    for line in (text or b"").decode("ascii", "replace").splitlines():
        name, _, rest = line.partition(" ")
        named = dict(pair.partition("=")[::2] for pair in rest.split())
        try:
            found[name] = (float(named["avg10"]), float(named["avg60"]))
        except (KeyError, ValueError):
            continue
    return found if found.keys() >= {"some", "full"} else None


def _events(text: bytes) -> int:
    total = 0
    for line in text.splitlines():
        words = line.split()
        if len(words) == 2 and words[0] in _EVENTS and words[1].isdigit():
            total += int(words[1])
    return total
