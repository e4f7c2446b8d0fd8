"""A notice as each kind of channel wants it. Pure.

    command   the settings' arguments and the line as one more; key, state, severity in MEMWATCH_*
    ntfy      the line as text, with title, priority and tag in headers
    slack     {"text": line}, with the characters of its markup escaped
    json      all members of the notice as one object
    desktop   notify-send

Texts come from logs, so each is one line without control characters, and what a channel would
take for markup or for a mention is escaped. Source: D7.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

import msgspec

from memwatch import __version__
from memwatch.actuators.notify.deliver import CommandLine, HttpRequest
from memwatch.actuators.notify.notice import Notice
from memwatch.config.settings import Channel
from memwatch.domain.errors import ConfigError

_PRIORITY: Final = {"notice": "3", "warning": "4", "error": "5"}
_URGENCY: Final = {"notice": "low", "warning": "normal", "error": "critical"}
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""Name of a header, as RFC 9110 has it."""


def message_of(channel: Channel, notice: Notice) -> HttpRequest | CommandLine:
    """Return what is to be delivered; raises ConfigError, which never names address or header."""
    if channel.kind == "command":
        if not channel.argv:
            raise ConfigError("a command channel needs argv, a list of arguments")
        return CommandLine(argv=(*channel.argv, notice.line), env=_environment(notice))
    if channel.kind == "desktop":
        urgency = _URGENCY["notice" if notice.state == "cleared" else notice.severity]
        argv = ("notify-send", "--app-name=memwatch", f"--urgency={urgency}", "--")
        return CommandLine(argv=(*argv, "memwatch", _escaped(notice.line)))
    if channel.kind == "ntfy":
        return http_request(channel.url, notice.line.encode(), _ntfy(notice), channel.headers)
    if channel.kind == "slack":
        body = msgspec.json.encode({"text": _escaped(notice.line)})
        return http_request(channel.url, body, _JSON, channel.headers)
    if channel.kind == "json":
        return http_request(channel.url, _object(notice), _JSON, channel.headers)
    raise ConfigError("a bell is rung by viewers, nothing is sent")


def http_request(
    url: str, body: bytes | None, headers: Mapping[str, str], more: Mapping[str, str] = {}
) -> HttpRequest:
    """Return a request once address and headers are known to be plain; raises ConfigError.

    `more` wins over `headers`, whatever the case of its names.
    """
    _check_address(url)
    named = {"user-agent": f"memwatch/{__version__}"}
    for name, value in (*headers.items(), *more.items()):
        if not (_TOKEN.fullmatch(name) and value.isascii() and value.isprintable()):
            raise ConfigError("a header of a channel is not plain ASCII on one line")
        named[name.lower()] = value
    return HttpRequest(url=url, body=body, headers=named)


def _check_address(url: str) -> None:
    try:
        parts = urlsplit(url)
        plain = url.isascii() and url.isprintable() and " " not in url and parts.port != 0
    except ValueError:
        parts, plain = None, False
    if parts is None or not plain or parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError("the address of a channel must be a plain http:// or https:// one")
    if parts.username is not None:
        raise ConfigError("the address of a channel holds a user: put it into headers instead")


_JSON: Final = {"content-type": "application/json"}


def _ntfy(notice: Notice) -> dict[str, str]:
    if notice.state in ("cleared", "test"):
        return {"title": f"memwatch: {notice.state}", "priority": "3", "tags": "white_check_mark"}
    priority = _PRIORITY[notice.severity]
    return {"title": "memwatch", "priority": priority, "tags": "warning"}


def _object(notice: Notice) -> bytes:
    return msgspec.json.encode({"app": "memwatch", "line": notice.line, **_members(notice)})


def _members(notice: Notice) -> dict[str, object]:
    members: dict[str, object] = msgspec.to_builtins(notice)
    return members


def _environment(notice: Notice) -> dict[str, str]:
    return {
        "MEMWATCH_KEY": notice.key,
        "MEMWATCH_STATE": notice.state,
        "MEMWATCH_SEVERITY": notice.severity,
    }


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
