"""Numbers of the session protocol, apart so that a fast client need not load its types."""

from __future__ import annotations

from memwatch.domain.errors import SessionError

PROTOCOL = (1, 3)
"""Major and minor; another major ends the session. 1.1: `events` takes `kinds`. 1.2: `command`; a
viewer's hello may hold `viewer` and `view`. 1.3: `rows`."""
MAX_FRAME_BYTES = 8 * 1024 * 1024


class NoGuardError(SessionError):
    """Nobody answers there: no guard, or one that is just ending."""


class GuardSilentError(SessionError):
    """A guard is there and says nothing in time: stopped, or stuck."""


def refusal(proto: object) -> str:
    """Return why a session cannot go on with an end that speaks `proto`; empty when it can."""
    if not isinstance(proto, list) or not proto or type(proto[0]) is not int:
        return "the other end is no memwatch guard"
    if proto[0] == PROTOCOL[0]:
        return ""
    return (
        f"the other end speaks protocol {proto[0]}, this one {PROTOCOL[0]}: "
        "restart the guard with this version of memwatch"
    )
