"""A profile file is read to the letter, or refused with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from memwatch.config.load import MAX_BYTES, load_profile, named_profile, profile_names
from memwatch.config.schema import Profile
from memwatch.domain.errors import ConfigError
from memwatch.domain.policy import KEEP, Keep


@pytest.fixture(autouse=True)
def config_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = tmp_path / "config" / "memwatch" / "profiles"
    folder.mkdir(parents=True)
    return folder


def refusal(folder: Path, text: str | bytes) -> str:
    path = folder / "mine.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError) as caught:
        load_profile(str(path))
    said = str(caught.value)
    assert "\n" not in said
    return said.removeprefix(f"{path} ").removeprefix(f"{path}: ")


def test_every_shipped_profile_is_valid() -> None:
    assert {"demo", "native"} <= set(profile_names())
    assert all(load_profile(name).name == name for name in profile_names())


def test_a_file_changes_what_it_names_and_nothing_else(config_folder: Path) -> None:
    path = config_folder / "mine.yaml"
    path.write_text("name: mine\nwindows:\n  growth_s: [5, 50, 500]\nmemory_limit_bytes: 2000\n")
    profile = load_profile("mine")
    usual = Profile(name="mine")
    assert profile.windows.growth_s == (5.0, 50.0, 500.0)
    assert profile.memory_limit_bytes == 2000
    assert profile.windows.chart_s == usual.windows.chart_s
    assert load_profile(str(path)) == profile


def test_retention_is_changed_tier_by_tier(config_folder: Path) -> None:
    path = config_folder / "mine.yaml"
    path.write_text(
        "name: mine\n"
        "tiers: [workspace, recent, verified, history, notes]\n"
        "retention:\n  workspace:\n    count: 7\n  notes:\n    ttl_s: 60\n"
    )
    kept = load_profile("mine").retention
    assert kept["workspace"] == structs.replace(KEEP["workspace"], count=7)
    assert kept["notes"] == Keep(ttl_s=60)
    assert [kept[name] for name in ("recent", "verified", "history")] == [
        KEEP[name] for name in ("recent", "verified", "history")
    ]


def test_the_users_own_profile_hides_the_shipped_one(config_folder: Path) -> None:
    (config_folder / "demo.yaml").write_text("name: demo\nabout: my own\n")
    assert load_profile("demo").about == "my own"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("name: x\nretentoin:\n  recent: {}\n", 2, "did you mean 'retention'?"),
        ("name: x\nwindows:\n  chart: 0.5\n", 3, "did you mean 'chart_s'?"),
        ("name: x\nthresholds:\n  warn: 0.5\n", 2, "write it under `policy:`"),
        ("name: x\nzzzzzz: 1\n", 2, "known are name, about"),
        ("name: x\n1: 1\n", 2, "unknown key '1'"),
        ("name: x\n? [a]\n: 1\n", 2, "unhashable"),
        ("name: x\nwindows:\n  chart_s: high\n", 3, "windows.chart_s: Expected a number, got text"),
        ("name: x\nwindows:\n  growth_s:\n    - 1\n    - two\n    - 3\n", 5, "got text"),
        ("name: x\nwindows:\n  growth_s: [1, 2]\n", 3, "length 3"),
        ("name: x\nretention:\n  recent:\n    experiment: 3\n", 4, "did you mean 'experiments'?"),
        (
            "name: x\nretention:\n  recent:\n    count: many\n",
            4,
            "recent.count: Expected a whole number",
        ),
        ("name: x\nretention:\n  recent:\n    experiments: 0\n", 4, "must be above 0"),
        ("name: x\nretention:\n  recent:\n    importance: 7\n", 4, "at most 1"),
        ("name: x\nretention:\n  recent:\n    demote_to: attic\n", 4, "is no tier"),
        ("name: x\nretention:\n  attic:\n    count: 7\n", 3, "is of no tier"),
        ("name: x\nretention: 5\n", 2, "Expected lines of"),
        ("name: x\ntiers: [recent]\n", 1, "retention.recent.demote_to is no tier"),
        ("name: x\nwindows: 3\n", 2, "Expected lines of"),
        ("about: nameless\n", 1, "missing required field `name`"),
        ("name: x\nname: y\n", 2, "'name' is set twice"),
        ("name: x\nlights:\n  processes_warn: 300\n", 3, "must be below lights.processes_act"),
        ("name: x\nshare_cap: 1.5\n", 2, "at most 1"),
        ("name: x\nwindows:\n  growth_s: [60, 10, 600]\n", 3, "must be below"),
        ("name: x\nprobe:\n  period_s: 0\n", 3, "must be above 0"),
        ("name: x\nprobe:\n  period_s: .nan\n", 3, "must be above 0"),
        ("name: x\nmemory_limit_bytes: -1\n", 2, "must be above 0"),
        ("name: x\nabout: &a [1]\ntiers: *a\n", 3, "aliases are not read"),
        ("name: x\nabout: !!python/name:os.system\n", 2, "could not determine a constructor"),
        ("name: x\nabout: 'open\n", 3, "end of stream"),
        ("name: x\n--- \nname: y\n", 2, "but found another document"),
        ("- name\n", 1, "settings are lines of"),
        ("", 1, "settings are lines of"),
    ],
)
def test_a_wrong_file_is_refused_with_its_line(
    config_folder: Path, text: str, line: int, words: str
) -> None:
    said = refusal(config_folder, text)
    assert said.startswith(f"line {line}: "), said
    assert words in said


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"name: \xff\xfe\n", "not UTF-8"),
        (b"a: 1\n" * MAX_BYTES, "is over the"),
        (b"name: " + b"[" * 5000, "is not YAML"),
        (b"name: \x1b[31m\n", "is not YAML"),
    ],
)
def test_no_bytes_get_past_the_reader(config_folder: Path, content: bytes, words: str) -> None:
    said = refusal(config_folder, content)
    assert words in said
    assert "\x1b" not in said


def test_many_nested_aliases_unfold_to_nothing(config_folder: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    assert "aliases" in refusal(config_folder, "\n".join(lines))


def test_a_missing_file_and_a_folder_are_said_in_words(config_folder: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        load_profile(str(config_folder / "none.yaml"))
    with pytest.raises(ConfigError, match="is no file"):
        load_profile(str(config_folder))


@pytest.mark.parametrize("name", ["nativ", "../../secret", "", ".", "a\x1b[2Jb"])
def test_a_name_never_leads_out_of_the_profile_folders(config_folder: Path, name: str) -> None:
    (config_folder.parent.parent / "secret.yaml").write_text("name: secret\n")
    with pytest.raises(ConfigError, match="there is no profile") as caught:
        named_profile(name)
    assert "\x1b" not in str(caught.value)
