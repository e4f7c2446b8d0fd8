"""Checkpoints of HF, Lightning, DeepSpeed, PyTorch and others: which are there, which are whole."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from memwatch.ingest.stores.directory import look_directory
from tests.ingest.stores.making import (
    MINUTE_US,
    NOW_US,
    TRAINER,
    age,
    archive,
    hf,
    look,
    put,
    row,
    safetensors,
    states,
)

CORPUS = Path(__file__).resolve().parents[4] / "shared" / "corpus" / "hf-trainer" / "lora-run"


def test_a_trainer_leaves_its_state_last(tmp_path: Path) -> None:
    put(tmp_path, "checkpoint-500", hf(500), 30)
    half = {name: text for name, text in hf(1000).items() if name != TRAINER}
    put(tmp_path, "checkpoint-1000", half, 20)
    seen = look(tmp_path)
    assert states(seen) == {"checkpoint-500": "committed", "checkpoint-1000": "incomplete"}
    assert row(seen, "checkpoint-1000").reason == "no trainer_state.json, which is written last"
    assert (seen.count, seen.why) == (2, "")
    whole = row(seen, "checkpoint-500")
    assert (whole.step, whole.files, whole.kind) == (500, 4, "full")
    assert (
        whole.bytes
        == sum(map(len, hf(500).values()))
        == seen.total_bytes - sum(map(len, half.values()))
    )


def test_times_are_those_of_its_files(tmp_path: Path) -> None:
    former = put(tmp_path, "checkpoint-1", hf(1), 90)
    place = put(tmp_path, "checkpoint-2", hf(2), 30)
    age(place / TRAINER, NOW_US - 28 * MINUTE_US)
    age(place / "scheduler.pt", NOW_US - 600 * MINUTE_US)  # copied, with its time
    one = row(look(tmp_path), "checkpoint-2")
    assert one.began_us == NOW_US - 30 * MINUTE_US
    assert one.committed_us == NOW_US - 28 * MINUTE_US
    assert one.duration_s == 120
    assert row(look(tmp_path), "checkpoint-1").duration_s is None  # one time for all its files
    assert former.exists()


def test_the_best_is_what_the_newest_state_says(tmp_path: Path) -> None:
    put(tmp_path, "checkpoint-1", hf(1), 30)
    put(tmp_path, "checkpoint-2", hf(2, best="/elsewhere/out/checkpoint-1/"), 20)
    seen = look(tmp_path)
    assert seen.best == "checkpoint-1"
    assert look(tmp_path, seen).best == "checkpoint-1"
    put(tmp_path, "checkpoint-3", hf(3, best="out/checkpoint-77"), 10)
    assert look(tmp_path, seen).best == ""  # it does not lie there


def test_an_adapter_is_partial(tmp_path: Path) -> None:
    files = {"adapter_config.json": b"{}", "adapter_model.safetensors": safetensors(64)}
    put(tmp_path, "checkpoint-5", {**files, TRAINER: b"{}"})
    assert row(look(tmp_path), "checkpoint-5").partial
    put(tmp_path, "checkpoint-6", hf(6))
    assert not row(look(tmp_path), "checkpoint-6").partial


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("epoch=3-step=500.ckpt", 500),
        ("last.ckpt", None),
        ("model_12.pt", 12),
        ("ckpt-7.pth", 7),
        ("pytorch_model_3.bin", 3),
        ("20261130T101010_ab12cd34_p-ff00.json", None),
    ],
)
def test_single_files(tmp_path: Path, name: str, step: int | None) -> None:
    put(tmp_path, name, b'{"a": 1}' if name.endswith(".json") else archive(500))
    put(tmp_path, "notes.txt", b"no checkpoint")
    put(tmp_path, "adapter_config.json", b"{}")
    put(tmp_path, "src2", {"a.py": b""})
    (one,) = look(tmp_path).checkpoints
    assert (one.id, one.state, one.step, one.files) == (name, "committed", step, 1)
    assert one.base == ("ff00" if name.endswith(".json") else None)


def test_deepspeed_names_its_newest_in_a_file(tmp_path: Path) -> None:
    files = {
        "mp_rank_00_model_states.pt": archive(9_000),
        "zero_pp_rank_0_optim_states.pt": archive(99),
    }
    put(tmp_path, "global_step5", files, 40)
    put(tmp_path, "latest", b"global_step5\n", 39)
    put(tmp_path, "global_step10", files, 20)
    seen = look(tmp_path)
    assert states(seen) == {"global_step5": "committed", "global_step10": "incomplete"}
    assert row(seen, "global_step5").committed_us == NOW_US - 39 * MINUTE_US
    assert "latest" in row(seen, "global_step10").reason
    put(tmp_path, "latest", b"global_step10", 19)
    assert set(states(look(tmp_path)).values()) == {"committed"}


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"__0_0.distcp": b"x", "__1_0.distcp": b"x"}, ".metadata"),
        ({"m-00001-of-00003.pt": archive(9), "m-00003-of-00003.pt": archive(9)}, "2 of 3 parts"),
        (
            {
                "a.safetensors.index.json": json.dumps(
                    {"weight_map": {"x": "a-1.safetensors", "y": "../../a-2.safetensors"}}
                ).encode(),
                "a-1.safetensors": safetensors(9),
            },
            "1 of 2 files that",
        ),
        ({"a.index.json": b"{", "b.pt": archive(1)}, "damaged"),
        ({"model.pt": b""}, "0 bytes"),
        ({"a.pt": archive(5), "model.pt": b""}, "model.pt is empty"),
        ({"a.pt": archive(5), "b.pt.tmp": b"x"}, "b.pt.tmp is not finished"),
        ({"model.pt": archive(5_000)[:-9]}, "torn"),
        ({"model.safetensors": safetensors(500)[:-1], "x.distcp": b"", ".metadata": b"m"}, "bytes"),
        ({"state.json": b'{"a": {"b": 1}'}, "torn"),
        ({}, "no file"),
    ],
)
def test_what_is_not_whole(tmp_path: Path, files: dict[str, bytes], why: str) -> None:
    put(tmp_path, "step_5", files)
    one = row(look(tmp_path), "step_5")
    assert one.state == "incomplete"
    assert why in one.reason


def test_parts_side_by_side_are_one(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        put(tmp_path, f"ckpt-7-0000{number}-of-00003.pt", archive(number))
    one = row(look(tmp_path), "ckpt-7.pt")
    assert (one.state, one.files, one.step) == ("committed", 3, 7)
    (tmp_path / "ckpt-7-00002-of-00003.pt").unlink()
    assert "2 of 3 parts" in row(look(tmp_path), "ckpt-7.pt").reason


@pytest.mark.parametrize(
    "name",
    ["tmp-checkpoint-9", "checkpoint-9.tmp", ".checkpoint-9", "checkpoint-9~",
     "checkpoint-9.partial", "checkpoint-9.incomplete", "._checkpoint-9",
     "checkpoint-9.orbax-checkpoint-tmp-17"],
)  # fmt: skip
def test_a_temporary_name_is_never_complete(tmp_path: Path, name: str) -> None:
    put(tmp_path, name, hf(9))
    assert row(look(tmp_path), name).state == "incomplete"
    put(tmp_path, f"{name.replace('checkpoint-9', 'last.ckpt')}", archive(9))
    assert "committed" not in states(look(tmp_path)).values()


@pytest.mark.parametrize(
    ("now", "state"), [(0, "incomplete"), (9_000, "incomplete"), (10_000, "committed")]
)
def test_sizes_are_held_against_the_former_one(tmp_path: Path, now: int, state: str) -> None:
    put(tmp_path, "epoch_1", {"sub/state_1.dat": b"x" * 20_000, "n": b"1"}, 30)
    put(tmp_path, "epoch_2", {"sub/state_2.dat": b"x" * now, "n": b"2"}, 20)
    one = row(look(tmp_path), "epoch_2")
    assert one.state == state
    assert state == "committed" or f"{now} bytes, it had 20000" in one.reason


def test_a_file_that_the_former_one_had(tmp_path: Path) -> None:
    put(tmp_path, "epoch_1", {"a.dat": b"x", "b.dat": b"x"}, 30)
    put(tmp_path, "epoch_2", {"a.dat": b"x"}, 20)
    assert row(look(tmp_path), "epoch_2").reason == "b.dat is missing, the former one has it"


def test_a_writer_without_marks_is_known_by_its_checkpoints(tmp_path: Path) -> None:
    files = {"config.json": b"{}", "model.safetensors": safetensors(99)}
    for step in (1, 2):
        put(tmp_path, f"checkpoint-{step}", files, 40 - step)
    assert set(states(look(tmp_path)).values()) == {"incomplete"}
    put(tmp_path, "checkpoint-3", files, 20)
    assert set(states(look(tmp_path)).values()) == {"committed"}


def test_order_is_by_time_and_within_a_copy_by_step(tmp_path: Path) -> None:
    for step in (1000, 500, 3500):
        put(tmp_path, f"checkpoint-{step}", hf(step), 30)
    put(tmp_path, "checkpoint-5", hf(5), 10)
    assert [one.step for one in look(tmp_path).checkpoints] == [500, 1000, 3500, 5]


def test_hard_links_count_once(tmp_path: Path) -> None:
    put(tmp_path, "epoch=1-step=5.ckpt", archive(10_000))
    os.link(tmp_path / "epoch=1-step=5.ckpt", tmp_path / "last.ckpt")
    seen = look(tmp_path)
    assert seen.count == 2
    assert seen.total_bytes == len(archive(10_000)) == row(seen, "last.ckpt").bytes


def test_what_links_and_the_tag_point_to_is_told(tmp_path: Path) -> None:
    for step in range(4):
        put(tmp_path, f"epoch=0-step={step}.ckpt", archive(100), 50 - step)
    (tmp_path / "best.ckpt").symlink_to("./epoch=0-step=1.ckpt")
    (tmp_path / "loop.ckpt").symlink_to("loop.ckpt")
    (tmp_path / "away.ckpt").symlink_to("/etc/passwd")
    (tmp_path / "up.ckpt").symlink_to(f"../{tmp_path.name}/epoch=0-step=2.ckpt")
    assert look(tmp_path).named == ("epoch=0-step=1.ckpt", "epoch=0-step=2.ckpt")
    deep = tmp_path / "deep"
    for step in (100, 200, 300):
        put(
            deep, f"global_step{step}", {"mp_rank_00_model_states.pt": archive(100)}, 50 - step / 10
        )
    put(deep, "latest", b"global_step200", 5)
    assert look(deep).named == ("global_step200",)


def test_a_step_that_is_also_a_number_of_a_process_hides_no_file(tmp_path: Path) -> None:
    for step in (0, 1, 2):
        files = {f"mp_rank_0{rank}_model_states.pt": archive(100) for rank in range(2)}
        put(tmp_path, f"global_step{step}", files, 50 - step)
    assert set(states(look(tmp_path)).values()) == {"committed"}
    put(tmp_path, "global_step3", {"mp_rank_00_model_states.pt": archive(100)}, 1)
    assert row(look(tmp_path), "global_step3").state == "incomplete"


def test_only_the_newest_are_told(tmp_path: Path) -> None:
    for step in range(5):
        put(tmp_path, f"model_{step}.pt", archive(step), 50 - step)
    seen = look_directory(tmp_path, most=2)
    assert ([one.step for one in seen.checkpoints], seen.count) == ([3, 4], 5)


@pytest.mark.skipif(not CORPUS.exists(), reason="the corpus does not lie beside the checkout")
def test_the_corpus() -> None:
    seen = look_directory(CORPUS)
    assert [(one.step, one.state, one.partial) for one in seen.checkpoints] == [
        (step, "committed", True) for step in (500, 1000, 3500)
    ]
    assert seen.total_bytes == 96_923
