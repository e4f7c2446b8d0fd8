"""`python -m tests.benchmarks [NAME...]` runs all benchmarks, or those named, in one table."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

from tests.benchmarks.table import Row, print_table


def main(names: list[str]) -> int:
    """Run and print."""
    known = sorted(
        path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*")
    )
    unknown = set(names) - set(known)
    if unknown:
        print(f"known benchmarks are: {', '.join(known)}", file=sys.stderr)
        return 2
    rows: list[Row] = []
    for name in names or known:
        print(f"measuring {name} …", file=sys.stderr)
        rows += import_module(f"tests.benchmarks.bench_{name}").run()
    print_table(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
