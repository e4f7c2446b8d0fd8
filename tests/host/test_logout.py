"""What becomes of a process when its user logs out, from files as systemd writes them."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from memwatch.host.logout import Logout, logout_facts

PID = 4242
ME = pwd.getpwuid(os.getuid()).pw_name
TABLE: dict[str, tuple[str, dict[str, object]]] = {
    "no systemd": ("0::/\n", {"place": "alone"}),
    "a container": ("0::/docker/3f\n", {"place": "alone"}),
    "a login": ("0::/user.slice/user-1000.slice/session-7.scope\n", {"place": "session"}),
    "a login, v1": (
        "4:memory:/\n1:name=systemd:/user.slice/user-1000.slice/session-c2.scope\n",
        {"place": "session"},
    ),
    "tmux of the user": (
        "0::/user.slice/user-1000.slice/user@1000.service/app.slice/tmux-spawn-9f.scope\n",
        {"place": "manager"},
    ),
    "a unit of the user": (
        "0::/user.slice/user-1000.slice/user@1000.service/app.slice/memwatch-night-7.service\n",
        {"place": "manager", "unit": "memwatch-night-7.service"},
    ),
    "a service": ("0::/system.slice/agents.service\n", {"place": "alone"}),
    "gone": ("", {"place": "alone"}),
}


def make(root: Path, cgroup: str, *, tty: int = 0, environ: bytes = b"PATH=/bin\0") -> None:
    proc = root / "proc" / str(PID)
    proc.mkdir(parents=True)
    (proc / "cgroup").write_text(cgroup)
    (proc / "environ").write_bytes(environ)
    (proc / "stat").write_text(f"{PID} (a ) b) S 1 {PID} {PID} {tty} -1 4194560 0 0 0")


@pytest.mark.parametrize("case", TABLE)
def test_where_it_runs(tmp_path: Path, case: str) -> None:
    cgroup, expected = TABLE[case]
    make(tmp_path, cgroup)
    assert logout_facts(PID, tmp_path) == Logout(**expected)  # type: ignore[arg-type]  # by name


def test_a_terminal_and_who_keeps_it(tmp_path: Path) -> None:
    make(tmp_path, "0::/\n", tty=34816, environ=b"SECRET=1\0TMUX=/tmp/tmux-0/default,1,0\0")
    facts = logout_facts(PID, tmp_path)
    assert (facts.on_terminal, facts.in_multiplexer) == (True, True)
    assert not logout_facts(1, tmp_path).on_terminal


def test_lingering(tmp_path: Path) -> None:
    make(tmp_path, "0::/\n")
    assert not logout_facts(PID, tmp_path).lingers
    flag = tmp_path / "var/lib/systemd/linger" / ME
    flag.parent.mkdir(parents=True)
    flag.touch()
    assert logout_facts(PID, tmp_path).lingers


@pytest.mark.parametrize(
    ("files", "killed"),
    [
        ({}, False),
        ({"etc/systemd/logind.conf": "[Login]\n#KillUserProcesses=yes\n"}, False),
        ({"etc/systemd/logind.conf": "[Login]\nKillUserProcesses = yes\n"}, True),
        ({"etc/systemd/logind.conf": "[Login]\nKillUserProcesses=yes\nKillOnlyUsers=x y\n"}, False),
        ({"etc/systemd/logind.conf": f"KillUserProcesses=yes\nKillOnlyUsers=x {ME}\n"}, True),
        ({"etc/systemd/logind.conf": f"KillUserProcesses=1\nKillExcludeUsers={ME}\n"}, False),
        (
            {
                "usr/lib/systemd/logind.conf": "KillUserProcesses=yes\n",
                "etc/systemd/logind.conf.d/50-no.conf": "KillUserProcesses=no\n",
            },
            False,
        ),
        (
            {
                "usr/lib/systemd/logind.conf.d/50-a.conf": "KillUserProcesses=yes\n",
                "etc/systemd/logind.conf.d/50-a.conf": "[Login]\n",
            },
            False,
        ),
    ],
)
def test_whether_logins_take_along_what_they_started(
    tmp_path: Path, files: dict[str, str], *, killed: bool
) -> None:
    make(tmp_path, "0::/\n")
    spares_root = "etc/systemd/logind.conf.d/00-spares-nobody.conf"
    text = "KillExcludeUsers=\n" if "KillExcludeUsers" not in str(files) else ""
    for name, content in {spares_root: text, **files}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    assert logout_facts(PID, tmp_path).killed is killed


def test_this_very_process() -> None:
    assert logout_facts(os.getpid()).place in ("alone", "session", "manager")
