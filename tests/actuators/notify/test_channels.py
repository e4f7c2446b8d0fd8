"""What each kind of channel is sent, and that neither addresses nor headers come back in errors."""

from __future__ import annotations

import json

import pytest

from memwatch.actuators.notify.channels import http_request, message_of
from memwatch.actuators.notify.deliver import CommandLine, HttpRequest
from memwatch.actuators.notify.notice import WIDTH, Notice
from memwatch.config.settings import Channel, ChannelKind
from memwatch.domain.errors import ConfigError

URL = "https://hooks.test/s3cret"
RAISED = Notice(
    key="memory",
    state="raised",
    severity="error",
    text="memory emergency: <!channel> & `x`",
    run="run-1",
    host="gpu01",
    at_us=7,
)
CLEARED = Notice(
    key="memory", state="cleared", severity="error", text="m", run="r", lasted_us=125_000_000
)


def request(kind: ChannelKind, notice: Notice = RAISED, **headers: str) -> HttpRequest:
    found = message_of(Channel(kind=kind, url=URL, headers=headers), notice)
    assert isinstance(found, HttpRequest)
    assert found.url == URL
    assert found.headers["user-agent"].startswith("memwatch/")
    return found


def test_ntfy_takes_the_line_as_text_and_a_priority() -> None:
    found = request("ntfy", Authorization="Bearer t")
    assert found.body == b"memwatch: run-1: memory emergency: <!channel> & `x`"
    assert (found.headers["priority"], found.headers["tags"]) == ("5", "warning")
    assert found.headers["authorization"] == "Bearer t"
    cleared = request("ntfy", CLEARED)
    assert cleared.body == b"memwatch: all clear after 2m05s: r: m"
    assert cleared.headers["priority"] == "3"


def test_settings_win_over_our_headers() -> None:
    channel = Channel(kind="ntfy", url=URL, headers={"PRIORITY": "1", "User-Agent": "memwatch/x"})
    found = message_of(channel, RAISED)
    assert isinstance(found, HttpRequest)
    assert found.headers["priority"] == "1"
    assert found.headers["user-agent"] == "memwatch/x"


def test_slack_takes_nothing_for_a_mention() -> None:
    body = json.loads(request("slack").body or b"")
    assert body == {"text": "memwatch: run-1: memory emergency: &lt;!channel&gt; &amp; `x`"}


def test_json_holds_all_members() -> None:
    found = request("json")
    assert json.loads(found.body or b"") == {
        "app": "memwatch",
        "line": RAISED.line,
        "key": "memory",
        "state": "raised",
        "severity": "error",
        "text": RAISED.text,
        "run": "run-1",
        "host": "gpu01",
        "at_us": 7,
        "lasted_us": None,
    }
    assert found.headers["content-type"] == "application/json"


def test_the_desktop_takes_nothing_for_markup_or_an_option() -> None:
    found = message_of(Channel(kind="desktop"), RAISED)
    assert isinstance(found, CommandLine)
    assert found.argv[0] == "notify-send"
    assert "--urgency=critical" in found.argv
    assert found.argv[-3:-1] == ("--", "memwatch")
    assert "<" not in found.argv[-1]


@pytest.mark.parametrize("text", ["a\nb", "\x1b[31m", "x" * 9999, "\u202e", "\udce9"])
def test_a_line_is_one_inert_line(text: str) -> None:
    line = Notice(key="k", state="told", severity="notice", text=text, run="r\n-x").line
    assert line.startswith("memwatch: r -x: ")
    assert line.isprintable()
    assert len(line) <= WIDTH
    line.encode()


@pytest.mark.parametrize(
    ("url", "headers"),
    [
        ("file:///s3cret", {}),
        ("ftp://h/s3cret", {}),
        ("//h/s3cret", {}),
        ("http:///s3cret", {}),
        ("http://h/s3\ncret", {}),
        ("http://h/s3cret é", {}),
        ("http://h:99999/s3cret", {}),
        ("http://[::1/s3cret", {}),
        ("http://s3cret:s3cret@h/", {}),
        (URL, {"x": "s3cret\r\ny: z"}),
        (URL, {"x y": "s3cret"}),
        (URL, {"": "s3cret"}),
        (URL, {"x": "s3crét"}),
    ],
)
def test_what_is_refused_is_not_repeated(url: str, headers: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as caught:
        http_request(url, b"", headers)
    assert "s3" not in str(caught.value)


@pytest.mark.parametrize("kind", ["bell", "command"])
def test_what_cannot_be_sent_is_refused(kind: ChannelKind) -> None:
    with pytest.raises(ConfigError):
        message_of(Channel(kind=kind), RAISED)
