"""host.json is read tolerantly, changed atomically, and keeps what it does not know."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memwatch.domain.recovery import DiskRate
from memwatch.host.lock import FileLock, LockHeldError
from memwatch.runtime.runs.host_file import HOST_FILE, HOST_LOCK, HostFile, device_below
from tests.faults.failing_files import FailingFiles

RATE = DiskRate(read_bytes_per_s=4e8, write_bytes_per_s=2e8, t_us=5, how="measured")


def test_rates_and_costs_are_remembered_beside_what_others_keep(tmp_path: Path) -> None:
    path = tmp_path / HOST_FILE
    path.write_text(json.dumps({"format": 1, "peaks": {"demo": 5}}))
    host = HostFile(tmp_path)
    assert host.disk("254:0") is None
    assert host.costs() is None
    host.remember_disk("254:0", RATE)
    host.remember_disk("8:1", DiskRate(t_us=6))
    host.change_costs(lambda before: [before, 1])
    host.change_costs(lambda before: [before, 2])
    assert HostFile(tmp_path).disk("254:0") == RATE
    assert host.costs() == [[None, 1], 2]
    kept = json.loads(path.read_bytes())
    assert kept["peaks"] == {"demo": 5}
    assert [disk["cold"] for disk in kept["disks"].values()] == [True, False]
    assert path.stat().st_mode & 0o777 == 0o600
    assert sorted(p.name for p in tmp_path.iterdir()) == [HOST_FILE, HOST_LOCK]


def test_of_very_many_devices_the_oldest_go(tmp_path: Path) -> None:
    host = HostFile(tmp_path)
    for number in range(70):
        host.remember_disk(f"9:{number}", RATE)
    assert host.disk("9:5") is None
    assert host.disk("9:69") == RATE


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b'{"format":2}', b"\xff", b"[" * 9_000, b'{"format":"1"}']
)
def test_a_damaged_file_is_made_anew(tmp_path: Path, text: bytes) -> None:
    host = HostFile(tmp_path)
    assert not host.damaged
    (tmp_path / HOST_FILE).write_bytes(text)
    assert host.damaged
    assert host.disk("254:0") is None
    host.remember_disk("254:0", RATE)
    assert not host.damaged
    assert host.disk("254:0") == RATE


@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["read_bytes_per_s", "write_bytes_per_s", "t_us", "how", "x"]),
                inner,
            )
        ),
        max_leaves=6,
    )
)
def test_no_member_of_any_shape_gives_a_rate_that_is_none(
    tmp_path_factory: pytest.TempPathFactory, value: Any
) -> None:
    home = tmp_path_factory.mktemp("home")
    for disks in (value, {"254:0": value}):
        (home / HOST_FILE).write_text(json.dumps({"format": 1, "disks": disks, "costs": value}))
        rate = HostFile(home).disk("254:0")
        if rate is not None:
            assert all(one is None or one > 0 for one in (rate.read_bytes_per_s,))
        HostFile(home).costs()


def test_two_guards_do_not_change_it_at_once(tmp_path: Path) -> None:
    host = HostFile(tmp_path)
    with FileLock.acquire(tmp_path / HOST_LOCK), pytest.raises(LockHeldError):
        host.remember_disk("254:0", RATE)
    assert host.disk("254:0") is None
    host.remember_disk("254:0", RATE)
    assert host.disk("254:0") == RATE


@pytest.mark.parametrize("call", ["open", "write", "fsync", "rename"])
def test_a_full_disk_leaves_the_old_one(tmp_path: Path, call: str) -> None:
    HostFile(tmp_path).remember_disk("254:0", RATE)
    files = FailingFiles()
    files.fail_all(call)
    with pytest.raises(OSError, match="No space left"):
        HostFile(tmp_path, files).remember_disk("8:1", RATE)
    assert HostFile(tmp_path).disk("254:0") == RATE
    assert HostFile(tmp_path).disk("8:1") is None


def test_what_lies_below_a_path(tmp_path: Path) -> None:
    device = tmp_path.stat().st_dev
    name = f"{os.major(device)}:{os.minor(device)}"
    assert device_below(tmp_path) == name
    assert device_below(tmp_path / "none") is None


@pytest.mark.parametrize(
    "strange",
    ['"\\ud800"', "NaN", "1" * 400, "[" * 900 + "]" * 900, '"\\u0000"', '{"a": 1, "a": 2}'],
)
def test_what_others_put_there_hinders_no_change(tmp_path: Path, strange: str) -> None:
    host = HostFile(tmp_path)
    for part in ("x", "disks", "costs"):
        members = f'"{part}": {{"9:9": {strange}}}'
        (tmp_path / HOST_FILE).write_text(f'{{"format": 1, {members}}}')
        assert host.disk("9:9") is None
        host.remember_disk("254:0", RATE)
        host.change_costs(lambda before: [before, 1])
        assert host.disk("254:0") == RATE
        assert host.costs() == [None, 1]


@pytest.mark.parametrize("rate", [5e-324, 1e-3, 1e308, -1.0])
def test_a_rate_that_no_disk_has_is_none(tmp_path: Path, rate: float) -> None:
    told = {"format": 1, "disks": {"254:0": {"read_bytes_per_s": rate, "t_us": 1}}}
    (tmp_path / HOST_FILE).write_text(json.dumps(told))
    assert HostFile(tmp_path).disk("254:0") is None


@pytest.mark.parametrize("kind", ["pipe", "link to nothing", "link to a device", "folder"])
def test_what_is_no_file_keeps_nobody_waiting(tmp_path: Path, kind: str) -> None:
    path, host = tmp_path / HOST_FILE, HostFile(tmp_path)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero" if "device" in kind else tmp_path / "nothing")
    assert host.damaged
    assert host.disk("254:0") is None
    if kind == "folder":
        with pytest.raises(OSError, match="directory"):
            host.remember_disk("254:0", RATE)
        return
    host.remember_disk("254:0", RATE)
    assert host.disk("254:0") == RATE
    assert not path.is_symlink()
    assert sorted(p.name for p in tmp_path.iterdir()) == [HOST_FILE, HOST_LOCK]
