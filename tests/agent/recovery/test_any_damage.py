"""Any damage to any file of a run: what is recovered is true, or the loss is said."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memwatch.agent.recovery.recover import recover
from memwatch.domain.errors import RecoveryError
from tests.agent.recovery.building import Builder, a_run
from tests.agent.recovery.looking import kept, tree
from tests.agent.recovery.real import RealRun

AnyRun = Builder | RealRun


@pytest.fixture(scope="module", params=[a_run, RealRun], ids=["by hand", "by the agent"])
def run(request: pytest.FixtureRequest) -> Iterator[AnyRun]:
    with TemporaryDirectory() as folder:
        yield request.param(Path(folder) / "run")


def _files(run: AnyRun) -> list[Path]:
    return sorted(p.relative_to(run.path) for p in run.path.rglob("*") if p.is_file())


def _true_or_said(run: AnyRun, copy: Path, *damaged: Path) -> None:
    before = tree(copy)
    try:
        state, report = recover(copy)
    except RecoveryError as error:
        _is_about_the_run_file(error, damaged)
        return
    assert tree(copy) == before
    assert report.lossy == bool(report.lost)
    truth, found = run.truth[report.last_lsn], kept(state)
    for tier, entries in found.items():
        for key, entry in entries.items():
            assert truth[tier][key] == entry  # whatever is lost, nothing is wrong
    if not report.lossy:
        assert sum(map(len, found.values())) == sum(map(len, truth.values()))
        # Only what the log ended with can go without a trace: a shorter log is a log.
        assert report.last_lsn == run.lsn or run.segment.relative_to(run.path) in damaged


def _is_about_the_run_file(error: RecoveryError, damaged: tuple[Path, ...]) -> None:
    """A wrong run id or format in `run.json`, which nothing proves, stops a recovery."""
    assert Path("run.json") in damaged
    assert "run.json" in str(error) or "two runs" in str(error)


def _damaged_copy(run: AnyRun) -> TemporaryDirectory[str]:
    folder = TemporaryDirectory()
    shutil.copytree(run.path, Path(folder.name) / "run")
    return folder


def test_undamaged(run: AnyRun) -> None:
    state, report = recover(run.path)
    assert (report.last_lsn, report.lost, report.matches) == (run.lsn, (), True)
    assert kept(state) == run.truth[run.lsn]


@settings(max_examples=150)
@given(data=st.data())
def test_a_flipped_bit_anywhere(run: AnyRun, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(_files(run)))
    with _damaged_copy(run) as folder:
        path = Path(folder) / "run" / name
        content = bytearray(path.read_bytes())
        if not content:
            return
        offset = data.draw(st.integers(0, len(content) - 1))
        content[offset] ^= 1 << data.draw(st.integers(0, 7))
        path.write_bytes(content)
        _true_or_said(run, Path(folder) / "run", name)


@settings(max_examples=80)
@given(data=st.data())
def test_a_cut_at_any_byte(run: AnyRun, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(_files(run)))
    with _damaged_copy(run) as folder:
        path = Path(folder) / "run" / name
        content = path.read_bytes()
        path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
        _true_or_said(run, Path(folder) / "run", name)


@settings(max_examples=80)
@given(data=st.data())
def test_any_files_gone(run: AnyRun, data: st.DataObject) -> None:
    names = data.draw(st.sets(st.sampled_from(_files(run)), min_size=1, max_size=4))
    with _damaged_copy(run) as folder:
        for name in names:
            (Path(folder) / "run" / name).unlink()
        _true_or_said(run, Path(folder) / "run", *names)


@settings(max_examples=80)
@given(data=st.data())
def test_bytes_from_elsewhere_over_any_place(run: AnyRun, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(_files(run)))
    with _damaged_copy(run) as folder:
        path = Path(folder) / "run" / name
        content = bytearray(path.read_bytes())
        garbage = data.draw(st.binary(min_size=1, max_size=200))
        offset = data.draw(st.integers(0, len(content)))
        content[offset : offset + len(garbage)] = garbage
        path.write_bytes(content)
        _true_or_said(run, Path(folder) / "run", name)
