"""Files stay small, tops stay tidy, documents name what exists."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from memwatch.cli.entry import COMMANDS, usage

ROOT = Path(__file__).resolve().parents[2]
LONGEST = 350


def sources() -> list[Path]:
    return sorted([*ROOT.glob("memwatch/**/*.py"), *ROOT.glob("tests/**/*.py")])


@pytest.mark.parametrize("path", sources(), ids=lambda p: str(p.relative_to(ROOT)))
def test_file_has_room_for_one_job_only(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= LONGEST


def test_top_level_holds_what_it_should() -> None:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    tops = {line.split("/")[0] for line in listed.stdout.splitlines()}
    allowed = {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "memwatch", "themes"}
    allowed |= {"tests", "sample_runs"}
    assert {top for top in tops if not top.startswith(".")} <= allowed


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_command_is_documented(command: str) -> None:
    assert f"  {command} " in usage()
    assert f"`memwatch {command}" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("mark", ["run", "tests"])
def test_readme_command_is_one_line(mark: str) -> None:
    text = (ROOT / "README.md").read_text()
    block = text.split(f"<!-- {mark} -->")[1].split("```sh\n")[1].split("```")[0]
    assert len(block.strip().splitlines()) == 1
