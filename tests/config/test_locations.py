"""Folders come from the environment, fit a socket address and lead nowhere else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memwatch.config import locations

_VARIABLES = ("MEMWATCH_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR")


@pytest.fixture(autouse=True)
def bare_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def test_the_own_variable_wins_over_the_desktops_over_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert locations.home().is_relative_to(tmp_path)
    assert locations.config_dir().is_relative_to(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/config")
    assert locations.home() == Path("/state/memwatch")
    assert locations.config_dir() == Path("/config/memwatch")
    monkeypatch.setenv("MEMWATCH_HOME", "/own")
    assert locations.home() == Path("/own")
    monkeypatch.setenv("MEMWATCH_HOME", "own")
    assert locations.home() == Path.cwd() / "own"


def test_a_relative_desktop_variable_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "state")
    monkeypatch.setenv("XDG_RUNTIME_DIR", "run")
    assert locations.home().is_relative_to(tmp_path)
    assert locations.socket_path("r").is_absolute()


def test_folders_are_made_only_when_asked_and_closed_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "a" / "memwatch"
    monkeypatch.setenv("MEMWATCH_HOME", str(own))
    locations.run_home("r")
    locations.socket_path("r")
    assert not own.parent.exists()
    made = locations.run_home("r", create=True)
    assert made == own / "runs" / "r"
    assert made.is_dir()
    assert {p.stat().st_mode & 0o777 for p in (own.parent, own, own / "runs", made)} == {0o700}
    assert locations.run_home("r", create=True) == made


def test_the_socket_lies_in_the_runtime_folder_if_it_is_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMWATCH_HOME", "/own")
    assert locations.socket_path("r").parent == Path("/own/run")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "missing"))
    assert locations.socket_path("r").parent == Path("/own/run")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    path = locations.socket_path("r", create=True)
    assert path.parent == tmp_path / "memwatch"
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_the_socket_depends_on_run_and_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMWATCH_HOME", "/own")
    one, other = locations.socket_path("r").name, locations.socket_path("s").name
    monkeypatch.setenv("MEMWATCH_HOME", "/other")
    assert len({one, other, locations.socket_path("r").name}) == 3


def test_a_deep_home_still_gives_a_socket_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMWATCH_HOME", "/" + "deep/" * 40)
    assert len(os.fsencode(locations.socket_path("r"))) <= 107


def test_a_folder_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMWATCH_HOME", str(tmp_path))
    owner = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    with pytest.raises(PermissionError, match="belongs to another user"):
        locations.home(create=True)


@given(st.text())
def test_a_run_key_is_a_plain_file_name_whatever_it_says(run_key: str) -> None:
    folder = locations.run_folder(run_key)
    assert Path(folder).name == folder
    assert folder not in ("", ".", "..")
    assert folder.isascii()
    assert folder.isprintable()
    assert len(folder) <= 100
    assert locations.run_folder(folder) == folder


@given(st.text(), st.text())
def test_two_run_keys_share_no_folder(one: str, other: str) -> None:
    shared = locations.run_folder(one) == locations.run_folder(other)
    assert not shared or one == other or other in (locations.run_folder(one), one)


def test_our_own_themes_and_profiles_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "/config")
    assert locations.theme_dirs()[0] == Path("/config/memwatch/themes")
    assert locations.theme_dirs()[-1].is_dir()
    assert (locations.profile_dirs()[-1] / "native.yaml").is_file()


def test_importing_loads_only_the_standard_library() -> None:
    code = (
        "import sys; import memwatch.config.locations as l; l.home(); l.socket_path('r');"
        "print([m for m in ('platformdirs', 'msgspec', 'yaml') if m in sys.modules])"
    )
    environment = {"MEMWATCH_HOME": "/own", "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_a_relative_home_stays_where_it_was_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEMWATCH_HOME", "here")
    assert locations.lasting_environment()["MEMWATCH_HOME"] == str(tmp_path / "here")
    monkeypatch.delenv("MEMWATCH_HOME")
    assert "MEMWATCH_HOME" not in locations.lasting_environment()
