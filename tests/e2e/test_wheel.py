"""The wheel alone works: themes, profiles, queries and styles are inside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOADS_ALL = """
import memwatch, sys
from pathlib import Path
from memwatch.config.load import profile_names
from memwatch.config.locations import theme_dirs
assert Path(memwatch.__file__).is_relative_to(sys.argv[1]), memwatch.__file__
assert {"demo", "native"} <= set(profile_names())
assert {"memwatch", "plain16"} <= {p.stem for p in theme_dirs()[-1].glob("*.yaml")}
assert theme_dirs()[-1].is_relative_to(sys.argv[1])
assert list((Path(memwatch.__file__).parent / "ui").glob("*.tcss"))
"""


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel without network, and unpack it as an installer would."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", str(folder)]
    subprocess.run([*build, str(ROOT)], check=True, capture_output=True, timeout=120)
    (wheel,) = folder.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder / "site")
    return folder / "site"


def run(unpacked: Path, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"PYTHONPATH": str(unpacked), "MEMWATCH_HOME": str(home)}
    command = [sys.executable, *words]
    return subprocess.run(
        command, env=env, cwd=home, capture_output=True, text=True, timeout=100, check=False
    )


@pytest.mark.timeout(180)
def test_everything_that_is_no_code_is_inside(unpacked: Path, tmp_path: Path) -> None:
    done = run(unpacked, tmp_path, "-c", LOADS_ALL, str(unpacked))
    assert done.returncode == 0, done.stderr


@pytest.mark.timeout(180)
def test_the_demo_runs_from_the_wheel_away_from_the_checkout(
    unpacked: Path, tmp_path: Path
) -> None:
    words = ("-m", "memwatch", "demo", "--headless", "--seconds", "4", "--json")
    done = run(unpacked, tmp_path, *words)
    assert done.returncode == 0, done.stderr
    status = json.loads(done.stdout)
    assert status["run"]["profile"] == "demo"
    assert status["guard"]["recording"]
    assert not list((tmp_path / "runs").iterdir())
