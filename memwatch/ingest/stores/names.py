r"""Which names are checkpoints, by the habits of those who write them.

HF Trainer and accelerate (`checkpoint-500`), DeepSpeed (`global_step500`), Megatron
(`iter_0000500`), Lightning (`epoch=3-step=500.ckpt`, `last.ckpt`), Ray (`checkpoint_000010`),
plain PyTorch (`model_12.pt`), CrewAI (`<time>_<id>_p-<parent>.json`), shards of one
(`model-5-00001-of-00004.pt`). Source: agent-formats 3.5, 3.13.
"""

from __future__ import annotations

import re
from typing import NamedTuple

WEIGHTS = (".ckpt", ".pt", ".pth", ".safetensors", ".bin")
"""Suffixes of files that hold a state."""

_WORD = r"(?:checkpoint|ckpt|chkpt|global_?step|step|epoch|iter(?:ation)?|snapshot)"
_ROLE = r"(?:last|latest|best|final)"
_FOLDER = re.compile(
    rf"(?:^|[-_.]){_WORD}s?(?:[-_=.]?\d|[-_.]{_ROLE}\b)|^{_ROLE}[-_.]{_WORD}$", re.I
)
_FILE = re.compile(rf"\d|(?:^|[-_.]){_ROLE}(?:[-_.]|$)", re.I)
_SURE_FILE = re.compile(rf"(?:^|[-_.])(?:{_WORD}s?|state|model)(?:[-_=.]|\d|$)", re.I)
_SURE_FOLDER = re.compile(r"checkpoint|ckpt|chkpt|global_?step|\.orbax", re.I)
_ANYBODYS = (".bin", ".json")
_OTHER_JSON = re.compile(r"config|tokenizer|vocab|results?\b|metrics|\.index$", re.I)
_CREWAI = re.compile(r"\d[\dT:.Z-]{7,}_[\w-]{4,64}_p-([\w-]{1,64})$")
_SHARD = re.compile(r"(.*?)[-_.](\d{1,6})-of-(\d{1,6})(?=\D|$)(.*)", re.S)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_STEPS = tuple(
    re.compile(rf"{word}s?[-_=.]?(\d{{1,15}})(?!\d)", re.I)
    for word in ("step", "(?:checkpoint|ckpt|chkpt)", "iter(?:ation)?", "snapshot", "epoch")
)
_PLAIN_STEP = re.compile(r"(?<![\d.=])(\d{1,9})(?![\d.]*\d)")
_TEMP_HEAD = re.compile(r"^(?:\.|~|tmp[-_.])+", re.I)
_TEMP_PART = re.compile(r"^\.?tmp[-_]", re.I)
_TEMP_TAIL = re.compile(
    r"(?:[-_.](?:orbax-checkpoint-tmp|tmp\w*|temp|partial|incomplete|inprogress|part|writing)"
    r"(?:[-_.]\w*)?|~)+$",
    re.I,
)
_RANDOM_TAIL = re.compile(r"\.\w{6,10}$")


class EntryName(NamedTuple):
    """What the name of a checkpoint says."""

    style: str
    """The name with its numbers taken out: what checkpoints of one writer have in common."""
    step: int | None
    temporary: bool
    """It is renamed when it is whole, and so it is not."""
    parent: str | None = None
    sure: bool = True
    """Hardly anything but a checkpoint has such a name."""


class Shard(NamedTuple):
    """One of several files of a state."""

    whole: str
    """Name without the number: the same for all of them."""
    number: int
    parts: int


def entry_name(name: str, *, folder: bool) -> EntryName | None:
    """Return what a name in a store says, or None for one that is no checkpoint.

    >>> entry_name("checkpoint-500", folder=True)
    EntryName(style='checkpoint-#', step=500, temporary=False, parent=None, sure=True)
    >>> entry_name("epoch=3-step=500.ckpt", folder=False).step
    500
    >>> entry_name(".last.ckpt.tmp", folder=False)
    EntryName(style='last.ckpt', step=None, temporary=True, parent=None, sure=True)
    >>> entry_name("adapter_config.json", folder=False), entry_name("src2", folder=True)
    (None, None)
    """
    for bare in _bare(name):
        found = _folder_name(bare) if folder else _file_name(bare)
        if found is not None:
            return found._replace(temporary=bare != name)
    return None


def is_temporary(name: str) -> bool:
    """Whether a file within a checkpoint has a name that is given up once it is whole."""
    return _TEMP_PART.match(name) is not None or _TEMP_TAIL.search(name) is not None


def final_name(name: str) -> str:
    """Return the name that a temporary one will get."""
    return _TEMP_TAIL.sub("", _TEMP_HEAD.sub("", name, count=1))


def shard_of(name: str) -> Shard | None:
    """Return which part of what a file is, or None when its name counts no parts.

    >>> shard_of("model-00002-of-00003.safetensors")
    Shard(whole='model.safetensors', number=2, parts=3)
    """
    match = _SHARD.fullmatch(name)
    if match is None:
        return None
    head, number, count, tail = match.groups()
    return Shard(head + tail, int(number), int(count))


def without_step(name: str, step: int | None) -> str:
    """Return a name within a checkpoint so that it compares with that of another step."""
    return name if step is None or str(step) not in name else name.replace(str(step), "#")


def _bare(name: str) -> tuple[str, ...]:
    """Return the name, and what it would be without the marks of a temporary one."""
    bare = final_name(name)
    if bare == name:
        return (name,)
    return (bare, _RANDOM_TAIL.sub("", bare)) if bare else ()


def _folder_name(name: str) -> EntryName | None:
    weights = name.lower().endswith(WEIGHTS) and _FILE.search(name) is not None
    if not weights and _FOLDER.search(name) is None:
        return None
    sure = _SURE_FOLDER.search(name) is not None
    return EntryName(_NUMBER.sub("#", name), _step(name), temporary=False, sure=sure)


def _file_name(name: str) -> EntryName | None:
    stem, dot, suffix = name.rpartition(".")
    if not dot or not stem:
        return None
    style, kind = _NUMBER.sub("#", name), f".{suffix.lower()}"
    if not _FILE.search(stem) or (kind == ".json" and _OTHER_JSON.search(stem)):
        return None
    sure = kind not in _ANYBODYS or _SURE_FILE.search(stem) is not None
    if kind == ".json" and (crew := _CREWAI.fullmatch(stem)):
        return EntryName("#.json", None, temporary=False, parent=crew[1])
    if kind in WEIGHTS or kind == ".json":
        return EntryName(style, _step(stem), temporary=False, sure=sure)
    return None


def _step(stem: str) -> int | None:
    for pattern in _STEPS:
        if match := pattern.search(stem):
            return int(match[1])
    plain = _PLAIN_STEP.findall(stem)
    return int(plain[-1]) if plain else None
