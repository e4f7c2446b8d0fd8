"""`config.yaml`: how people are told, what the guard may cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from memwatch.config.settings import Channel, Heartbeat, Quiet, Settings, load_config
from memwatch.domain.errors import ConfigError


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "memwatch").mkdir()
    return tmp_path / "memwatch" / "config.yaml"


def test_no_file_and_an_empty_one_are_the_defaults(config: Path) -> None:
    assert load_config() == Settings()
    config.write_text("# nothing yet\nnotify:\nown:\npolicy:\n")
    assert load_config() == Settings()


def test_all_of_it(config: Path) -> None:
    config.write_text(
        "policy: {mode: act}\n"
        "notify:\n"
        "  least: warn\n"
        "  channels:\n"
        "  - {kind: ntfy, url: 'https://ntfy.example/topic', headers: {Authorization: Bearer x}}\n"
        "  - {kind: command, argv: [mail, -s, night, me], least: emergency}\n"
        "  - kind: bell\n"
        "  quiet: {from: 23:00, until: 07:30}\n"
        "  heartbeat: {url: 'http://127.0.0.1:9/beat', every_s: 30}\n"
        "own: {rss_bytes: 300_000_000}\n"
    )
    settings = load_config()
    assert settings.policy == {"mode": "act"}
    assert settings.own.rss_bytes == 300_000_000
    assert settings.own.cpu_percent == Settings().own.cpu_percent
    notify = settings.notify
    assert notify.least == "warn"
    assert notify.quiet == Quiet(from_="23:00", until="07:30", still="emergency")
    assert notify.heartbeat == Heartbeat(url="http://127.0.0.1:9/beat", every_s=30)
    assert notify.channels[1:] == (
        Channel(kind="command", argv=("mail", "-s", "night", "me"), least="emergency"),
        Channel(kind="bell"),
    )


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("notfy: {}", 1, "unknown key 'notfy'; did you mean 'notify'?"),
        ("thresholds: {}", 1, "unknown key 'thresholds'"),
        ("notify: {chanels: []}", 1, "did you mean 'channels'?"),
        ("notify:\n  channels:\n  - kind: nfty", 3, "did you mean 'ntfy'?"),
        ("notify:\n  channels:\n  - kind: bell\n  - knd: bell", 4, "did you mean 'kind'?"),
        ("notify: {channels: [{kind: command}]}", 1, "a command needs argv"),
        ("notify: {channels: [{kind: command, argv: rm -rf}]}", 1, "argv: Expected a list"),
        ("notify: {channels: [{kind: bell, argv: [x]}]}", 1, "argv is for a command"),
        ("notify: {channels: [{kind: bell, url: 'http://a'}]}", 1, "takes no url"),
        ("notify:\n  channels:\n  - kind: json\n    url: ftp://a", 4, "json needs a url, http"),
        (
            "notify: {channels: [{kind: json, url: 'http://a', headers: {a: \"x\\r\\nb: c\"}}]}",
            1,
            "no header can hold",
        ),
        ("notify: {least: loud}", 1, "'loud' is none of normal, warn"),
        ("notify: {quiet: {from: 25:00, until: 07:00}}", 1, "a time of day like 23:00"),
        ("notify: {quiet: {from: 23:00}}", 1, "missing required field `until`"),
        ("notify: {heartbeat: {url: file:///etc}}", 1, "must be http"),
        ("notify: {heartbeat: {url: 'http://a', every_s: 0}}", 1, "from 1 to 86400, not 0"),
        ("notify: {retries: -1}", 1, "from 0 to 100"),
        ("notify: {silent_after_s: .nan}", 1, "not nan"),
        ("own: {rss_bytes: 1000}", 1, "own.rss_bytes must be from 5e+07"),
        ("own: {cpu_percent: 0}", 1, "own.cpu_percent must be from 0.1"),
    ],
)
def test_what_cannot_be_meant_is_refused(config: Path, text: str, line: int, words: str) -> None:
    config.write_text(text + "\n")
    with pytest.raises(ConfigError) as caught:
        load_config()
    said = str(caught.value)
    assert said.startswith(f"{config} line {line}: "), said
    assert words in said


def test_the_example_of_the_readme_is_valid(config: Path) -> None:
    page = (Path(__file__).resolve().parents[2] / "README.md").read_text()
    config.write_text(page.split("<!-- notify -->")[1].split("```yaml\n")[1].split("```")[0])
    notify = load_config().notify
    assert [channel.kind for channel in notify.channels] == ["ntfy", "command"]
    assert notify.heartbeat is not None


def test_a_secret_is_never_in_an_error(config: Path) -> None:
    config.write_text("notify: {channels: [{kind: slack, url: 'hooks/T0/s3cret'}]}\n")
    with pytest.raises(ConfigError) as caught:
        load_config()
    assert "s3cret" not in str(caught.value)


def test_commands_in_a_file_that_all_can_write_are_not_run(config: Path) -> None:
    config.write_text("# mine\n")
    config.chmod(0o666)
    with pytest.raises(ConfigError, match="can be written by others"):
        load_config()
