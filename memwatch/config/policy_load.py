"""All layers of a policy -> the policy in force, with the source of each value.

Lowest first; each says only what it changes, maps merge by key, lists replace:

    the built-in policy                     config/policy.py
    the profile                             its section `policy:`
    $XDG_CONFIG_HOME/memwatch/config.yaml   its section `policy:`
    …/memwatch/policies/<profile>.yaml
    <run directory>/memwatch.yaml           its section `policy:`; cannot widen what is done
    $MEMWATCH_HOME/runs/<run>/policy.yaml   what `memwatch policy set` wrote
    --policy FILE

A phase has the base policy, changed by what any layer says under `phases.<name>`; what the built-in
policy says of a phase gives way where a file says that key of the base. Source: R8 to R10, F47.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct, convert, structs, to_builtins

from memwatch.config.locations import config_dir
from memwatch.config.policy import PHASES, PhasePolicy, Policy
from memwatch.config.policy_check import steps_of, wrongs
from memwatch.config.policy_file import PolicyFile, Stamp, stamp_of
from memwatch.config.policy_layers import (
    Document,
    Layer,
    Origins,
    any_layer,
    completed,
    file_layer,
    profile_layer,
    run_layer,
    text_layer,
)
from memwatch.config.policy_unsaid import LEADS, followed, settled
from memwatch.config.schema import Profile
from memwatch.config.settings import CONFIG_FILE, Settings
from memwatch.config.shape import leaves, overlaid
from memwatch.domain.errors import ConfigError
from memwatch.domain.text import inert

RUN_FILE = "memwatch.yaml"
"""A run's own settings, in its directory."""
SET_FILE = "policy.yaml"
"""What `memwatch policy set` wrote for a run, in what the guard keeps of it."""

_MOST_TOLD = 3
_PHASE_WIDTH = 20
"""A phase is known by so many characters of its name (analytics.run_state)."""


class PolicyBook(Struct, frozen=True, kw_only=True):
    """The policy of a run, for each of its phases."""

    base: Policy = Policy()
    phases: Mapping[str, Policy] = {}
    """Complete policies of the phases that have one of their own."""
    sources: Mapping[str, str] = {}
    """Dotted key -> `default`, `by <key>` that it follows, or `<file> line N`; of a phase:
    `phases.<name>.<key>`."""
    files: tuple[Path, ...] = ()
    """All that may hold a layer, whether they are there or not."""
    used: tuple[str, ...] = ()
    """Those that do, as people know them."""
    notes: tuple[str, ...] = ()
    """What was not followed, and why."""
    missing: Mapping[str, str] = {}
    """Operations of the built-in policy that the agent lacks, and why they were left out."""
    stamps: Mapping[Path, Stamp] = {}
    """What `files` looked like before they were read."""

    def of(self, phase: str | None) -> Policy:
        """Return the policy for a phase as the agent declares it; None for none."""
        if phase is None or phase in self.phases:
            return self.base if phase is None else self.phases[phase]
        cut = (own for name, own in self.phases.items() if inert(name, _PHASE_WIDTH) == phase)
        return next(cut, self.base)

    @property
    def origin(self) -> str:
        """Where it comes from, in one line."""
        return ", ".join(self.used) or "default"

    def watch(self) -> PolicyFile:
        """Return what tells whether a file changed since the book was loaded."""
        return PolicyFile(self.files, self.stamps)


class _Places(NamedTuple):
    """Files in which layers may lie, lowest first."""

    profile: Path | None
    config: Path
    policies: Path
    run: Path | None
    set: Path | None
    extra: Path | None


def load_policy(
    profile: Profile,
    *,
    run_dir: Path | None = None,
    run_home: Path | None = None,
    extra: Path | None = None,
    ops: Collection[str] | None = None,
    draft: str | None = None,
) -> PolicyBook:
    """Return the policy in force; raises ConfigError that names file, line and nearest key.

    `run_dir` holds the run's own settings, `run_home` what was set for it; `ops` is what its agent
    takes, holds included (None: not known). A file that names an operation which the agent lacks is
    refused; the built-in policy goes without it, and `missing` says so. `draft` is judged in place
    of what was set.
    """
    return _load(profile, _places(profile, run_dir, run_home, extra), ops, draft)


def usable_policy(
    profile: Profile,
    *,
    run_dir: Path | None = None,
    run_home: Path | None = None,
    extra: Path | None = None,
    ops: Collection[str] | None = None,
) -> tuple[PolicyBook, str]:
    """Return a policy to begin with, whatever the files are like, and what is wrong with them.

    Without the run's own settings if the others are fine: an agent's folder must not take away what
    its user wants. Else the built-in policy, which does not act.
    """
    places = _places(profile, run_dir, run_home, extra)
    try:
        return _load(profile, places, ops), ""
    except ConfigError as error:
        said = str(error)
    try:
        book = _load(profile, places._replace(run=None), ops)
    except ConfigError:
        book = _combined(profile, (), ops)
    files = tuple(path for path in places if path is not None)
    return structs.replace(book, files=files, stamps={p: stamp_of(p) for p in files}), said


def _places(
    profile: Profile, run_dir: Path | None, run_home: Path | None, extra: Path | None
) -> _Places:
    return _Places(
        profile=Path(profile.file) if profile.file else None,
        config=config_dir() / CONFIG_FILE,
        policies=config_dir() / "policies" / f"{profile.name}.yaml",
        run=run_dir / RUN_FILE if run_dir else None,
        set=run_home / SET_FILE if run_home else None,
        extra=extra,
    )


def _load(
    profile: Profile, places: _Places, ops: Collection[str] | None, draft: str | None = None
) -> PolicyBook:
    files = tuple(path for path in places if path is not None)
    stamps = {path: stamp_of(path) for path in files}
    notes: list[str] = []
    book = _combined(profile, _layers(profile, places, notes, draft), ops)
    notes += _strange_tiers(profile, book)
    return structs.replace(book, files=files, stamps=stamps, notes=tuple(notes))


def _layers(profile: Profile, places: _Places, notes: list[str], draft: str | None) -> list[Layer]:
    found = [
        profile_layer(profile),
        file_layer(places.config, "user", Settings),
        file_layer(places.policies, "user") if _is_name(profile.name) else None,
        run_layer(places.run, notes) if places.run else None,
        file_layer(places.set, "user") if places.set and draft is None else None,
        text_layer(draft, f"{places.set}, as it would be,") if draft is not None else None,
        any_layer(places.extra) if places.extra else None,
    ]
    return [layer for layer in found if layer is not None and layer.values]


def _is_name(profile: str) -> bool:
    return "/" not in profile and profile not in ("", ".", "..")


def _combined(profile: Profile, layers: Sequence[Layer], ops: Collection[str] | None) -> PolicyBook:
    origins, said = Origins(layers), dict[str, Any]()
    for layer in layers:
        said = overlaid(said, layer.values, Document)
    of_phases = said.pop("phases", {})
    values = completed(to_builtins(Policy()), said, profile)
    missing: dict[str, str] = {}
    base = _judged(values, origins, "", ops, missing)
    phases: dict[str, Policy] = {}
    sources = {key: origins.source(key) for key, _ in leaves(values, Policy)}
    sources |= {f"exit.{level}": f"by {LEADS[level]}" for level in followed(base, origins)}
    for name in {**PHASES, **of_phases}:
        usual = _given_way(PHASES.get(name, {}), origins)
        own = overlaid(usual, of_phases.get(name) or {}, PhasePolicy)
        if own:
            below = f"phases.{name}."
            whole = completed(values, own, profile)
            phases[name] = _judged(whole, origins, below, ops, missing)
            sources |= {
                f"{below}{key}": origins.source(f"{below}{key}") for key, _ in leaves(own, Policy)
            }
            sources |= {
                f"{below}exit.{level}": f"by {LEADS[level]}"
                for level, end in followed(phases[name], _OfPhase(origins, below)).items()
                if end != getattr(base.exit, level)
            }
    used = tuple(layer.tree.where for layer in layers)
    return PolicyBook(base=base, phases=phases, sources=sources, used=used, missing=missing)


def _given_way(usual: Mapping[str, Any], origins: Origins, below: str = "") -> dict[str, Any]:
    """Return what the built-in policy says of a phase, without what a file says of all phases."""
    kept: dict[str, Any] = {}
    for name, value in usual.items():
        key = f"{below}{name}"
        if isinstance(value, Mapping):
            if inner := _given_way(value, origins, f"{key}."):
                kept[name] = inner
        elif not origins.said(key):
            kept[name] = value
    return kept


class _OfPhase(NamedTuple):
    """Origins as seen from one phase: what is not said of it is said of all."""

    origins: Origins
    below: str

    def said(self, key: str) -> bool:
        return self.origins.said(self.below + key) or self.origins.said(key)

    def place(self, keys: Iterable[str]) -> tuple[str, int] | None:
        both = [one for key in keys for one in {self.below + key: 0, key: 0}]
        return self.origins.last(both)


def _judged(
    values: Mapping[str, Any],
    origins: Origins,
    below: str,
    ops: Collection[str] | None,
    missing: dict[str, str],
) -> Policy:
    """Return a complete policy; raises ConfigError that says what is wrong, with lines."""
    seen = _OfPhase(origins, below)
    policy = settled(convert(values, Policy), seen, ops, missing)
    found = list(wrongs(policy, seen, ops))
    if not found:
        return policy
    told = []
    for wrong in found[:_MOST_TOLD]:
        where, line = seen.place(wrong.keys) or ("the built-in policy", 1)
        text = f"in phase {below[7:-1]}: {wrong.text}" if below else wrong.text
        told.append((where, f"line {line}: {text}"))
    first = told[0][0]
    rest = len(found) - len(told)
    words = [text if where == first else f"{where} {text}" for where, text in told]
    words += [f"{rest} more"] * bool(rest)
    raise ConfigError(inert(f"{first} {'; '.join(words)}", 900))


def _strange_tiers(profile: Profile, book: PolicyBook) -> list[str]:
    """Note tiers that the profile does not name: the agent's own, or a typing error."""
    named: set[str] = set()
    for policy in (book.base, *book.phases.values()):
        named |= policy.retention.keys()
        for _, steps in steps_of(policy):
            named |= {str(step.args["tier"]) for step in steps if "tier" in step.args}
    known = ", ".join(profile.tiers)
    return [
        inert(f"tier {tier!r} is none of profile {profile.name}: {known}", 200)
        for tier in sorted(named.difference(profile.tiers))
    ]
