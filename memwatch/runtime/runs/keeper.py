"""Starts a detached guard again when it was killed: a shell of a few lines, its only parent.

It must survive what ends its child, so it is no Python: one small process that sleeps in `wait`.
A guard that ends by itself (0), cannot be (2), or was told to end before it could listen (INT,
TERM) is not started again; a hang-up ends neither, no terminal is theirs. The command is passed as
positional arguments, never pasted into the text. Source: D6, D7.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from memwatch.host.procfs import PROC, read_arguments, read_stat

MOST_RESTARTS = 5
WINDOW_S = 600
_NAME = "memwatch-keeper"
_SHELL = "/bin/sh"
_SCRIPT: Final = r"""
most=$1 window=$2 times=
shift 2
child=
finish() {
    trap '' TERM INT
    [ -z "$child" ] || { kill -TERM "$child"; wait "$child"; } 2>/dev/null
    exit 0
}
trap '' HUP
trap finish TERM INT
while :; do
    "$@" &
    child=$!
    { wait "$child"; } 2>/dev/null
    status=$?
    child=
    case $status in 0 | 2 | 130 | 143) exit "$status" ;; esac
    read -r now rest </proc/uptime
    now=${now%%.*}
    recent=$now count=1
    for past in $times; do
        [ $((now - past)) -ge "$window" ] || { recent="$recent $past" count=$((count + 1)); }
    done
    times=$recent
    how="ended with status $status"
    [ "$status" -le 128 ] || how="was killed by signal $((status - 128))"
    if [ "$count" -gt "$most" ]; then
        echo "memwatch: the guard $how again; $most restarts in $((window / 60)) min" \
            "did not help: NOTHING GUARDS THIS RUN" >&2
        exit 1
    fi
    echo "memwatch: the guard $how and is started again ($count of $most)" >&2
    [ "$count" -eq 1 ] || sleep "$count"
done
"""


def kept(command: list[str], *, most: int = MOST_RESTARTS, window_s: int = WINDOW_S) -> list[str]:
    """Return the command that runs `command` and starts it again, `most` times in `window_s`."""
    return [_SHELL, "-c", _SCRIPT, _NAME, str(most), str(window_s), *command]


def keeper_of(pid: int, proc: Path = PROC) -> int | None:
    """Return the keeper that would start a guard again; None when nothing would."""
    guard = read_stat(proc, pid)
    if guard is None or read_arguments(proc, guard.ppid)[3:4] != [_NAME]:
        return None
    return guard.ppid
