"""An overlay is a dict whose base stands still until it is settled, in any order of acts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memwatch.agent.memory.entry import Entry
from memwatch.agent.memory.table import Table

KEYS = st.sampled_from("abcdefg")
ACTS = st.one_of(
    st.tuples(st.sampled_from(["put", "remove"]), KEYS),
    st.tuples(st.just("freeze"), st.just("")),
    st.tuples(st.just("thaw"), st.sampled_from(["1", "2", "100"])),
)


def entry(key: str, lsn: int) -> Entry:
    return Entry(key=key, lsn=lsn, bytes=1, digest="")


@given(acts=st.lists(ACTS, max_size=60))
def test_it_is_what_a_dict_would_be(acts: list[tuple[str, str]]) -> None:
    table, model, frozen = Table(), dict[str, Entry](), dict[str, Entry]()
    captured = table.freeze()
    settling = False
    for lsn, (act, key) in enumerate(acts):
        if act in ("put", "remove"):
            assert table.remove(key) is model.pop(key, None)
        if act == "put":
            model[key] = entry(key, lsn)
            table.add(model[key])
        elif act == "freeze":
            captured, frozen, settling = table.freeze(), dict(model), False
        elif act == "thaw":
            settling = True
            if table.thaw(int(key)):
                assert isinstance(table.entries, dict)
        assert list(table.entries.items()) == list(model.items())
        assert list(table.entries.values()) == list(model.values())
        assert len(table.entries) == len(model)
        assert all(table.entries.get(key) is model.get(key) for key in "abcdefg")
        if not settling:
            assert list(captured.items()) == list(frozen.items())
    while not table.thaw(1):
        continue
    assert list(table.entries.items()) == list(model.items())


def test_what_is_not_there_cannot_be_had() -> None:
    table = Table()
    for key in "ab":
        table.add(entry(key, 1))
    table.freeze()
    table.remove("a")
    for key in "ax":
        with pytest.raises(KeyError):
            del table.entries[key]
        with pytest.raises(KeyError):
            table.entries[key]
    assert "a" not in table.entries
    assert list(table.entries) == ["b"]
