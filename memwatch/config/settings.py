"""The user's settings (`config.yaml`): policy, how they are told, what we ourselves may cost."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal

from msgspec import Struct, field

from memwatch.config.check import Contradiction
from memwatch.config.locations import config_dir
from memwatch.config.shape import check_keys, converted, sections
from memwatch.config.yaml_file import line_of, read_tree
from memwatch.domain.errors import ConfigError
from memwatch.domain.level import Level
from memwatch.domain.text import inert

CONFIG_FILE = "config.yaml"

ChannelKind = Literal["command", "ntfy", "slack", "json", "bell", "desktop"]
_WEB = ("ntfy", "slack", "json")
_URL = re.compile(r"https?://[^\s/]+\S*")
_TIME = re.compile(r"([01]\d|2[0-3]):[0-5]\d")


class Channel(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One way to tell a person."""

    kind: ChannelKind
    url: str = ""
    """Of ntfy (with the topic), slack and json. It may hold a secret: never shown or logged."""
    argv: tuple[str, ...] = ()
    """Of a command: program and arguments, no shell."""
    headers: dict[str, str] = {}
    """Sent along; they may hold secrets, too."""
    least: Level | None = None
    """The lowest level it is told of; None: that of all channels."""


class Quiet(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Hours of the local day in which only what is grave is told."""

    from_: str = field(name="from")
    """hh:mm"""
    until: str
    """hh:mm; before `from`, it is of the next day."""
    still: Level = "emergency"
    """The lowest level that is told all the same."""


class Heartbeat(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Called while the guard lives, so that others notice when it does not."""

    url: str
    every_s: float = 60.0


class NotifySettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whom to tell what."""

    channels: tuple[Channel, ...] = ()
    least: Level = "intervene"
    quiet: Quiet | None = None
    silent_after_s: float = 300.0
    """A run without a record for so long is told of: the dead man's alert."""
    heartbeat: Heartbeat | None = None
    retries: int = 5


class Budget(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the guard itself may cost."""

    rss_bytes: int = 200_000_000
    cpu_percent: float = 10.0
    """Of one core."""


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All of `config.yaml`."""

    policy: dict[str, Any] = {}
    """One layer of the policy; read where all of them come together (`policy_load`)."""
    notify: NotifySettings = NotifySettings()
    own: Budget = Budget()


def load_config() -> Settings:
    """Return the user's settings, defaults where there is no file; raises ConfigError."""
    tree = read_tree(config_dir() / CONFIG_FILE, "user", may_be_empty=True)
    if tree is None:
        return Settings()
    check_keys(tree.root, Settings, tree.where)
    settings = converted(sections(tree.values, Settings), Settings, tree)
    for wrong in _wrongs(settings):
        line = line_of(tree.root, f".{wrong.key}")
        raise ConfigError(f"{tree.where} line {line}: {inert(wrong.text, 200)}")
    return settings


def _wrongs(settings: Settings) -> Iterator[Contradiction]:
    notify, own = settings.notify, settings.own
    for place, channel in enumerate(notify.channels):
        yield from _of_channel(f"notify.channels[{place}]", channel)
    if notify.quiet is not None:
        for name, value in (("from", notify.quiet.from_), ("until", notify.quiet.until)):
            if not _TIME.fullmatch(value):
                key = f"notify.quiet.{name}"
                yield Contradiction(key, f"{key} is a time of day like 23:00, not {value!r}")
    if notify.heartbeat is not None and not _URL.fullmatch(notify.heartbeat.url):
        yield Contradiction("notify.heartbeat.url", "notify.heartbeat.url must be http(s)://…")
    for key, figure, least, most in (
        ("notify.heartbeat.every_s", _beat_s(notify), 1, 86_400),
        ("notify.silent_after_s", notify.silent_after_s, 1, 1e9),
        ("notify.retries", notify.retries, 0, 100),
        ("own.rss_bytes", own.rss_bytes, 50_000_000, 1e15),  # the least that Python needs
        ("own.cpu_percent", own.cpu_percent, 0.1, 10_000),
    ):
        if not least <= figure <= most:  # nor is nan
            yield Contradiction(key, f"{key} must be from {least:g} to {most:g}, not {figure:g}")


def _beat_s(notify: NotifySettings) -> float:
    return Heartbeat(url="").every_s if notify.heartbeat is None else notify.heartbeat.every_s


def _of_channel(key: str, channel: Channel) -> Iterator[Contradiction]:
    kind, web = channel.kind, channel.kind in _WEB
    if kind == "command" and not (channel.argv and channel.argv[0]):
        yield Contradiction(key, f"{key}: a command needs argv, a list: [program, argument, …]")
    if kind != "command" and channel.argv:
        yield Contradiction(f"{key}.argv", f"{key}.argv is for a command, not for {kind}")
    if web and not _URL.fullmatch(channel.url):
        # The url itself may be a secret.
        yield Contradiction(f"{key}.url", f"{key}: {kind} needs a url, http(s)://…")
    if not web and (channel.url or channel.headers):
        yield Contradiction(key, f"{key}: {kind} takes no url and no headers")
    for name, value in channel.headers.items():
        if re.search(r"[\r\n\0:]", name) or re.search(r"[\r\n\0]", value) or not name:
            yield Contradiction(f"{key}.headers", f"{key}.headers holds what no header can hold")
