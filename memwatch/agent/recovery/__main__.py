"""`python -m memwatch.agent.recovery RUN`: one drill, its figures as one JSON object.

Exit status: 0 the drill was done, whatever it found; 2 it could not be: one sentence on stderr.
"""

from __future__ import annotations

import sys

from memwatch.agent.recovery.drill import main
from memwatch.domain.errors import MemwatchError
from memwatch.domain.text import inert

if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except MemwatchError as error:
        print(inert(str(error), 400), file=sys.stderr)  # noqa: T201 -- for whoever started us
        sys.exit(2)
