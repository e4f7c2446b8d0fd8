"""Appends to a log and says each acknowledged lsn on stdout, until it is killed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from memwatch.agent.log import LogWriter


def main() -> None:
    """Append records of all sizes for ever."""
    log = LogWriter(Path(sys.argv[1]), segment_bytes=200_000)
    number = 0
    while True:
        number += 1
        lsn = log.append("put", {"tier": "recent", "n": number, "text": "x" * (number * 37 % 3000)})
        os.write(1, b"%d\n" % lsn)


if __name__ == "__main__":
    main()
