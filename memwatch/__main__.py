"""`python -m memwatch` is the `memwatch` command."""

import sys

from memwatch.cli import main

if __name__ == "__main__":
    sys.exit(main())
