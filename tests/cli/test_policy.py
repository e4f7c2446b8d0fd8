"""`memwatch policy`: values with their sources; nothing wrong is ever written."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from memwatch.cli import policy
from memwatch.cli.policy_text import as_text
from memwatch.config.policy_load import load_policy
from memwatch.config.schema import Profile
from memwatch.domain.errors import ConfigError, MemwatchError, TargetError, UsageError
from tests.config.layers import Layers, some_layers

RUN = {"format": 1, "run_id": "night-7", "agent": "searcher", "profile": "mine"}


@pytest.fixture
def layers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Layers]:
    """A run with no agent in it: the policy needs none."""
    with some_layers() as layers:
        monkeypatch.setenv("MEMWATCH_HOME", str(layers.home.parent.parent))
        (layers.run_dir / "wal").mkdir()
        state(layers, ops={"checkpoint": {}, "purge": {}})
        yield layers


def state(layers: Layers, **members: object) -> None:
    (layers.run_dir / "run.json").write_text(json.dumps(RUN | members))


def run(layers: Layers, *words: str) -> int:
    return policy.run([str(layers.run_dir) if word == "RUN" else word for word in words])


def test_every_value_with_its_source(layers: Layers, capsys: pytest.CaptureFixture[str]) -> None:
    layers.write("config", "policy:\n  thresholds: {warn: 0.65}\n")
    layers.write("policies", "# of this profile\nexit: {warn: 0.5}\n")
    layers.write("run", "policy: {mode: act}\n")
    assert run(layers, "set", "RUN", "phases.verification.thresholds.intervene=0.72") == 0
    capsys.readouterr()
    assert run(layers, "RUN") == 0
    page = capsys.readouterr().out
    rows = {line.split()[0]: line.split()[1:] for line in page.splitlines() if line.strip()}
    assert rows["thresholds.warn"] == ["0.65", "config.yaml:2"]
    assert rows["exit.warn"] == ["0.5", "policies/mine.yaml:2"]
    assert rows["mode"] == ["shadow", "default"]
    assert rows["thresholds.intervene"] == ["0.72", "policy.yaml:5"], "below `in phase`"
    assert "in phase verification:" in page
    assert "memwatch.yaml line 1: mode is not followed" in page
    assert "note: this agent has no retain; the built-in policy goes without it" in page
    assert all(
        len(line) <= 80 for line in page.splitlines() if not line.startswith(("note", "  from"))
    )
    assert run(layers, "RUN", "--phase", "verification") == 0
    page = capsys.readouterr().out
    assert "  thresholds.intervene          0.72                   policy.yaml:5" in page


def test_json(layers: Layers, capsys: pytest.CaptureFixture[str]) -> None:
    layers.write("set", "limit_bytes: 7_000_000\n")
    assert run(layers, "RUN", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["name"] == "night-7"
    source = f"{layers.paths['set']} line 1"
    assert found["values"]["limit_bytes"] == {"value": 7_000_000, "source": source}
    assert found["values"]["mode"] == {"value": "shadow", "source": "default"}
    assert "abort_experiment" in found["missing"]
    assert found["phases"]["verification"]["levels.intervene.steps"]["source"] == "default"


def test_set_and_unset(layers: Layers, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        run(layers, "set", "RUN", "thresholds.warn=0.55", "exit.warn=0.5", "exit.emergency=0.5")
        == 0
    )
    out = capsys.readouterr().out
    assert "thresholds.warn, exit.warn, exit.emergency set for night-7; its next guard" in out
    assert layers.load().base.thresholds.warn == 0.55
    path = layers.paths["set"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert run(layers, "unset", "RUN", "thresholds.warn") == 0
    assert layers.load().base.thresholds.warn == 0.6
    assert layers.load().base.exit.warn == 0.5


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ("thresholds.warn=0.8", ConfigError, "must be below thresholds.intervene"),
        ("thresholds.wran=0.5", ConfigError, "did you mean 'warn'?"),
        ("thresholds.warn=high", ConfigError, "Expected a number, got text"),
        ("levels.warn.steps=[{op: compact}]", ConfigError, "this agent has no compact"),
        ("thresholds.warn", UsageError, "write key=value"),
        ("mode=act", UsageError, "mode MODE [--allow OPS]` gives it"),
        ("allow=[end_run]", UsageError, "`memwatch guard --mode`"),
    ],
)
def test_what_is_wrong_is_never_written(
    layers: Layers, change: str, error: type[MemwatchError], words: str
) -> None:
    layers.write("set", "# before\nlimit_bytes: 9\n")
    with pytest.raises(error) as caught:
        run(layers, "set", "RUN", change)
    assert words in str(caught.value)
    assert layers.paths["set"].read_text() == "# before\nlimit_bytes: 9\n"
    left = {path.name for path in layers.home.iterdir()} - {"policy.lock"}
    assert left == {"policy.yaml"}, "no draft is left"


def test_of_many_that_set_at_once_none_is_lost(layers: Layers) -> None:
    keys = [f"levels.{level}.cooldown_s" for level in ("warn", "intervene", "emergency", "hard")]
    keys += ["ask_s", "exit.dwell_s"]
    with ThreadPoolExecutor(len(keys)) as pool:
        assert not any(pool.map(lambda key: run(layers, "set", "RUN", f"{key}=701"), keys))
    book = layers.load()
    assert {key for key, source in book.sources.items() if "policy.yaml" in source} == set(keys)


def test_check(layers: Layers, capsys: pytest.CaptureFixture[str]) -> None:
    layers.write("set", "thresholds: {warn: 0.65}\n")
    assert run(layers, "check", "RUN") == 0
    assert "valid: 1 value set by 1 file, the rest built in" in capsys.readouterr().out
    layers.write("set", "thresholds: {warn: 0.8}\n")
    assert run(layers, "check", "RUN") == 1
    assert f"{layers.paths['set']} line 1: thresholds.warn" in capsys.readouterr().out
    layers.write("set", "")
    layers.write("config", "notify: {channels: [{kind: bel}]}\n")
    assert run(layers, "check", "RUN") == 1
    assert "did you mean 'bell'?" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("thresholds: {warn: 0.65}\n", 0),
        ("policy: {thresholds: {warn: 0.65}}\nnotify: {}\n", 0),
        ("name: other\npolicy: {thresholds: {warn: 0.65}}\n", 0),
        ("thresholds: {warn: 0.85}\n", 1),
        ("name: other\npolicy: {thresholds: {warn: 0.85}}\n", 1),
        ("policy: {thresholds: {warn: 0.85}}\n", 1),
    ],
)
def test_check_a_file_of_either_kind(
    layers: Layers, capsys: pytest.CaptureFixture[str], text: str, status: int
) -> None:
    path = layers.paths["extra"].with_name("some.yaml")
    path.write_text(text)
    assert policy.run(["check", str(path)]) == status
    assert ("valid" if status == 0 else "line ") in capsys.readouterr().out


def test_without_any_run_it_is_the_users_own(
    layers: Layers, capsys: pytest.CaptureFixture[str]
) -> None:
    assert policy.run([]) == 0
    assert "policy of no run, profile native" in capsys.readouterr().out


def test_what_is_no_run_is_said(layers: Layers) -> None:
    with pytest.raises(TargetError):
        policy.run(["nowhere"])
    with pytest.raises(ConfigError, match="cannot be read"):
        policy.run(["check", "nowhere.yaml"])
    layers.write("extra", "# empty\n")
    with pytest.raises(TargetError, match="name the run it is for"):
        policy.run(["set", str(layers.paths["extra"]), "limit_bytes=1"])


class TestEdit:
    """An editor is an argument list; what it leaves is checked before it counts."""

    def editor(self, monkeypatch: pytest.MonkeyPatch, folder: Path, *texts: str) -> None:
        """Write one text after the other, one at each call."""
        script = folder / "an editor"
        for number, text in enumerate(texts):
            (folder / f"text{number}").write_text(text)
        script.write_text(
            '#!/bin/sh\nn=$(cat "$1/n" 2>/dev/null || echo 0)\n'
            'cp "$1/text$n" "$2"; echo $((n + 1)) > "$1/n"\n'
        )
        script.chmod(0o700)
        monkeypatch.delenv("VISUAL", raising=False)
        monkeypatch.setenv("EDITOR", f"'{script}' '{folder}'")

    def test_a_fine_text_counts(
        self, layers: Layers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        text = "# a comment\nthresholds: {warn: 0.65}\n"
        self.editor(monkeypatch, tmp_path, text)
        assert run(layers, "edit", "RUN") == 0
        assert layers.paths["set"].read_text() == text
        assert {path.name for path in layers.home.iterdir()} == {"policy.yaml", "policy.lock"}

    def test_a_wrong_one_is_asked_for_again(
        self,
        layers: Layers,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        self.editor(monkeypatch, tmp_path, "thresholds: {warn: 2}\n", "limit_bytes: 9\n")
        monkeypatch.setattr("builtins.input", lambda _: "y")
        assert run(layers, "edit", "RUN") == 0
        assert "share of a limit" in capsys.readouterr().out
        assert layers.load().base.limit_bytes == 9

    def test_a_wrong_one_that_is_given_up_is_kept_aside(
        self, layers: Layers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        layers.write("set", "limit_bytes: 7\n")
        self.editor(monkeypatch, tmp_path, "mode: perhaps\n")
        monkeypatch.setattr("builtins.input", lambda _: "n")
        assert run(layers, "edit", "RUN") == 1
        assert layers.load().base.limit_bytes == 7
        (kept,) = layers.home.glob("*.edit.yaml")
        assert kept.read_text() == "mode: perhaps\n"

    def test_an_editor_that_fails_changes_nothing(
        self, layers: Layers, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("VISUAL", "false")
        assert run(layers, "edit", "RUN") == 1
        assert list(layers.home.iterdir()) == []

    def test_a_text_that_the_editor_removed_changes_nothing(
        self, layers: Layers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        layers.write("set", "limit_bytes: 7\n")
        monkeypatch.setenv("VISUAL", "rm")
        assert run(layers, "edit", "RUN") == 1
        assert layers.load().base.limit_bytes == 7

    def test_what_was_set_while_the_editor_was_open_is_not_lost(
        self, layers: Layers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        script = tmp_path / "slow"
        script.write_text(f"#!/bin/sh\necho 'limit_bytes: 8' > '{layers.paths['set']}'\n")
        script.chmod(0o700)
        monkeypatch.setenv("VISUAL", str(script))
        assert run(layers, "edit", "RUN") == 1
        assert layers.load().base.limit_bytes == 8
        assert len(list(layers.home.glob("*.edit.yaml"))) == 1, "nor is the person's text"

    @pytest.mark.parametrize("editor", ["no-such-editor-here", "vi 'open", "$(touch x)"])
    def test_no_shell_reads_its_name(
        self, layers: Layers, monkeypatch: pytest.MonkeyPatch, editor: str
    ) -> None:
        monkeypatch.setenv("VISUAL", editor)
        with pytest.raises(UsageError):
            run(layers, "edit", "RUN")
        assert not Path("x").exists()


def test_names_cannot_act_on_a_terminal(layers: Layers) -> None:
    layers.write(
        "set", 'phases: {"\\e[31m": {limit_bytes: 1}}\nresources: {"\\e[2J": {warn: 0.5}}\n'
    )
    book = load_policy(Profile(name="mine"), run_home=layers.home)
    page = as_text("night", "mine", book, None) + as_text("night", "mine", book, "\x1b[31m")
    assert "\x1b" not in page


def test_a_run_of_another_is_not_looked_into(layers: Layers) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    os.chown(layers.run_dir, 12345, 12345)
    with pytest.raises(TargetError, match="another user"):
        run(layers, "RUN")
