"""Layers of a policy: who says what wins, and is named as its source."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec import structs, to_builtins

from memwatch.analytics.run_state import RunState
from memwatch.config.load import load_profile, profile_names
from memwatch.config.policy import Action, Policy
from memwatch.config.policy_load import load_policy, usable_policy
from memwatch.config.schema import Profile
from memwatch.config.shape import leaves
from memwatch.domain.errors import ConfigError
from memwatch.domain.policy import KEEP, Keep
from tests.builders import record
from tests.config.layers import ORDER, Layers, some_layers, written


@pytest.fixture
def layers() -> Iterator[Layers]:
    with some_layers() as layers:
        yield layers


STEPS = st.lists(
    st.sampled_from([{"op": "checkpoint", "args": {"kind": "full"}}, {"op": "reclaim"}]),
    min_size=1,
    max_size=3,
)
BASE: dict[str, st.SearchStrategy[Any]] = {
    "limit_bytes": st.integers(1, 10**12),
    "thresholds.warn": st.floats(0.601, 0.7),
    "thresholds.intervene": st.floats(0.71, 0.8),
    "thresholds.emergency": st.floats(0.81, 0.9),
    "exit.warn": st.floats(0.1, 0.5),
    "exit.dwell_s": st.floats(0, 1e6),
    "enter.samples": st.integers(1, 50),
    "soft.start": st.none() | st.floats(0.3, 0.7),
    "soft.forecast": st.just([]),
    "levels.warn.steps": STEPS,
    "levels.intervene.steps": STEPS,
    "levels.hard.cooldown_s": st.floats(0, 1e5),
    "pause.then": st.sampled_from(["release", "abort", "keep"]),
    "pressure.use": st.booleans(),
    "retention.recent.experiments": st.integers(1, 99),
    "resources.disk.warn": st.floats(0.5, 0.6),
    "resources.disk.levels.warn.cooldown_s": st.floats(0, 100),
}
"""Keys, with values that contradict nothing, whatever else is said."""
PHASED = {f"phases.verification.{key}": values for key, values in BASE.items()}
PHASED |= {f"phases.deep search.{key}": values for key, values in BASE.items()}
KEYS = BASE | PHASED
VALUES = st.fixed_dictionaries({}, optional=KEYS)


@settings(max_examples=25)
@given(said=st.fixed_dictionaries(dict.fromkeys(ORDER, VALUES)))
def test_what_the_highest_layer_says_is_the_value_and_it_is_the_source(
    said: dict[str, dict[str, Any]],
) -> None:
    with some_layers() as layers:
        value: dict[str, Any] = {}
        source: dict[str, str] = {}
        for layer in ORDER:
            text, lines = written(said[layer], layer)
            layers.write(layer, text)
            value |= said[layer]
            source |= {key: f"{layers.paths[layer]} line {lines[key]}" for key in said[layer]}
        book = layers.load()
        everything = dict(leaves(to_builtins(book.base), Policy))
        for key in everything:
            if key in value:
                assert to_builtins(everything[key]) == pytest.approx(filled(value[key])), key
            usual = "by thresholds" if key in moved(value) else "default"
            assert book.sources[key].startswith(source.get(key, usual)), key
        for phase in ("verification", "deep search"):
            own = dict(leaves(to_builtins(book.of(phase)), Policy))
            for key in BASE:
                long = f"phases.{phase}.{key}"
                if long in value:
                    assert own[key] == pytest.approx(filled(value[long]))
                    assert book.sources[long] == source[long]
                elif key in value:  # what is said of all phases
                    assert own[key] == everything[key], "a phase has what the run has"
                    assert long not in book.sources


def moved(value: dict[str, Any]) -> set[str]:
    """Return exit shares that follow what was said of thresholds."""
    followers = {"thresholds.warn": {"exit.warn", "exit.emergency"}}
    followers["thresholds.intervene"] = {"exit.intervene"}
    return {key for lead, keys in followers.items() if lead in value for key in keys}


def filled(value: Any) -> Any:
    """Return a value as a policy holds it: steps are complete."""
    if isinstance(value, list):
        return tuple(to_builtins(Action(**one)) for one in value)
    return value


@settings(max_examples=40)
@given(
    said=st.fixed_dictionaries({}, optional=KEYS).filter(bool),
    layer=st.sampled_from(ORDER),
    data=st.data(),
)
def test_a_typing_error_in_any_key_is_refused_with_its_line(
    said: dict[str, Any], layer: str, data: st.DataObject
) -> None:
    key = data.draw(st.sampled_from(sorted(said)))
    free = ("verification", "deep search", "recent", "disk")
    parts = key.split(".")
    place = data.draw(st.sampled_from([i for i, part in enumerate(parts) if part not in free]))
    at = data.draw(st.integers(0, len(parts[place]) - 1))
    word = parts[place]
    parts[place] = word[:at] + data.draw(st.sampled_from(["", "x", word[at] * 2])) + word[at + 1 :]
    assume(parts[place] != word)
    with some_layers() as layers:
        text, lines = written({".".join(parts): said[key]}, layer)
        line = lines[".".join(parts[: place + 1])]
        told = layers.refusal(layer, text)
        assert told.startswith(f"line {line}: unknown key {parts[place]!r}; "), told


def test_nothing_said_is_the_built_in_policy(layers: Layers) -> None:
    book = layers.load()
    assert book.base == Policy()
    assert set(book.sources.values()) == {"default"}
    assert (book.used, book.notes, book.missing, book.origin) == ((), (), {}, "default")
    assert set(book.files) == set(layers.paths.values()) - {layers.paths["extra"]}


def test_in_verification_old_history_goes_to_disk(layers: Layers) -> None:
    """R8, intervene: compressed, and in verification written to disk."""
    book = layers.load()

    def purges(phase: str | None) -> list[Any]:
        steps = book.of(phase).levels.intervene.steps
        return [step.args for step in steps if step.op == "purge"]

    assert purges(None) == purges("accumulation") == [{"tier": "history", "how": "compress"}]
    assert purges("verification") == [{"tier": "history", "how": "reclaim"}]
    other = structs.replace(book.of("verification"), levels=book.base.levels)
    assert other == book.base, "and nothing else differs"


def test_steps_of_all_phases_replace_the_built_in_ones_of_a_phase(layers: Layers) -> None:
    layers.write("set", "levels: {intervene: {steps: [{op: pause}]}}\n")
    book = layers.load()
    assert book.of("verification").levels.intervene.steps == (Action(op="pause"),)


def test_what_a_tier_keeps_begins_with_what_the_profile_keeps(layers: Layers) -> None:
    layers.write("set", "phases: {verification: {retention: {recent: {experiments: 9}}}}\n")
    book = layers.load()
    assert book.base.retention == {}
    wanted = structs.replace(KEEP["recent"], experiments=9)
    assert book.of("verification").retention == {"recent": wanted}
    assert isinstance(wanted, Keep)


def test_a_resource_never_inherits_the_plans_of_memory(layers: Layers) -> None:
    layers.write("set", "resources: {disk: {warn: 0.8, levels: {warn: {steps: [{op: purge}]}}}}\n")
    rule = layers.load().base.resources["disk"]
    assert rule.levels.warn.steps == (Action(op="purge"),)
    assert rule.levels.emergency.steps == rule.levels.hard.steps == ()


def test_a_key_with_nothing_under_it_says_nothing(layers: Layers) -> None:
    layers.write("set", "thresholds:\nlevels:\n  warn:\nretention:\n  recent:\nphases:\n  a:\n")
    assert layers.load().base == Policy()
    layers.write("config", "policy:\n")
    assert layers.load().base == Policy()


def test_a_phase_with_a_long_name_is_known_as_a_run_knows_it(layers: Layers) -> None:
    state = RunState()
    name = "a very long name of a phase"
    layers.write("set", f"phases: {{{name}: {{limit_bytes: 9}}}}\n")
    state.fold([record(1, "experiment.begin", 0, x=1, phase=name)])
    assert layers.load().of(state.phase).limit_bytes == 9


def test_off_and_on_are_words(layers: Layers) -> None:
    layers.write("set", "mode: off\n")
    assert layers.load().base.mode == "off"
    said = layers.refusal("set", "mode: on\n")
    assert said.startswith("line 1: mode: 'on' is none of off, observe, shadow, ask, act")


@pytest.mark.parametrize("layer", ORDER)
def test_a_policy_that_lacks_its_section_says_where_it_belongs(layers: Layers, layer: str) -> None:
    if layer in ("profile", "config", "run"):
        name = "name: mine\n" if layer == "profile" else "# mine\n"
        said = layers.refusal(layer, f"{name}levels: {{}}\n")
        assert said == "line 2: 'levels' is a setting of the policy; write it under `policy:`"
    elif layer != "extra":
        said = layers.refusal(layer, "# mine\npolicy: {mode: act}\n")
        assert said.startswith("line 2: this file is a policy as a whole")
    else:
        layers.write(layer, "policy: {mode: act}\n")
        assert layers.load().base.mode == "act", "a person may name a file of either kind"


class TestTheRunsOwnFile:
    """F47: an agent's folder cannot raise what may be done to the agent, or for it."""

    def test_widens_nothing(self, layers: Layers) -> None:
        layers.write(
            "run",
            "policy:\n  mode: act\n  allow: [end_run]\n  thresholds: {warn: 0.62}\n"
            "  levels:\n    warn:\n      steps: [{op: end_run}, {op: reclaim}]\n"
            "notify: {channels: [{kind: command, argv: [sh]}]}\nown: {cpu_percent: 900}\n",
        )
        book = layers.load()
        assert (book.base.mode, book.base.allow) == ("shadow", Policy().allow)
        assert book.base.thresholds.warn == 0.62
        assert book.base.levels.warn.steps == (Action(op="reclaim"),)
        told = sorted(note.removeprefix(f"{layers.paths['run']} ") for note in book.notes)
        assert [note.partition(" is not followed")[0] for note in told] == [
            "line 2: mode",
            "line 3: allow",
            "line 7: end_run",
            "line 8: notify",
            "line 9: own",
        ]

    @pytest.mark.parametrize("mode", [0o620, 0o602])
    def test_that_others_can_write_is_not_followed(self, layers: Layers, mode: int) -> None:
        layers.write("run", "policy: {thresholds: {warn: 0.62}}\n")
        layers.paths["run"].chmod(mode)
        book = layers.load()
        assert book.base == Policy()
        (note,) = book.notes
        assert "can be written by others; chmod go-w it; it is not followed" in note

    def test_that_is_a_link_is_not_followed(self, layers: Layers) -> None:
        layers.write("extra", "policy: {thresholds: {warn: 0.62}}\n")
        layers.paths["run"].symlink_to(layers.paths["extra"])
        book = load_policy(load_profile("mine"), run_dir=layers.run_dir)
        assert book.base == Policy()
        assert "is a link" in book.notes[0]

    def test_that_is_a_pipe_keeps_nobody_waiting(self, layers: Layers) -> None:
        os.mkfifo(layers.paths["run"], 0o600)
        with pytest.raises(ConfigError, match="is no file"):
            layers.load()

    def test_that_is_broken_takes_away_nothing_of_the_users(self, layers: Layers) -> None:
        layers.write("config", "policy: {mode: act}\n")
        layers.write("run", "policy: {thresholds: {warn: 2}}\n")
        profile = load_profile("mine")
        book, said = usable_policy(profile, run_dir=layers.run_dir, run_home=layers.home)
        assert book.base.mode == "act"
        assert said.startswith(f"{layers.paths['run']} line 1: ")
        assert layers.paths["run"] in book.files, "it is watched: it may be mended"
        layers.write("config", "policy: {mode: atc}\n")
        book, said = usable_policy(profile, run_dir=layers.run_dir, run_home=layers.home)
        assert book.base == Policy()
        assert "'atc' is none of" in said
        assert "did you mean 'act'?" in said


def test_the_users_own_files_must_not_be_open_to_all(layers: Layers) -> None:
    for layer in ("config", "policies", "set"):
        layers.write(layer, "# nothing\n")
        layers.paths[layer].chmod(0o646)
        with pytest.raises(ConfigError, match="can be written by others"):
            layers.load()
        layers.paths[layer].chmod(0o664)
        layers.load()


class TestWhatAnAgentLacks:
    """An operation that a file names is refused; the built-in policy goes without it."""

    OPS = ("checkpoint", "pause", "read_only")

    def test_the_built_in_policy_goes_without_it(self, layers: Layers) -> None:
        book = layers.load(ops=self.OPS)
        assert set(book.missing) == {"purge", "reclaim", "retain", "abort_experiment"}
        for policy in (book.base, *book.phases.values()):
            assert policy.allow == ("checkpoint", "pause", "read_only")
            assert [step.op for step in policy.levels.warn.steps] == ["checkpoint"]
            assert policy.levels.warn.escalate == policy.pause.relief == ()
            assert [step.op for step in policy.outlook.steps] == ["checkpoint"]
            assert [step.op for step in policy.levels.intervene.steps] == ["pause", "checkpoint"]

    def test_an_agent_that_takes_all_lacks_nothing(self, layers: Layers) -> None:
        assert layers.load(ops=[*Policy().allow]) == layers.load()

    @pytest.mark.parametrize(
        ("text", "line"),
        [
            ("# mine\nallow: [checkpoint,\n  purge]\n", 3),
            ("levels:\n  warn:\n    steps:\n    - op: checkpoint\n    - op: purge\n", 5),
            ("phases:\n  x:\n    levels: {warn: {steps: [{op: purge}]}}\n", 3),
        ],
    )
    def test_what_a_file_names_is_refused(self, layers: Layers, text: str, line: int) -> None:
        said = layers.refusal("set", text, ops=self.OPS)
        assert said.startswith(f"line {line}: ")
        assert "this agent has no purge; it has checkpoint, pause, read_only" in said


def test_a_tier_that_the_profile_does_not_name_is_noted(layers: Layers) -> None:
    layers.write("set", "retention: {recnt: {count: 5}}\n")
    (note,) = layers.load().notes
    assert note == "tier 'recnt' is none of profile mine: workspace, recent, verified, history"


def test_every_shipped_profile_has_a_valid_policy() -> None:
    usual = {"demo": "act", "directory": "observe", "langgraph": "observe"}
    with some_layers():
        for name in profile_names():
            assert load_policy(load_profile(name)).base.mode == usual.get(name, "shadow")


def test_the_example_of_the_readme_is_valid_and_lacks_nothing(layers: Layers) -> None:
    page = (Path(__file__).resolve().parents[2] / "README.md").read_text()
    text = page.split("<!-- policy -->")[1].split("```yaml\n")[1].split("```")[0]
    layers.write("extra", text)
    book = layers.load()
    assert (book.base.mode, book.base.thresholds.warn, book.notes) == ("act", 0.55, ())
    kept = book.of("verification").retention["recent"].experiments
    assert (kept, book.base.budget.work_s) == (10, 300)


def test_a_profile_made_in_code_has_its_layer_too() -> None:
    with some_layers():
        book = load_policy(Profile(name="made", policy={"mode": "ask", "enter": {"warn_s": 1}}))
        assert (book.base.mode, book.base.enter.warn_s) == ("ask", 1)
        assert book.sources["mode"].startswith("profile made line ")


def test_a_draft_is_judged_in_place_of_what_was_set(layers: Layers) -> None:
    layers.write("set", "mode: act\n")
    assert layers.load(draft="mode: ask\n").base.mode == "ask"
    with pytest.raises(ConfigError, match=r"policy.yaml, as it would be, line 1: mode: 'no'"):
        layers.load(draft="mode: no\n")
    assert layers.load().base.mode == "act"
