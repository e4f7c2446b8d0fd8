"""Whether a checkpoint is whole, without loading it: by its mark, its parts, sizes and endings.

Marks are what a writer leaves last. Where none is known, a checkpoint is held against the former
one of the same kind, and against what its files say of their own length. Source: agent-formats
3.5, incidents G3 (zero-byte shards, the truncated newest folder taken as valid).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

import msgspec

from memwatch.ingest.stores.endings import CHECKED, Ending, ending
from memwatch.ingest.stores.names import WEIGHTS, final_name, is_temporary, shard_of, without_step
from memwatch.ingest.stores.top import Entry
from memwatch.ingest.stores.walk import FileFacts, file_facts, read_file

_LEAST_COMPARED_BYTES = 4096
"""Smaller files are settings and counters, which may well halve."""
_MOST_ENDINGS = 64
_MOST_INDEX_BYTES = 8 << 20
_INDEX = ".index.json"
_LEAST_ALIKE = 3


class _Habit(NamedTuple):
    mark: str
    signs: tuple[str, ...]
    """Any of them says that the writer is one who leaves the mark."""
    hints: tuple[str, ...] = ()
    """Likewise, unless several checkpoints lie there and none of them has it."""


_HABITS = (
    _Habit(
        "trainer_state.json",
        ("training_args.bin", "optimizer.pt", "scheduler.pt", "rng_state*.pth"),
        (
            "config.json", "adapter_*", "model.safetensors", "model-*-of-*.safetensors",
            "pytorch_model*", "tokenizer*", "special_tokens_map.json", "generation_config.json",
        ),
    ),
    _Habit(".metadata", ("*.distcp",)),
    _Habit("random_states_0.pkl", ("optimizer.bin", "scheduler.bin")),
)  # fmt: skip
_ADAPTER = ("adapter_*",)
_FULL_WEIGHTS = ("model*.safetensors", "pytorch_model*", "consolidated*", "*.distcp", "*states.pt")

Files = Mapping[str, FileFacts]


class Verdict(NamedTuple):
    """What was found out about one checkpoint."""

    whole: bool
    why: str = ""
    """What is missing; empty for a whole one."""
    mark_us: int | None = None
    """When the mark was left, where there is one."""
    proven: bool = False
    """By a mark, or by its ending: not only by looking as the others do."""


class Judge:
    """Judges one checkpoint, against the former whole one of its kind where there is one."""

    def __init__(self, root: int, one: Entry, former: Entry | None) -> None:
        self._root = root
        self._one = one
        self._files = one.found.files
        self._former: Files = former.found.files if former else {}
        self._former_step = former.name.step if former else None
        self._before = _comparable(former) if former else {}
        self._cut = one.found.count > len(self._files)

    def verdict(
        self, tag_us: int | None = None, *, untagged: bool = False, markless: bool = False
    ) -> Verdict:
        """Return whether it is whole.

        `tag_us` is when the store's own tag was written to name it; `untagged`: there is a tag, and
        it does not name it yet; `markless`: its kind was never seen with a mark.
        """
        mark_us = self._mark_us() or tag_us
        unmarked = mark_us is None
        why = (
            self._nothing()
            or ("`latest` does not name it yet" if untagged else "")
            or (unmarked and self._lacks_mark(markless=markless))
            or _unfinished(self._files)
            or ("" if self._cut else self._lacks_parts())
            or self._shrunk()
            or (unmarked and not self._cut and self._lacks_files())
        )
        if why:
            return Verdict(False, why)
        wrong, proven = self._endings()
        if wrong:
            return Verdict(False, wrong)
        # Of a folder nobody knows what is still to come, unless a mark ends it.
        return Verdict(True, "", mark_us, proven or not unmarked)

    def _nothing(self) -> str:
        if self._one.name.temporary:
            return "its name is a temporary one"
        if not self._files:
            return "it holds no file"
        return "" if self._one.found.bytes else "it is empty (0 bytes)"

    def _mark_us(self) -> int | None:
        for habit in _HABITS if self._one.folder else ():
            mark = self._files.get(habit.mark)
            if mark is None and self._cut:
                mark = file_facts(self._root, self._below(habit.mark))
            if mark is not None and mark.bytes:
                return mark.changed_us
        return None

    def _lacks_mark(self, *, markless: bool) -> str:
        if not self._one.folder or self._one.name.step is None:
            return ""
        for habit in _HABITS:
            if _any(self._files, habit.signs) or (not markless and _any(self._files, habit.hints)):
                return f"no {habit.mark}, which is written last"
        return ""

    def _lacks_parts(self) -> str:
        return (
            _missing_shards(self._files)
            or _missing_metadata(self._files)
            or self._missing_by_index()
        )

    def _missing_by_index(self) -> str:
        """Look for the files that an index names."""
        for path in (path for path in self._files if path.endswith(_INDEX)):
            text = read_file(self._root, self._below(path), _MOST_INDEX_BYTES)
            if text is None:
                continue
            try:
                named = set(msgspec.json.decode(text, type=_Index).weight_map.values())
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                return f"{path} is damaged"
            folder = path[: path.rfind("/") + 1]
            there = sum(folder + name in self._files for name in named)
            if there < len(named):
                return f"{there} of {len(named)} files that {path} names"
        return ""

    def _shrunk(self) -> str:
        """Look for files that are empty, or less than half of what they were before."""
        for path, facts in self._files.items():
            if facts.bytes == 0 and path.lower().endswith(WEIGHTS):
                return f"{path} is empty"
            was = self._former.get(path) or self._before.get(
                without_step(path, self._one.name.step)
            )
            if was is None or facts.bytes * 2 >= was.bytes:
                continue
            if facts.bytes == 0 or was.bytes >= _LEAST_COMPARED_BYTES:
                return f"{path} has {facts.bytes} bytes, it had {was.bytes} before"
        return ""

    def _lacks_files(self) -> str:
        """Look for files that the former one had."""
        if not self._one.folder:
            return ""
        # A number in a name may be the step of one and the rank of a process in the next.
        alike = _comparable(self._one).keys() | self._files.keys()
        missing = [
            path
            for path in self._former
            if path not in alike and without_step(path, self._former_step) not in alike
        ]
        return f"{min(missing)} is missing, the former one has it" if missing else ""

    def _endings(self) -> tuple[str, bool]:
        """Return what is wrong with the end of a file, and whether the ends prove all of it."""
        checked = [path for path in self._files if path.lower().endswith(CHECKED)]
        checked.sort(key=lambda path: -self._files[path].bytes)
        ends = set()
        for path in checked[:_MOST_ENDINGS]:
            end = ending(self._root, self._below(path))
            if end not in {Ending.WHOLE, Ending.UNKNOWN}:
                return f"{path} {end}", False
            ends.add(end)
        return "", ends == {Ending.WHOLE} and not self._one.folder

    def _below(self, path: str) -> str:
        return f"{self._one.names[0]}/{path}" if self._one.folder else path


def is_adapter(files: Files) -> bool:
    """Whether a checkpoint holds only what was trained on top of a model that lies elsewhere."""
    return _any(files, _ADAPTER) and not _any(files, _FULL_WEIGHTS)


def markless_styles(entries: list[Entry]) -> frozenset[str]:
    """Return the kinds of which several are alike and none has a mark: their writer leaves none."""
    alike: dict[tuple[str, frozenset[str]], int] = defaultdict(int)
    marked = set()
    for entry in entries:
        style = entry.name.style
        alike[style, frozenset(_comparable(entry))] += 1
        if any(habit.mark in entry.found.files for habit in _HABITS):
            marked.add(style)
    return (
        frozenset(style for (style, _), number in alike.items() if number >= _LEAST_ALIKE) - marked
    )


class _Index(msgspec.Struct):
    weight_map: dict[str, str] = {}


def _unfinished(files: Files) -> str:
    for path in files:
        folder, slash, name = path.rpartition("/")
        if is_temporary(name) and folder + slash + final_name(name) not in files:
            return f"{path} is not finished"
    return ""


def _missing_shards(files: Files) -> str:
    """Look for gaps in `-00001-of-00003`; some count from 0."""
    seen: dict[tuple[str, int], set[int]] = defaultdict(set)
    for path in files:
        shard = shard_of(path)
        if shard is not None:
            seen[shard.whole, shard.parts].add(shard.number)
    for (whole, parts), numbers in seen.items():
        first = 0 if 0 in numbers else 1
        there = sum(first <= number < first + parts for number in numbers)
        if there < parts:
            return f"{there} of {parts} parts of {whole}"
    return ""


def _missing_metadata(files: Files) -> str:
    """Look for the mark of a distributed checkpoint, which lies beside its files, at any depth."""
    for path in files:
        if path.endswith(".distcp") and path[: path.rfind("/") + 1] + ".metadata" not in files:
            return f"no .metadata beside {path}, which is written last"
    return ""


def _comparable(entry: Entry) -> dict[str, FileFacts]:
    step = entry.name.step
    return {without_step(path, step): facts for path, facts in entry.found.files.items()}


def _any(files: Files, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for name in files for pattern in patterns)
