"""What gets loaded is looked at in a fresh interpreter: contracts see only statements."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = frozenset({"duckdb", "textual", "rich", "plotext", "psutil", "watchfiles", "yaml"})
PURE = (
    "memwatch.domain.snapshot",
    "memwatch.wal.stream",
    "memwatch.wal.manifest",
    "memwatch.analytics.run_state",
    "memwatch.analytics.growth",
    "memwatch.analytics.series",
    "memwatch.engine.standing",
    "memwatch.engine.tick",
)


def loaded_by(statement: str) -> set[str]:
    code = f"{statement}\nimport sys; print(*{{n.split('.')[0] for n in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stdout.split())


@pytest.mark.parametrize("module", PURE)
def test_core_loads_no_third_party_but_msgspec(module: str) -> None:
    assert not loaded_by(f"import {module}") & (HEAVY | {"platformdirs"})


def test_agent_library_loads_stdlib_and_msgspec_only() -> None:
    extra = loaded_by("import memwatch.agent") - loaded_by("import msgspec")
    third = extra - set(sys.stdlib_module_names)
    assert {name for name in third if not name.startswith("_")} <= {"memwatch", "backports"}


def test_status_on_a_guarded_run_loads_stdlib_only() -> None:
    loaded = loaded_by("import memwatch.cli.status, memwatch.cli.status_text")
    assert not loaded & (HEAVY | {"msgspec", "asyncio"})


@pytest.mark.parametrize("command", ["guard", "ls", "status", "inspect", "demo", "ctl", "tonight"])
def test_commands_that_draw_nothing_load_no_screen(command: str) -> None:
    loaded = loaded_by(f"import memwatch.cli.{command}")
    assert not loaded & {"textual", "rich", "plotext"}


@pytest.mark.parametrize("command", ["ctl", "tonight", "guard"])
def test_what_talks_to_a_guard_loads_no_database(command: str) -> None:
    assert "duckdb" not in loaded_by(f"import memwatch.cli.{command}")


def test_a_request_costs_its_start_up_only() -> None:
    loaded = loaded_by("import memwatch.cli.ctl")
    assert not loaded & {*HEAVY, "asyncio", "platformdirs"}


def test_the_viewer_loads_no_database() -> None:
    loaded = loaded_by(
        "import memwatch.ui.app, memwatch.runtime.protocol.client, memwatch.runtime.runs.attach"
    )
    assert "duckdb" not in loaded
    assert "plotext" not in loaded, "charts are loaded after the first screen"
