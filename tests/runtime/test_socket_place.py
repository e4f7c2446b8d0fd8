"""A guard is found where it listens, also from a login whose environment names another place."""

from __future__ import annotations

from pathlib import Path

import pytest

from memwatch.config.locations import run_home, socket_path
from memwatch.runtime.runs.meta import Meta, write_meta
from memwatch.runtime.runs.target import socket_of


def meta(socket: Path | str) -> Meta:
    return Meta(
        run_key="night",
        path="/runs/night",
        agent="a",
        profile="native",
        host="h",
        pid=1,
        started_us=1,
        seen_us=2,
        socket=str(socket),
    )


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMWATCH_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)


def test_the_place_that_the_guard_wrote_down_wins(tmp_path: Path) -> None:
    place = tmp_path / "other.sock"
    place.touch()
    write_meta(run_home("night", create=True), meta(place))
    assert socket_of("night") == place


@pytest.mark.parametrize("said", ["", "/nowhere/at/all.sock"])
def test_without_such_a_place_it_is_the_usual_one(said: str) -> None:
    write_meta(run_home("night", create=True), meta(said))
    assert socket_of("night") == socket_path("night")
