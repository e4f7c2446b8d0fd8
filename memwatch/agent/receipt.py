"""Log before apply, also where an interrupt (Ctrl-C) comes in between: what is logged is applied.

    receipt = Receipt()
    try:
        lsn = record(kind, members, receipt)
        apply(lsn)
    except BaseException:
        if receipt.lsn:
            until_done(apply_again)
        raise

Source: requirement R7.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final


class Receipt:
    """Tells whether a record is in the log also where its `append` ended with an exception.

    That is so after a sync that failed, and where an interrupt came at the very end.
    """

    __slots__ = ("lsn",)

    def __init__(self) -> None:
        self.lsn = 0


UNREAD: Final = Receipt()
"""For whoever applies nothing."""


def until_done(act: Callable[[], None]) -> None:
    """Carry out what must not stay half done, from its start again after each interrupt.

    The caller raises the interrupt that came before.
    """
    while True:
        try:
            act()
        except Exception:
            raise
        except BaseException:  # noqa: BLE001 - see above
            continue
        return
