"""Which file system a path lies on decides whether events can be trusted."""

from __future__ import annotations

from pathlib import Path

import pytest

from memwatch.host.filesystem import file_system, is_remote
from tests.host.fake_proc import FakeProc


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    return FakeProc(tmp_path)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/none/a", "ext4"), ("/none/net/a/b", "nfs4"), ("/none/net", "nfs4"),
        ("/none/network/a", "ext4"), ("/none/with blank/a", "cifs"), ("/none/net/local/a", "xfs"),
        ("/none/twice/a", "fuse.sshfs"),
    ],
)  # fmt: skip
def test_the_mount_that_holds_a_path(proc: FakeProc, path: str, kind: str) -> None:
    proc.mounts(
        "/ / ext4 rw", "/ /none/net nfs4 rw", r"/ /none/with\040blank cifs rw",
        "/ /none/net/local xfs rw", "/ /none/twice ext4 rw", "/ /none/twice fuse.sshfs rw",
    )  # fmt: skip
    assert file_system(Path(path), proc.path) == kind


def test_links_are_followed(proc: FakeProc, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (tmp_path / "link").symlink_to(target)
    proc.mounts("/ / ext4 rw", f"/ {target} 9p rw")
    assert file_system(tmp_path / "link" / "wal", proc.path) == "9p"


def test_nothing_known(proc: FakeProc) -> None:
    assert file_system(Path("/a"), proc.path) is None
    (proc.path / "self" / "mountinfo").write_text("nonsense\n1 2 3 - x\n\n")
    assert file_system(Path("/a"), proc.path) is None


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "fuse", "afs"])
def test_remote(kind: str) -> None:
    assert is_remote(kind)


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "tmpfs", "overlay", "zfs", None])
def test_local(kind: str | None) -> None:
    assert not is_remote(kind)


def test_this_machine_knows_its_own(tmp_path: Path) -> None:
    assert file_system(tmp_path)
