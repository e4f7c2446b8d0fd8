"""Whether a checkpoint is whole, without loading it: by its mark, its parts, sizes and endings.

Marks are what a writer leaves last. Where none is known, a checkpoint is held against the former
one of the same kind, and against what its files say of their own length. Source: agent-formats
3.5, incidents G3 (zero-byte shards, the truncated newest folder taken as valid).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

import msgspec

from memwatch.ingest.stores.endings import CHECKED, Ending, ending
from memwatch.ingest.stores.names import WEIGHTS, final_name, is_temporary, shard_of, without_step
from memwatch.ingest.stores.walk import FileFacts, Found, read_file

_LEAST_COMPARED_BYTES = 4096
"""Smaller files are settings and counters, which may well halve."""
_MOST_ENDINGS = 64
_MOST_INDEX_BYTES = 8 << 20
_INDEX = ".index.json"


class _Habit(NamedTuple):
    mark: str
    signs: tuple[str, ...]
    """Any of them says that the writer is one who leaves the mark."""


_HABITS = (
    _Habit("trainer_state.json", (
        "training_args.bin", "optimizer.pt", "scheduler.pt", "rng_state*.pth", "config.json",
        "adapter_*", "model.safetensors", "model-*-of-*.safetensors", "pytorch_model*",
        "tokenizer*", "special_tokens_map.json", "generation_config.json",
    )),
    _Habit(".metadata", ("*.distcp",)),
    _Habit("random_states_0.pkl", ("optimizer.bin", "scheduler.bin")),
)  # fmt: skip
_MARKS = tuple(habit.mark for habit in _HABITS)
_ADAPTER = "adapter_*"
_FULL_WEIGHTS = ("model*.safetensors", "pytorch_model*", "consolidated*", "*.distcp", "*states.pt")


class Verdict(NamedTuple):
    """What was found out about one checkpoint."""

    whole: bool
    why: str = ""
    """What is missing; empty for a whole one."""
    mark_us: int | None = None
    """When the mark was left, where there is one."""
    proven: bool = False
    """By a mark, or by endings: not only by looking as the others do."""


class Subject(NamedTuple):
    """One checkpoint to be judged."""

    name: str
    folder: bool
    step: int | None
    temporary: bool
    found: Found
    tag_us: int | None = None
    """When the store's own `latest` was written to name this one."""
    untagged: bool = False
    """The store has such a `latest`, and it does not name this one yet."""


def judge(root: int, one: Subject, former: Found | None, former_step: int | None) -> Verdict:
    """Judge a checkpoint below the store's descriptor against the former whole one of its kind."""
    files = one.found.files
    mark_us = _mark_us(one)
    why = (
        _by_name(one)
        or (mark_us is None and _by_mark(one))
        or _unfinished(files)
        or _by_parts(root, one)
        or _by_size(one, former, former_step)
        or (mark_us is None and _by_names(one, former, former_step))
    )
    if why:
        return Verdict(False, why)
    wrong, proven = _by_endings(root, one)
    if wrong:
        return Verdict(False, wrong)
    # Of a folder nobody knows what is still to come, unless a mark ends it.
    return Verdict(True, "", mark_us, proven=mark_us is not None or (proven and not one.folder))


def is_adapter(files: Mapping[str, FileFacts]) -> bool:
    """Whether a checkpoint holds only what was trained on top of a model that lies elsewhere."""
    return any(fnmatchcase(name, _ADAPTER) for name in files) and not any(
        fnmatchcase(name, pattern) for name in files for pattern in _FULL_WEIGHTS
    )


def _by_name(one: Subject) -> str:
    if one.temporary:
        return "its name is a temporary one"
    if one.found.count == 0:
        return "it holds no file"
    return "" if one.found.bytes else "it is empty (0 bytes)"


def _mark_us(one: Subject) -> int | None:
    if not one.folder:
        return None
    for mark in _MARKS:
        facts = one.found.files.get(mark)
        if facts is not None and facts.bytes:
            return facts.changed_us
    return one.tag_us


def _by_mark(one: Subject) -> str:
    if one.untagged:
        return "`latest` does not name it yet"
    if one.folder:
        for mark, signs in _HABITS:
            if any(fnmatchcase(name, sign) for name in one.found.files for sign in signs):
                return f"no {mark}, which is written last"
    return ""


def _unfinished(files: Mapping[str, FileFacts]) -> str:
    for path in files:
        folder, slash, name = path.rpartition("/")
        if is_temporary(name) and folder + slash + final_name(name) not in files:
            return f"{name} in it is not finished"
    return ""


def _by_parts(root: int, one: Subject) -> str:
    files = one.found.files
    return _by_shards(files) or _by_ranks(files) or _by_index(root, one)


def _by_shards(files: Mapping[str, FileFacts]) -> str:
    """Look for gaps in `-00001-of-00003`."""
    seen: dict[tuple[str, int], set[int]] = defaultdict(set)
    for path in files:
        shard = shard_of(path)
        if shard is not None:
            seen[shard.whole, shard.parts].add(shard.number)
    for (whole, count), numbers in seen.items():
        least = 0 if 0 in numbers else 1
        there = len(numbers & set(range(least, min(count, len(files)) + least)))
        if there < count:
            return f"{there} of {count} parts of {whole}"
    return ""


def _by_ranks(files: Mapping[str, FileFacts]) -> str:
    for path in files:
        if (
            path.endswith(".distcp")
            and f"{path.rpartition('/')[0]}/.metadata".lstrip("/") not in files
        ):
            return "no .metadata, which is written last"
    return ""


class _Index(msgspec.Struct):
    weight_map: dict[str, str] = {}


def _by_index(root: int, one: Subject) -> str:
    """Look for the files that an index names."""
    files = one.found.files
    for path in (path for path in files if path.endswith(_INDEX)):
        text = read_file(root, _below(one, path), _MOST_INDEX_BYTES)
        if text is None:
            continue
        try:
            named = set(msgspec.json.decode(text, type=_Index).weight_map.values())
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return f"{path} is damaged"
        folder = path[: path.rfind("/") + 1]
        missing = sorted(name for name in named if folder + name not in files)
        if missing:
            return f"{len(named) - len(missing)} of {len(named)} files that {path} names"
    return ""


def _by_size(one: Subject, former: Found | None, former_step: int | None) -> str:
    """Look for files that are empty, or less than half of what they were before."""
    before = _comparable(former, former_step)
    for path, facts in one.found.files.items():
        if facts.bytes == 0 and path.lower().endswith(WEIGHTS):
            return f"{path} is empty"
        was = before.get(without_step(path, one.step))
        if was is None or not was.bytes:
            continue
        if facts.bytes == 0:
            return f"{path} is empty, it had {was.bytes} bytes before"
        if was.bytes >= _LEAST_COMPARED_BYTES and facts.bytes * 2 < was.bytes:
            return f"{path} has {facts.bytes} bytes, it had {was.bytes} before"
    return ""


def _by_names(one: Subject, former: Found | None, former_step: int | None) -> str:
    """Look for files that the former one had; only where no mark says that it is whole."""
    if not one.folder:
        return ""
    missing = _comparable(former, former_step).keys() - _comparable(one.found, one.step).keys()
    return f"{min(missing)} is missing, the former one has it" if missing else ""


def _comparable(found: Found | None, step: int | None) -> dict[str, FileFacts]:
    if found is None:
        return {}
    return {without_step(path, step): facts for path, facts in found.files.items()}


def _by_endings(root: int, one: Subject) -> tuple[str, bool]:
    """Return what is wrong with the end of a file, and whether all weights have a known end."""
    proven = False
    for path in _largest(one.found.files):
        found = ending(root, _below(one, path))
        if found not in {Ending.WHOLE, Ending.UNKNOWN}:
            return f"{path} {found}", False
        if found == Ending.UNKNOWN:
            return "", False
        proven = True
    return "", proven


def _largest(files: Mapping[str, FileFacts]) -> Iterator[str]:
    checked = [path for path in files if path.lower().endswith(CHECKED)]
    yield from sorted(checked, key=lambda path: -files[path].bytes)[:_MOST_ENDINGS]


def _below(one: Subject, path: str) -> str:
    return f"{one.name}/{path}" if one.folder else path
