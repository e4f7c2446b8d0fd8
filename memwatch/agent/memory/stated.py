"""What an agent states of an entry or of a tier is checked where it is said.

A record that holds a wrong figure is refused by every recovery, with all that lies behind it: so it
must never be written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from math import isfinite
from typing import Any, Final, get_args

from memwatch.agent.memory.entry import Cause, How
from memwatch.domain.errors import UnkeepableError, UsageError
from memwatch.domain.policy import Keep
from memwatch.domain.record import LARGEST

MAX_KEY_BYTES: Final = 4_000
"""Of a key in UTF-8: it stands in each record of its entry."""

LONGEST_S: Final = LARGEST / 1e6
"""A time to live in microseconds must fit the records."""


def check_key(key: Any) -> None:
    """Raise TypeError for what is no text, UnkeepableError for one that a log cannot hold."""
    if type(key) is not str:
        raise TypeError(f"a key is text, not {type(key).__name__}")
    if key.isascii():
        size = len(key)
    else:
        try:
            size = len(key.encode())
        except UnicodeEncodeError:
            raise UnkeepableError(
                f"the key {key!r:.80} holds half of a surrogate pair, which UTF-8 cannot hold"
            ) from None
    if size > MAX_KEY_BYTES:
        raise UnkeepableError(
            f"the key {key!r:.40}… has {size} bytes, over the {MAX_KEY_BYTES} of a key: "
            "put long text into the value"
        )


def check_share(what: str, value: Any) -> None:
    """Raise UnkeepableError unless a value is a number from 0 to 1."""
    if type(value) not in (int, float) or not 0 <= value <= 1:
        raise UnkeepableError(f"{what} is a number from 0 to 1, not {value!r:.40}")


def check_count(what: str, value: Any, least: int = 0) -> None:
    """Raise UnkeepableError unless a value is an integer of believable size."""
    if type(value) is not int or not least <= value <= LARGEST:
        raise UnkeepableError(f"{what} is a whole number from {least}, not {value!r:.40}")


def check_seconds(what: str, value: Any) -> None:
    """Raise UnkeepableError unless a value is a time, in seconds, that can pass."""
    if type(value) not in (int, float) or not isfinite(value) or not 0 <= value <= LONGEST_S:
        raise UnkeepableError(f"{what} is a time in seconds, not {value!r:.40}")


def check_stated(tokens: Any, importance: Any, experiment: Any, ttl_s: Any, *, key: Any) -> None:
    """Raise UnkeepableError where an entry would be described by what is no such figure."""
    check_key(key)
    if tokens is not None:
        check_count("tokens", tokens)
    if importance is not None:
        check_share("importance", importance)
    if experiment is not None:
        check_count("experiment", experiment)
    if ttl_s is not None:
        check_seconds("ttl_s", ttl_s)


def check_keep(tier: str, keep: Keep) -> None:
    """Raise UsageError for a figure of a tier that means nothing."""
    what = f"Keep of tier {tier}"
    try:
        for name in ("count", "experiments"):
            if (number := getattr(keep, name)) is not None:
                check_count(f"{what}: {name}", number, 1)
        if keep.ttl_s is not None:
            check_seconds(f"{what}: ttl_s", keep.ttl_s)
        if keep.bytes is not None:
            check_count(f"{what}: bytes", keep.bytes)
        check_share(f"{what}: importance", keep.importance)
    except UnkeepableError as error:
        raise UsageError(str(error)) from None


def check_tier(tier: Any, known: Collection[str]) -> None:
    """Raise UsageError for a tier that there is not."""
    if type(tier) is not str or tier not in known:
        raise UsageError(f"there is no tier {tier!r:.40}: there are {', '.join(known)}")


def check_purge(
    tier: Any, how: Any, target_bytes: Any, cause: Any, *, known: Collection[str]
) -> None:
    """Raise UsageError for a purge that cannot be meant, `known` being the tiers."""
    if tier is not None:
        check_tier(tier, known)
    for name, value, words in (("how", how, get_args(How)), ("cause", cause, get_args(Cause))):
        if value not in words and not (value is None and name == "how"):
            raise UsageError(f"{name} is one of {', '.join(words)}, not {value!r:.40}")
    if target_bytes is not None:
        try:
            check_count("target_bytes", target_bytes)
        except UnkeepableError as error:
            raise UsageError(str(error)) from None


def check_keys(keys: Any) -> frozenset[str]:
    """Return the keys that are named; raises UsageError for what is no list of keys."""
    if isinstance(keys, Iterable) and not isinstance(keys, str):  # no list of its letters
        only = tuple(keys)
        if all(isinstance(key, str) for key in only):
            return frozenset(only)
    raise UsageError(f"keys is a list of keys, not {keys!r:.60}")
