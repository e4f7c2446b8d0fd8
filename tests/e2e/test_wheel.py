"""The wheel alone works: themes, profiles, queries and styles are inside."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import msgspec
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


EMBEDDED = """
import json, sys
from pathlib import Path
from memwatch.agent import Keep, Run, RunOptions, recover
path = Path(sys.argv[1])
for start in range(2):
    with Run.open(path, RunOptions(agent="embedded")) as run:
        with run.experiment("one", phase="exploration") as experiment:
            with run.tool("tool"):
                run.tiers["recent"].put(f"small/{start}", {"start": start})
            run.tiers["verified"].put(f"large/{start}", "x" * 50_000)
            experiment.status = "kept"
        run.safe_point()
        outcome = run.checkpoints.take("full" if start else "incremental")
        assert outcome.committed, outcome.reason
state, report = recover(path)
assert not report.lossy, report.lost
assert state["verified"]["large/0"] == "x" * 50_000
known = {name.split(".")[0] for name in sys.modules} - set(sys.stdlib_module_names)
print(json.dumps(sorted(known - {"__main__", "__mp_main__"})))
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
def test_an_agent_needs_msgspec_and_nothing_else(unpacked: Path, tmp_path: Path) -> None:
    """What `pip install --no-deps memwatch msgspec` leaves in an empty environment."""
    home = tmp_path / "venv"
    venv.create(home, with_pip=False)
    (site,) = home.glob("lib/python3.*/site-packages")
    shutil.copytree(Path(msgspec.__file__).parent, site / "msgspec")
    shutil.copytree(unpacked / "memwatch", site / "memwatch")
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(
        [home / "bin" / "python", "-c", EMBEDDED, str(tmp_path / "run")],
        env=env,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == ["memwatch", "msgspec"]


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
