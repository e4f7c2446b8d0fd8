"""The two small JSON files are read as they are meant, or refused in one sentence."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memwatch.wal.manifest import CheckpointFile, TierTotals, parse_checkpoint, parse_run

RUN: dict[str, Any] = {"format": 1, "run_id": "r", "agent": "a"}
CHECKPOINT: dict[str, Any] = {
    "format": 1, "run_id": "r", "id": "full-00000000000000000009", "kind": "full",
    "first_lsn": 1, "last_lsn": 9, "tiers": {"workspace": {"entries": 2, "bytes": 30}},
    "files": {"workspace.jsonl": {"bytes": 40, "sha256": "00"}}, "began_us": 1, "committed_us": 2,
}  # fmt: skip


def text(value: dict[str, Any], **changes: Any) -> bytes:
    return msgspec.json.encode(value | changes)


def test_a_run() -> None:
    run = parse_run(text(RUN, pid=7, ops={"checkpoint": {"kinds": ["full"]}}, later=[1]))
    assert (run.run_id, run.agent, run.pid, run.profile) == ("r", "a", 7, "native")
    assert run.ops == {"checkpoint": {"kinds": ["full"]}}


def test_a_checkpoint() -> None:
    found = parse_checkpoint(text(CHECKPOINT, later=1))
    assert found.base is None
    assert found.tiers == {"workspace": TierTotals(2, 30)}
    assert found.files == {"workspace.jsonl": CheckpointFile(40, "00")}


@pytest.mark.parametrize("change", [{"run_id": ""}, {"run_id": "x" * 201}])
def test_a_run_without_a_usable_name(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="no usable run_id"):
        parse_run(text(RUN, **change))


@pytest.mark.parametrize("stated", [0, 2, -1, 1 << 40])
def test_another_format_asks_for_another_version(stated: int) -> None:
    for content in (text(RUN, format=stated), text({"format": stated}, run_id={"new": "shape"})):
        with pytest.raises(ValueError, match=rf"format {stated} is not one .*; upgrade memwatch"):
            parse_run(content)


@pytest.mark.parametrize(
    "change", [{"pid": "7"}, {"format": "1"}, {"format": 1.5}, {"ops": []}, {"argv": [1]}]
)
def test_a_member_of_another_type(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="not a manifest"):
        parse_run(text(RUN, **change))


@given(st.binary(max_size=100))
def test_no_bytes_whatever_raise_anything_else(content: bytes) -> None:
    for parse in (parse_run, parse_checkpoint):
        with pytest.raises(ValueError, match="not a manifest"):
            parse(content)


@pytest.mark.parametrize("name", ["pid", "start_ticks", "started_us"])
def test_a_manifest_with_figures_beyond_64_bits_is_none(name: str) -> None:
    text = f'{{"format":1,"run_id":"r","agent":"a","{name}":{1 << 70}}}'
    with pytest.raises(ValueError, match=name):
        parse_run(text.encode())
