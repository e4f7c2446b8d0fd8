"""What would become of a process when its user logs out. Read-only, asks no service.

systemd keeps each login in a scope of its own (`session-N.scope`) and ends what is left in it where
`KillUserProcesses=yes`; what runs below the user's own manager (`user@UID.service`) ends with the
last login of that user unless lingering is enabled. Source: logind.conf(5), loginctl(1).
"""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import Literal

from msgspec import Struct

from memwatch.host.procfs import read

_ROOT = Path("/")
_CONFIG = ("usr/lib/systemd", "run/systemd", "etc/systemd")
"""From the lowest to the highest."""
_YES = frozenset({"1", "yes", "true", "on"})
_MULTIPLEXERS = (b"TMUX=", b"STY=")

Place = Literal["alone", "session", "manager"]
"""alone: no login manager looks after it · session: in the scope of a login · manager: below the
user's own service manager."""


class Logout(Struct, frozen=True, kw_only=True):
    """Facts about one process."""

    place: Place = "alone"
    unit: str = ""
    """The service that it runs as, where it is one."""
    on_terminal: bool = False
    """A terminal that closes ends it (SIGHUP)."""
    in_multiplexer: bool = False
    """That terminal belongs to tmux or screen, which stays."""
    lingers: bool = False
    """The user's manager stays when the user logs out."""
    killed: bool = False
    """Processes of a login end with it."""


def logout_facts(pid: int, root: Path = _ROOT) -> Logout:
    """Return what decides; a process that is gone or a system without systemd is `alone`."""
    proc = root / "proc"
    place, unit = _place(read(f"{proc}/{pid}/cgroup") or b"")
    user = _user_of(proc, pid)
    environment = (read(f"{proc}/{pid}/environ") or b"").split(b"\0")
    return Logout(
        place=place,
        unit=unit,
        on_terminal=_has_terminal(proc, pid),
        in_multiplexer=any(one.startswith(_MULTIPLEXERS) for one in environment),
        lingers=bool(user) and (root / "var/lib/systemd/linger" / user).exists(),
        killed=_kills(root, user),
    )


def _place(cgroup: bytes) -> tuple[Place, str]:
    paths = [line.split(":", 2)[-1] for line in cgroup.decode(errors="replace").splitlines()]
    parts = [part for path in paths for part in path.split("/")]
    if any(part.startswith("user@") and part.endswith(".service") for part in parts):
        last = next((path.rpartition("/")[2] for path in paths if "user@" in path), "")
        is_service = last.endswith(".service") and not last.startswith("user@")
        return "manager", last if is_service else ""
    in_session = any(part.startswith("session-") and part.endswith(".scope") for part in parts)
    return ("session" if in_session else "alone"), ""


def _has_terminal(proc: Path, pid: int) -> bool:
    fields = (read(f"{proc}/{pid}/stat") or b"").rpartition(b")")[2].split()
    return len(fields) > 4 and fields[4] not in (b"0", b"-1")


def _user_of(proc: Path, pid: int) -> str:
    try:
        return pwd.getpwuid((proc / str(pid)).stat().st_uid).pw_name
    except (OSError, KeyError):
        return ""


def _kills(root: Path, user: str) -> bool:
    """Say whether processes of this user's logins end with them, as logind is configured."""
    values = {"KillUserProcesses": "no", "KillExcludeUsers": "root", "KillOnlyUsers": ""}
    for path in _config_files(root):
        for line in (read(os.fspath(path)) or b"").decode(errors="replace").splitlines():
            name, sign, value = line.partition("=")
            if sign and name.strip() in values:
                values[name.strip()] = value.strip()
    only, excluded = values["KillOnlyUsers"].split(), values["KillExcludeUsers"].split()
    spared = user in excluded or (bool(only) and user not in only)
    return values["KillUserProcesses"].lower() in _YES and not spared


def _config_files(root: Path) -> list[Path]:
    """Return what configures logind: the main files, then drop-ins by name, one of each."""
    drop_ins: dict[str, Path] = {}
    for folder in _CONFIG:
        for path in (root / folder / "logind.conf.d").glob("*.conf"):
            drop_ins[path.name] = path
    mains = [root / folder / "logind.conf" for folder in _CONFIG]
    return [*mains, *(drop_ins[name] for name in sorted(drop_ins))]
