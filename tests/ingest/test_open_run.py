"""A path is a run, or one sentence says what it is and what to do."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memwatch.domain.errors import TargetError
from memwatch.ingest.open_run import open_run

RUN = {"format": 1, "run_id": "r-1", "agent": "demo", "pid": 7}


def make_run(path: Path, **members: Any) -> Path:
    (path / "wal").mkdir(parents=True)
    (path / "run.json").write_bytes(msgspec.json.encode(RUN | members))
    return path


def refusal(path: Path) -> str:
    """Return the one sentence, after checking that nothing was written."""
    before = everything(path.parent)
    with pytest.raises(TargetError) as caught:
        open_run(path)
    assert everything(path.parent) == before
    text = str(caught.value)
    assert text.isprintable()
    assert "Traceback" not in text
    return text


def everything(path: Path) -> dict[str, tuple[int, int]]:
    found = {}
    for folder, names, files in os.walk(path):
        for name in (*names, *files):
            status = os.lstat(Path(folder) / name)
            found[os.path.join(folder, name)] = (status.st_mtime_ns, status.st_size)  # noqa: PTH118
    return found


def test_a_run(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run", later="unknown members are fine")
    (tmp_path / "link").symlink_to(path)
    run = open_run(tmp_path / "link")
    assert run.path == path
    assert (run.manifest.run_id, run.manifest.pid) == ("r-1", 7)
    assert run.wal_dir == path / "wal"
    assert run.control_dir == path / "control"


def test_a_relative_path_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_run(tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    assert open_run(Path("run")).path == tmp_path / "run"


def nothing(path: Path) -> None:
    pass


def a_file(path: Path) -> None:
    path.write_text("x")


def a_folder(path: Path) -> None:
    path.mkdir()
    (path / "notes.txt").write_text("x")


def without_log(path: Path) -> None:
    make_run(path)
    (path / "wal").rmdir()


def a_loop(path: Path) -> None:
    path.symlink_to(path)


def run_file(content: bytes) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        make_run(path)
        (path / "run.json").write_bytes(content)

    return make


def run_file_elsewhere(path: Path) -> None:
    make_run(path)
    (path / "run.json").rename(path.parent / "elsewhere")
    (path / "run.json").symlink_to(path.parent / "elsewhere")


def run_file_pipe(path: Path) -> None:
    make_run(path)
    (path / "run.json").unlink()
    os.mkfifo(path / "run.json")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (nothing, "does not exist; `memwatch ls`"),
        (a_file, "is no run directory, nor a file that memwatch knows"),
        (Path.mkdir, "is empty; name a run directory"),
        (a_folder, "is not a run: it holds no run.json and no checkpoints; name a run"),
        (without_log, "holds run.json but no wal/; start its agent again"),
        (a_loop, "cannot be opened: "),
        (run_file(b""), "restore it or name another run"),
        (run_file(b"{"), "restore it or name another run"),
        (run_file(b"[]"), "restore it or name another run"),
        (run_file(b"\xff\x1b[2J"), "restore it or name another run"),
        (run_file(b"[" * 100_000), "restore it or name another run"),
        (run_file(b'{"format":1}'), "restore it or name another run"),
        (run_file(b'{"format":1,"run_id":"","agent":"a"}'), "names no usable run_id"),
        (run_file(b'{"format":2,"shape":[]}'), "format 2 is not one that this version reads"),
        (run_file(b'{"format":1,"x":"' + b"y" * 1_000_001), "not a file of a run"),
        (run_file_elsewhere, "cannot be opened: "),
        (run_file_pipe, "not a file of a run; name another directory"),
    ],
)
def test_what_is_no_run(tmp_path: Path, make: Callable[[Path], None], says: str) -> None:
    path = tmp_path / "target"
    make(path)
    text = refusal(path)
    assert says in text
    assert str(path) in text


def test_newer_says_what_to_do(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run", format=9)
    assert "upgrade memwatch" in refusal(path)


def test_a_folder_of_runs_names_some(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    for number in range(5):
        make_run(folder / f"run-{number}")
    assert refusal(folder).endswith("name one of them: run-4, run-3, run-2 and 2 more")
    make_run(tmp_path / "two" / "b\x1b[2Jad")
    assert "is no run but holds one; name it: b\ufffd[2Jad" in refusal(tmp_path / "two")


def test_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_run(tmp_path / "run")
    other = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)
    assert "belongs to another user; run memwatch as its owner" in refusal(path)


@pytest.mark.parametrize("closed", ["", "run.json", "wal"])
def test_unreadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closed: str) -> None:
    path = make_run(tmp_path / "run")
    refused = str(path / closed).rstrip("/")

    def closing(call: Callable[..., Any]) -> Callable[..., Any]:
        def checked(target: Any, *rest: Any, **more: Any) -> Any:
            if str(target) == refused:
                raise PermissionError(13, "Permission denied", str(target))
            return call(target, *rest, **more)

        return checked

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", closing(os.scandir))
        patch.setattr(os, "open", closing(os.open))
        with pytest.raises(TargetError) as caught:
            open_run(path)
    assert str(caught.value) == f"{refused} cannot be read; give yourself read permission"


@pytest.mark.parametrize("name", ["a\x1b[2J", "a\nb", "x" * 300, "\x00"])
def test_a_hostile_path_is_shown_inert(tmp_path: Path, name: str) -> None:
    with pytest.raises(TargetError) as caught:
        open_run(tmp_path / name)
    assert str(caught.value).isprintable()
