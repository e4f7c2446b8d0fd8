"""What contradicts itself is refused at load: each with its line and what to do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from memwatch.domain.operations import OPERATIONS
from tests.config.layers import Layers, some_layers


@pytest.fixture
def layers() -> Iterator[Layers]:
    with some_layers() as layers:
        yield layers


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("thresholds:\n  warn: 0.8", 2, "thresholds.warn (0.8) must be below thresholds.intervene"),
        ("thresholds:\n  warn: 0.75", 2, "thresholds.intervene (0.75, the default)"),
        ("thresholds:\n  intervene: 0.9", 2, "must be below thresholds.emergency"),
        ("thresholds:\n  hard: 0.9", 2, "thresholds.emergency (0.9, the default) must be below"),
        ("thresholds:\n  emergency: 0.95", 2, "must be below thresholds.hard"),
        ("thresholds: {hard: 1.01}", 1, "share of a limit, at most 1, not 1.01"),
        ("thresholds: {warn: 0}", 1, "thresholds.warn must be above 0"),
        ("thresholds: {warn: -0.1}", 1, "must be a number from 0 to 1e+18, not -0.1"),
        ("thresholds: {warn: .nan}", 1, "must be a number from 0 to 1e+18, not nan"),
        ("thresholds: {hard: .inf}", 1, "must be a number from 0 to 1e+18, not inf"),
        ("thresholds: {warn: '0.5'}", 1, "thresholds.warn: Expected a number, got text"),
        ("thresholds: [1]", 1, "thresholds: Expected lines of `key: value`, got a list"),
        (
            "exit: {warn: 0.6}",
            1,
            "exit.warn (0.6) must be below thresholds.warn (0.6, the default)",
        ),
        ("exit: {intervene: 0.75}", 1, "must be below thresholds.intervene"),
        ("exit: {emergency: 0.61}", 1, "exit.emergency (0.61) must not be above thresholds.warn"),
        ("exit: {dwell_s: -1}", 1, "from 0 to 1e+09, not -1"),
        ("enter: {samples: 0}", 1, "enter.samples must be above 0"),
        ("enter: {samples: 1.5}", 1, "Expected a whole number, got a number"),
        ("soft: {start: 0.76}", 1, "soft.start (0.76) must not be above thresholds.intervene"),
        ("soft: {start: 0.1}", 1, "soft.floor (0.2, the default) must not be above soft.start"),
        ("soft: {floor: 0.7}", 1, "soft.floor (0.7) must not be above thresholds.warn"),
        ("soft: {points: 2}", 1, "at most 1"),
        ("soft: {window_s: 0}", 1, "above 0"),
        (
            "soft:\n  forecast:\n  - {under_s: 9, points: 3}",
            3,
            "soft.forecast[0].points is a share",
        ),
        ("soft:\n  forecast:\n  - {under_s: 9}", 3, "missing required field `points`"),
        ("soft:\n  forecast:\n  - {under: 9}", 3, "'under'; did you mean 'under_s'?"),
        ("pause: {lease_s: 0.5}", 1, "pause.lease_s (0.5) must be at least 1"),
        ("pause: {longest_s: 0}", 1, "above 0"),
        (
            "pause: {then: relase}",
            1,
            "'relase' is none of release, abort, keep; did you mean 'rele",
        ),
        ("pressure: {some: 101}", 1, "pressure.some is at most 100, not 101"),
        ("pressure: {full_intervene: 50}", 1, "must be below pressure.full_emergency"),
        ("pressure: {use: yes}", 1, "Expected true or false, got text"),
        ("breaker: {after: 0}", 1, "above 0"),
        ("budget: {recover_s: 0}", 1, "budget.recover_s must be above 0"),
        ("budget: {work_s: -1}", 1, "must be a number from 0 to 1e+09, not -1"),
        ("budget: {apart_s: 0}", 1, "budget.apart_s must be above 0"),
        ("budget:\n  work_s: 60", 2, "budget.apart_s (120, the default) must not be above budget"),
        ("budget: {recover: 60}", 1, "did you mean 'recover_s'?"),
        ("limit_bytes: 0", 1, "limit_bytes must be above 0"),
        ("disk_reserve_bytes: 2e9", 1, "at most 1,000,000,000"),
        ("mode: acct", 1, "did you mean 'act'?"),
        ("mode: true", 1, "mode: Expected text, got true or false"),
        ("allow: [puse]", 1, "there is no operation 'puse'; did you mean 'pause'?"),
        ("allow: [resume]", 1, "there is no operation 'resume'"),
        ("allow: [purge, purge]", 1, "allow[1]: purge is there twice"),
        ("allow: purge", 1, "allow: Expected a list, got text"),
        ("levels:\n  warn:\n    steps:\n    - op: chekpoint", 4, "did you mean 'checkpoint'?"),
        ("levels:\n  warn:\n    steps:\n    - oq: purge", 4, "'oq'; did you mean 'op'?"),
        ("levels: {warn: {steps: [{args: {}}]}}", 1, "missing required field `op`"),
        ("levels: {warn: {steps: [{op: purge, patience_s: 0}]}}", 1, "patience_s must be above 0"),
        ("levels: {hard: {steps: [], escalate: [{op: purge}]}}", 1, "levels.hard has no steps"),
        ("levels: {wran: {}}", 1, "did you mean 'warn'?"),
        ("retention: {recent: {importance: 2}}", 1, "at most 1"),
        ("retention: {recent: {count: 0}}", 1, "above 0; null is without limit"),
        (
            "retention:\n  a: {count: 1}\n  b:\n    count: x",
            4,
            "retention.b.count: Expected a whole",
        ),
        ("resources: {disk: {warn: 0.8, intervene: 0.7}}", 1, "resources.disk.warn (0.8) must be"),
        ("resources: {disk: {warn: 0.9, emergency: 0.9}}", 1, "below resources.disk.emergency"),
        ("resources: {disk: {warn: 1.5}}", 1, "at most 1"),
        ("resources: {disk: {warn: 0.04}}", 1, "resources.disk.exit_points (0.05) must be below"),
        (
            "resources: {disk: {levels: {warn: {steps: [{op: purge}]}}}}",
            1,
            "resources.disk.levels.warn.steps would never be done: set resources.disk.warn",
        ),
        (
            "resources: {disk: {warn: 0.5, levels: {hard: {steps: [{op: purge}]}}}}",
            1,
            "only memory has a hard limit",
        ),
        ("phases:\n  a:\n    mode: act", 3, "a phase has no 'mode' of its own"),
        ("phases:\n  a:\n    allow: []", 3, "a phase has no 'allow' of its own"),
        ("phases:\n  a:\n    phases: {}", 3, "a phase has no 'phases' of its own"),
        ("phases:\n  a:\n    thresholds: {warn: 0.8}", 3, "in phase a: thresholds.warn (0.8) must"),
        (
            "phases:\n  a:\n    exit: {warn: no}",
            3,
            "phases.a.exit.warn: Expected a number, got text",
        ),
        ("phases: {a: 3}", 1, "a phase is lines of"),
        ("phases: [a]", 1, "phases are lines of"),
        ("phases: {1: {}}", 1, "phases are lines of"),
        ("thresholds: {warn: 0.6, warn: 0.5}", 1, "'warn' is set twice"),
        ("thresholds: &t {warn: 0.6}\nexit: *t", 2, "aliases are not read"),
        ("- mode", 1, "settings are lines of"),
    ],
)
def test_a_contradiction_is_refused_with_its_line(
    layers: Layers, text: str, line: int, words: str
) -> None:
    said = layers.refusal("set", text + "\n")
    assert said.startswith(f"line {line}: "), said
    assert words in said


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ("{op: checkpoint, args: {kind: ful}}", "'ful' is none of incremental, full, experiment"),
        ("{op: checkpoint, args: {tier: a}}", "checkpoint has no argument 'tier'; known are kind"),
        ("{op: purge, args: {how: oldset}}", "did you mean 'oldest'?"),
        ("{op: purge, args: {how: 3}}", "args.how must be a word"),
        ("{op: purge, args: {target_bytes: 0}}", "must be a number of bytes"),
        ("{op: purge, args: {target_bytes: true}}", "must be a number of bytes"),
        ("{op: purge, args: {keys: a}}", "must be a list"),
        ("{op: purge, args: {teir: a}}", "has no argument 'teir'; did you mean 'tier'?"),
        ("{op: abort_experiment, args: {save: required}}", "is none of best_effort, none"),
        ("{op: reclaim, args: {how: all}}", "reclaim has no argument 'how'; it takes none"),
        ("{op: pause, args: {lease_us: 9}}", "it takes none"),
    ],
)
def test_arguments_of_a_step_are_those_of_its_operation(
    layers: Layers, step: str, words: str
) -> None:
    said = layers.refusal("set", f"levels:\n  hard:\n    steps:\n    - op: reclaim\n    - {step}\n")
    assert said.startswith("line 5: levels.hard.steps[1].args."), said
    assert words in said


def test_what_is_written_as_meant_is_taken(layers: Layers) -> None:
    layers.write(
        "set",
        "mode: act\nallow: [checkpoint, purge, compact, end_run, reclaim]\n"
        "levels:\n  warn:\n    steps:\n    - {op: checkpoint, args: {kind: full}}\n"
        "    - {op: purge, args: {tier: recent, keys: [a], how: oldest, target_bytes: 50e6}}\n"
        "    - {op: compact, args: {thread: main}}\n"
        "    - {op: end_run, args: {save: required, grace_us: 0}}\n",
    )
    policy = layers.load().base
    assert [step.op for step in policy.levels.warn.steps] == [
        *("checkpoint", "purge", "compact", "end_run")
    ]
    assert policy.levels.warn.steps[1].args["target_bytes"] == 50_000_000
    assert set(policy.allow) <= set(OPERATIONS)


def test_a_step_that_may_not_be_done_is_refused_when_the_engine_acts(layers: Layers) -> None:
    steps = "levels: {warn: {steps: [{op: checkpoint}, {op: end_run}]}}\n"
    layers.write("set", "mode: shadow\n" + steps)
    layers.load()
    said = layers.refusal("set", "mode: act\n" + steps)
    assert said.startswith("line 2: levels.warn.steps[1].op: end_run is not in allow")


def test_what_the_built_in_steps_may_not_do_is_left_to_the_engine(layers: Layers) -> None:
    layers.write("set", "mode: act\nallow: [checkpoint, pause]\n")
    assert layers.load().base.allow == ("checkpoint", "pause")


def test_no_steps_mean_that_nothing_is_tried_next(layers: Layers) -> None:
    layers.write("set", "levels: {warn: {steps: []}}\nphases: {a: {levels: {hard: {steps: []}}}}\n")
    book = layers.load()
    assert book.base.levels.warn.escalate == ()
    assert book.of("a").levels.hard.escalate == ()


def test_all_that_is_wrong_is_said_at_once(layers: Layers) -> None:
    said = layers.refusal(
        "set", "thresholds: {warn: 0.5}\nexit: {warn: 0.55, emergency: 0.6}\nsoft: {window_s: 0}\n"
    )
    assert said == (
        "line 3: soft.window_s must be above 0; "
        "line 2: exit.warn (0.55) must be below thresholds.warn (0.5): "
        "lower the first or raise the other; "
        "line 2: exit.emergency (0.6) must not be above thresholds.warn (0.5): "
        "lower the first or raise the other"
    )


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("thresholds: {warn: 0.5}", (0.45, 0.70, 0.5)),
        ("thresholds: {warn: 0.7}", (0.65, 0.70, 0.7)),
        ("thresholds: {intervene: 0.65}", (0.55, 0.60, 0.60)),
        ("thresholds: {warn: 0.5}\nexit: {warn: 0.3}", (0.3, 0.70, 0.5)),
        ("thresholds: {warn: 0.05}\nsoft: {floor: 0.01}", (0.025, 0.70, 0.05)),
    ],
)
def test_exit_shares_that_are_not_said_follow_the_thresholds(
    layers: Layers, text: str, ends: tuple[float, float, float]
) -> None:
    layers.write("set", text + "\n")
    found = layers.load().base.exit
    assert (found.warn, found.intervene, found.emergency) == ends


def test_two_files_that_contradict_each_other_name_the_one_that_was_read_last(
    layers: Layers,
) -> None:
    layers.write("config", "policy:\n  thresholds: {intervene: 0.7}\n")
    layers.write("policies", "exit: {intervene: 0.6}\n")
    said = layers.refusal("set", "# mine\nthresholds: {warn: 0.7}\n")
    assert said.startswith("line 2: thresholds.warn (0.7) must be below thresholds.intervene (0.7)")
    assert "default" not in said


def test_names_from_a_file_cannot_act_on_a_terminal(layers: Layers) -> None:
    said = layers.refusal("set", '"\\e[31m": 1\n')
    assert "\x1b" not in said
    said = layers.refusal("set", 'resources: {"\\e[31m": {warn: 2}}\n')
    assert "\x1b" not in said
    said = layers.refusal("set", 'phases: {"\\e[31m": {thresholds: {warn: 2}}}\n')
    assert "\x1b" not in said
