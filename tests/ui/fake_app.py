"""The dashboard on a made-up run, to look at by hand: `python -m tests.ui.fake_app`."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from msgspec.structs import replace

from memwatch.domain.clock import SystemClock
from memwatch.domain.snapshot import Snapshot
from memwatch.ui.app import DashboardApp
from tests.ui import night
from tests.ui.fake_session import FakeRun

NIGHTS: dict[str, Callable[[Snapshot], Snapshot]] = {
    "calm": lambda snapshot: snapshot,
    "bad": night.bad,
    "teaching": night.teaching,
    "over": night.over,
    "store": night.store,
    "asking": night.asking,
    "first": lambda snapshot: replace(
        night.in_mode(snapshot, "shadow", asked=False, will="WILL NOT ACT (shadow)"),
        run=replace(snapshot.run, agent="searcher", profile="engine"),
    ),
}


def main() -> None:
    """Open it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--theme", default="auto")
    parser.add_argument("--ascii", action="store_true")
    parser.add_argument("--view", action="store_true")
    parser.add_argument("--refresh", type=float, default=1.0)
    parser.add_argument("--night", choices=NIGHTS, default="calm")
    options = parser.parse_args()
    run = FakeRun(SystemClock(), gap_s=(60.0, 75.0), change=NIGHTS[options.night])
    app = DashboardApp(
        run.connect,
        theme=options.theme,
        ascii_only=options.ascii,
        view_only=options.view,
        target="demo",
        refresh_s=options.refresh,
    )
    app.run()


if __name__ == "__main__":
    main()
