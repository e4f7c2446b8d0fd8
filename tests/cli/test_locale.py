"""ASCII where a locale without Unicode was asked for; the interpreter hides that it was."""

from __future__ import annotations

import pytest

from memwatch.cli.dashboard import _ascii_locale


@pytest.mark.parametrize(
    ("lc_all", "lang", "ascii_only"),
    [
        ("C", "en_GB.UTF-8", True),
        (None, "POSIX", True),
        (None, "C.UTF-8", False),
        ("de_DE.utf8", "C", False),
        (None, None, False),
    ],
)
def test_only_what_a_person_set_counts(
    monkeypatch: pytest.MonkeyPatch, lc_all: str | None, lang: str | None, ascii_only: bool
) -> None:
    for name, value in (("LC_ALL", lc_all), ("LANG", lang)):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    assert _ascii_locale() is ascii_only
