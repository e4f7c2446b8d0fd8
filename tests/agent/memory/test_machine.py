"""Whatever happens to tiers: memory is what a plain model says, and the log leads to the same."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from memwatch.agent.memory.entry import Change, Source
from memwatch.agent.memory.values import Types, plain
from memwatch.domain.errors import LogError
from memwatch.domain.policy import Keep
from memwatch.wal.diff import apply
from tests.agent.memory.holding import Held, State

TIERS = {
    "workspace": Keep(count=6, intermediate=True, bytes=12_000),
    "recent": Keep(experiments=2, demote_to="history"),
    "verified": Keep(delete=False, count=3),
    "history": Keep(ttl_s=1_000),
}
tiers = st.sampled_from(sorted(TIERS))
keys = st.sampled_from("abcdef")
values = st.one_of(
    st.integers(-5, 5),
    st.binary(max_size=20),
    st.lists(
        st.fixed_dictionaries({"n": st.integers(-(2**40), 2**40), "text": st.text(max_size=8)}),
        max_size=8,
    ),
    st.integers(1, 30).map(lambda n: ["grows", "x" * 300 * n]),
    st.dictionaries(st.sampled_from("pqrstu"), st.text(max_size=30), max_size=5),
)
hows = st.sampled_from(["expired", "oldest", "least_accessed", "compress", "reclaim", None])


def canonical(value: Any) -> Any:
    return plain(Types().encode(value).canonical)


class Storage(RuleBasedStateMachine):
    """Two views of the same acts: the tiers, and a dictionary that retention tells what goes."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        builders = {"repeat": lambda n: f"{n}" * n}
        self.held = Held(Path(self.folder.name), TIERS, builders=builders, limit_bytes=200_000)
        self.held.context.experiment = 1
        self.model: dict[str, dict[str, Any]] = {name: {} for name in TIERS}
        self.base: State = {name: {} for name in TIERS}
        self.taken: tuple[State, dict[str, dict[str, Change]]] | None = None

    @initialize()
    def begin(self) -> None:
        """Begin in a phase."""
        self.held.context.phase = "exploration"

    def teardown(self) -> None:
        """Leave nothing behind."""
        self.held.log.close()
        self.folder.cleanup()

    def _heed_deletions(self) -> None:
        """Let the model follow what retention and purges delete or sum up; they alone may."""
        for name, tier in self.held.tiers.items():
            for key in set(self.model[name]) - {entry.key for entry in tier.entries()}:
                assert TIERS[name].delete, "verified is never deleted"
                del self.model[name][key]
            for entry in tier.entries():
                if entry.key.startswith("summary/"):
                    self.model[name].setdefault(entry.key, canonical(tier.peek(entry.key)))

    @rule(tier=tiers, key=keys, value=values, gone=st.booleans())
    def put(self, tier: str, key: str, value: Any, gone: bool) -> None:
        """Put or update, at times while the log takes nothing."""
        if gone:
            self.held.log_files.fail_all("write")
        try:
            self.held.tiers[tier].put(key, value, ttl_s=50 if key == "a" else None)
        except LogError:
            assert gone
        else:
            assert not gone
            self.model[tier][key] = canonical(value)
        self.held.log_files.heal()
        self._heed_deletions()

    @rule(tier=tiers, key=keys, n=st.integers(1, 40))
    def build(self, tier: str, key: str, n: int) -> None:
        """Put what can be made again."""
        assert self.held.tiers[tier].build(key, "repeat", n=n) == f"{n}" * n
        self.model[tier][key] = Source("repeat", {"n": n})
        self._heed_deletions()

    @rule(tier=tiers, key=keys, item=st.text(max_size=5), put=st.booleans())
    def change_in_place(self, tier: str, key: str, item: str, put: bool) -> None:
        """Append to a list, and put it again, or let somebody else find out."""
        if not isinstance(self.model[tier].get(key), list):
            return
        value = self.held.tiers[tier].get(key)
        value.append(item)
        if put:
            self.held.tiers[tier].put(key, value)
        else:
            assert self.held.tiers[tier].log_mutation(key)
        self.model[tier][key] = canonical(value)
        self._heed_deletions()

    @rule(tier=tiers, key=keys)
    def delete(self, tier: str, key: str) -> None:
        """Delete what is there."""
        if key in self.held.tiers[tier]:
            self.held.tiers[tier].delete(key)
            del self.model[tier][key]

    @rule(tier=tiers, key=keys)
    def get(self, tier: str, key: str) -> None:
        """Bring a value back from wherever it is."""
        wanted = self.model[tier].get(key)
        if isinstance(wanted, Source):
            n = wanted.args["n"]
            assert self.held.tiers[tier].get(key) == f"{n}" * n
        elif key in self.held.tiers[tier]:
            assert canonical(self.held.tiers[tier].get(key)) == wanted

    @rule(how=hows, tier=st.none() | tiers, wanted=st.none() | st.integers(0, 20_000))
    def purge(self, how: Any, tier: str | None, wanted: int | None) -> None:
        """Free memory."""
        done = self.held.tiers.purge(how=how, tier=tier, target_bytes=wanted, cause="pressure")
        assert not done.refused
        self._heed_deletions()

    @rule(
        tier=tiers, count=st.none() | st.integers(1, 6), experiments=st.none() | st.integers(1, 3)
    )
    def ask_to_keep(self, tier: str, count: int | None, experiments: int | None) -> None:
        """Somebody asks a tier to keep more or fewer, or, for a change, what it keeps by itself."""
        wish = {"count": count, "experiments": experiments}
        self.held.tiers.keep(tier, wish if count != experiments else None, "asked")
        self._heed_deletions()

    @rule(seconds=st.sampled_from([1, 60, 2_000]), phase=st.sampled_from(["one", "other"]))
    def begin_experiment(self, seconds: int, phase: str) -> None:
        """Time passes, an experiment ends and another begins."""
        self.held.tiers.experiment_ended()
        self.held.clock.advance_s(seconds)
        self.held.context.experiment = (self.held.context.experiment or 0) + 1
        self.held.context.phase = phase
        self.held.tiers.phase_changed()
        self._heed_deletions()

    @precondition(lambda self: self.taken is None)
    @rule()
    def begin_checkpoint(self) -> None:
        """A checkpoint takes what changed."""
        self.taken = self.held.state(), self.held.tiers.take_changes()

    @precondition(lambda self: self.taken is not None)
    @rule(committed=st.booleans())
    def end_checkpoint(self, committed: bool) -> None:
        """It holds what it took, or it failed and gives it back."""
        assert self.taken is not None
        state, changes = self.taken
        self.taken = None
        if committed:
            self.base = state
        else:
            self.held.tiers.give_back(changes)

    @invariant()
    def memory_is_what_the_model_says(self) -> None:
        """Values and sums."""
        for name, tier in self.held.tiers.items():
            assert {entry.key for entry in tier.entries()} == self.model[name].keys()
            assert tier.bytes == sum(entry.bytes for entry in tier.entries())
            assert tier.table.full_bytes == sum(entry.full_bytes for entry in tier.entries())
            for entry in tier.entries():
                wanted = self.model[name][entry.key]
                found = entry.source or canonical(tier.peek(entry.key))
                assert found == wanted
            resident = [entry.key for entry in tier.entries() if entry.resident]
            assert sorted(resident) == sorted(tier.table.resident)

    @invariant()
    def the_log_leads_to_the_same_state(self) -> None:
        """Replay all records."""
        assert self.held.replay() == self.held.state()

    @precondition(lambda self: self.taken is None)
    @invariant()
    def changes_lead_from_the_last_checkpoint_to_now(self) -> None:
        """Apply the net changes to what the checkpoint holds."""
        changes = self.held.tiers.take_changes()
        self.held.tiers.give_back(changes)
        now, state = self.held.state(), {name: dict(held) for name, held in self.base.items()}
        for name, of_tier in changes.items():
            for key, change in of_tier.items():
                assert change.was_present == (key in self.base[name])
                if key not in now[name]:
                    del state[name][key]
                elif change.ops is None:
                    state[name][key] = now[name][key]
                else:
                    lsn, value = state[name][key]
                    assert lsn == change.base_lsn
                    state[name][key] = change.lsn, apply(value, change.ops)
        assert state == now


Storage.TestCase.settings = settings(max_examples=60, stateful_step_count=30)
TestStorage = Storage.TestCase
