"""Interrupts (as Ctrl-C raises them) at any place of a call, one place after the other."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

PACKAGE = "memwatch"


class Interrupt(BaseException):
    """In place of KeyboardInterrupt, which would end pytest."""


def interrupted(act: Callable[[], object], at: int) -> bool:
    """Call `act` with an interrupt at bytecode number `at` of the library; false: it is shorter.

    Places where Python itself lets none come (between instructions that call nothing) count too,
    but for those in the code that relies on it: `append` of the log.
    """
    left = at

    def local(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal left
        if event == "opcode":
            left -= 1
            if left == 0:
                raise Interrupt
        return local

    def every(frame: FrameType, event: str, arg: Any) -> Any:
        name = frame.f_globals.get("__name__", "")
        if not name.startswith(PACKAGE) or left <= 0:
            return None
        if name == "memwatch.agent.log" and frame.f_code.co_name == "append":
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return local

    before = sys.gettrace()
    sys.settrace(every)
    try:
        act()
    except Interrupt:
        return True
    finally:
        sys.settrace(before)
    return left <= 0
