"""What all looks at a store have in common: a deadline, and an answer when there is none."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from memwatch.domain.checkpoints import StoreLook
from memwatch.domain.text import inert
from memwatch.host.deadline import ask

MOST = 500
"""Checkpoints that a look tells, the newest ones."""
DEADLINE_S = 5.0
_SLACK_S = 1.0

Source = Literal["directory", "langgraph"]


class UnseenError(Exception):
    """The store could not be looked at; the text says why in words for people."""


def look_bounded(
    path: Path,
    source: Source,
    look: Callable[[float], StoreLook],
    previous: StoreLook | None,
    t_us: int,
    deadline_s: float,
) -> StoreLook:
    """Return `look(until)`, or what was known before with the reason in `why`.

    `until` is on the monotonic clock. A look that hangs in the kernel costs one thread, and no
    second look is begun behind it.
    """

    def guarded() -> StoreLook | str:
        try:
            return look(time.monotonic() + deadline_s)
        except UnseenError as reason:
            return str(reason)
        except OSError as error:
            return f"it cannot be read: {error.strerror or error}"
        except (RuntimeError, ValueError) as error:  # a loop of links, a path that is none
            return f"it cannot be read: {inert(str(error), 200)}"

    answer = ask(f"look at {path}", guarded, deadline_s + _SLACK_S)
    if isinstance(answer, StoreLook):
        return answer
    why = answer or "the disk does not answer"
    if previous is None:
        return StoreLook(source=source, t_us=t_us, why=why)
    return msgspec.structs.replace(previous, t_us=t_us, writers=(), why=why)
