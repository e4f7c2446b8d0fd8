"""A run that keeps values in dicts and writes nothing: what an agent would do without a library."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from memwatch.agent import Entry, Experiment, Source, Span

KEPT = {"recent": 15, "history": 20}


class NullTier:
    """Values by key; of some tiers only the newest."""

    def __init__(self, most: int | None, builders: Mapping[str, Callable[..., Any]]) -> None:
        self._most, self._builders = most, builders
        self._entries: dict[str, Entry] = {}

    def put(self, key: str, value: Any, *, source: Source | None = None, **_: Any) -> None:
        self._entries.pop(key, None)
        self._entries[key] = Entry(key=key, lsn=0, bytes=0, digest="", value=value, source=source)
        while self._most is not None and len(self._entries) > self._most:
            del self._entries[next(iter(self._entries))]

    def build(self, key: str, name: str, /, **args: Any) -> Any:
        value = self._builders[name](**args)
        self.put(key, value, source=Source(name, args))
        return value

    def get(self, key: str) -> Any:
        return self._entries[key].value

    def entry(self, key: str) -> Entry | None:
        return self._entries.get(key)

    def entries(self) -> list[Entry]:
        return list(self._entries.values())

    def clear(self, prefix: str = "") -> int:
        for key in [key for key in self._entries if key.startswith(prefix)]:
            del self._entries[key]
        return 0

    def __contains__(self, key: str) -> bool:
        return key in self._entries


class NullBlock:
    """Around anything: nothing is done."""

    def __init__(self, held: Any) -> None:
        self._held = held

    def __enter__(self) -> Any:
        return self._held

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None


class NullRun:
    """What the demo engine asks of a run."""

    mode = "running"

    def __init__(self, builders: Mapping[str, Callable[..., Any]]) -> None:
        names = ("workspace", "recent", "verified", "history", "search")
        self.tiers = {name: NullTier(KEPT.get(name), builders) for name in names}
        self.experiments = 0

    def experiment(self, title: str, phase: str) -> NullBlock:
        self.experiments += 1
        return NullBlock(Experiment(self.experiments, title, phase))

    def tool(self, name: str) -> NullBlock:
        return NullBlock(Span("t", name))

    def safe_point(self) -> None:
        return None

    def error(self, kind: str, message: str) -> None:
        return None

    def record(self, kind: str, members: dict[str, Any]) -> int:
        return 0

    def close(self) -> None:
        return None
