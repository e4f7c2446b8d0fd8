"""Folders of memwatch; the only place that reads them from the environment.

    $MEMWATCH_HOME, else $XDG_STATE_HOME/memwatch, else the system's folder for state
      runs/<run_key>/       what the guard keeps of one run
      host.json             what all runs of this machine have in common
      run/<12 hex>.sock     its socket, where no $XDG_RUNTIME_DIR is ours
    $XDG_CONFIG_HOME/memwatch, else the system's folder for settings
      profiles/  themes/    the user's own files

Importing this loads nothing but the standard library: `status` starts with it.
"""

from __future__ import annotations

import os
import re
from hashlib import sha256
from pathlib import Path

_APP = "memwatch"
_PACKAGE = Path(__file__).resolve().parent.parent
_SAFE_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_SOCKET_PATH_BYTES = 107
"""Longest path of a Unix socket on Linux: 108 bytes with the closing zero."""


def home(*, create: bool = False) -> Path:
    """Return memwatch's own folder; `create` makes it, closed to others (0700)."""
    path = _own_folder("MEMWATCH_HOME") or _xdg_folder("XDG_STATE_HOME") or _system_folder("state")
    return _made(path) if create else path


def lasting_environment() -> dict[str, str]:
    """Return our environment for a process that lives in another working directory than we."""
    own = _own_folder("MEMWATCH_HOME")
    return dict(os.environ) if own is None else {**os.environ, "MEMWATCH_HOME": os.fspath(own)}


def config_dir() -> Path:
    """Return the folder of the user's settings; it may not exist."""
    return _xdg_folder("XDG_CONFIG_HOME") or _system_folder("config")


def theme_dirs() -> list[Path]:
    """Return folders that hold themes, the user's first; the last is the one we ship."""
    packaged = _PACKAGE / "themes"
    shipped = packaged if packaged.is_dir() else _PACKAGE.parent / "themes"
    return [config_dir() / "themes", shipped]


def profile_dirs() -> list[Path]:
    """Return folders that hold profiles, the user's first; the last is the one we ship."""
    return [config_dir() / "profiles", _PACKAGE / "profiles"]


def run_folder(run_key: str) -> str:
    """Return the file name under which a run is kept.

    A run key comes from a stranger's run.json: one that is no plain file name is replaced by its
    plain part and a hash, so that it can lead nowhere else. The answer for an answer is itself.

    >>> run_folder("20260731-demo")
    '20260731-demo'
    >>> run_folder("../../etc")
    'etc-74ccf3c5b4c1'
    """
    if _SAFE_KEY.fullmatch(run_key):
        return run_key
    plain = _UNSAFE.sub("-", run_key[:200]).strip("-._")[:60]
    return f"{plain or 'run'}-{_short_hash(run_key)}"


def run_home(run_key: str, *, create: bool = False) -> Path:
    """Return the folder of one run; `create` makes it and its parents, closed to others."""
    path = home(create=create) / "runs" / run_folder(run_key)
    return _made(path) if create else path


def socket_path(run_key: str, *, create: bool = False) -> Path:
    """Return where the guard of a run listens; `create` makes the folder, closed to others.

    The path fits a socket address: where the usual place is too deep, it lies in a folder of this
    user under /tmp. Raises PermissionError when `create` finds that folder in others' hands.
    """
    own = home()
    name = f"{_short_hash(run_key + os.fspath(own))}.sock"
    places = [own / "run", Path("/tmp") / f"{_APP}-{os.getuid()}"]
    runtime = _runtime_folder()
    if runtime is not None:
        places.insert(0, runtime / _APP)
    fits = (p for p in places if len(os.fsencode(p / name)) <= _SOCKET_PATH_BYTES)
    folder = next(fits, places[-1])
    return (_made(folder) if create else folder) / name


def _short_hash(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _own_folder(variable: str) -> Path | None:
    value = os.environ.get(variable)
    return Path(value).expanduser().absolute() if value else None


def _xdg_folder(variable: str) -> Path | None:
    value = os.environ.get(variable, "")
    return Path(value) / _APP if value.startswith("/") else None


def _runtime_folder() -> Path | None:
    """Return $XDG_RUNTIME_DIR if it is ours: after `su` it still names the other user's."""
    value = os.environ.get("XDG_RUNTIME_DIR", "")
    try:
        ours = value.startswith("/") and Path(value).stat().st_uid == os.getuid()
    except OSError:
        ours = False
    return Path(value) if ours else None


def _system_folder(what: str) -> Path:
    import platformdirs  # here, not above: only where no variable decides

    if what == "state":
        return platformdirs.user_state_path(_APP)
    return platformdirs.user_config_path(_APP)


def _made(folder: Path) -> Path:
    """Make a folder and those above it, all that are new closed to others."""
    missing = [p for p in (folder, *folder.parents) if not p.exists()]
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if found.st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to another user; set MEMWATCH_HOME elsewhere")
    return folder
