"""How a start of an agent introduces itself: the run's name, `run.json`, and `run.begin`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import count
from typing import Any

import msgspec

import memwatch
from memwatch.agent.context import Context
from memwatch.agent.control.operation import Operation, describe
from memwatch.agent.memory.keeping import told
from memwatch.agent.options import RunOptions
from memwatch.agent.past import run_drafts
from memwatch.domain.clock import Clock
from memwatch.domain.errors import LogError
from memwatch.host.process import age_us, identity_of
from memwatch.wal.manifest import RunManifest
from memwatch.wal.segment import FORMAT, RUN_FILE

_introduced = count()
"""Runs that this process began: a second one did not begin with its process."""


def new_run_id(agent: str, clock: Clock) -> str:
    """Return a name that people can type and that no other run has."""
    name = "".join(c for c in agent.lower() if c.isascii() and c.isalnum())[:20] or "run"
    began = datetime.fromtimestamp(clock.wall_us() / 1e6, UTC).strftime("%m%d-%H%M")
    return f"{name}-{began}-{os.urandom(2).hex()}"


def new_start_id() -> str:
    """Return a name that no other start has."""
    return os.urandom(16).hex()


def introduce(
    context: Context, options: RunOptions, operations: Mapping[str, Operation]
) -> dict[str, Any]:
    """Write `run.json`; returns the members of `run.begin`. Raises LogError."""
    me, pid = identity_of(os.getpid()), os.getpid()
    limit = options.memory_limit_bytes
    limits = {} if limit is None else {"memory_bytes": limit}
    manifest = RunManifest(
        format=FORMAT,
        run_id=context.run_id,
        agent=options.agent,
        profile=options.profile,
        pid=pid,
        start_ticks=me.start_ticks if me else 0,
        boot_id=me.boot_id if me else "",
        host=os.uname().nodename,
        started_us=context.clock.wall_us(),
        argv=sys.argv,
        limits=limits,
        cadence=msgspec.to_builtins(options.cadence),
        retention={name: told(keep) for name, keep in options.keep.items()},
        ops=describe(operations),
    )
    text = msgspec.json.format(msgspec.json.encode(manifest))
    for draft in run_drafts(context.path):
        context.files.discard(draft)
    try:
        context.files.replace(context.path / RUN_FILE, text)
    except OSError as error:
        raise LogError(
            f"cannot write {context.path / RUN_FILE}: {error.strerror}; the run did not start, and "
            "what is in its directory is as it was"
        ) from error
    up_us = age_us(context.clock) if next(_introduced) == 0 else None
    return {
        "run_id": context.run_id,
        "start_id": context.start_id,
        "boot": manifest.boot_id,
        "agent": options.agent,
        "version": memwatch.__version__,
        "pid": pid,
        "limits": limits,
    } | ({} if up_us is None else {"up_us": up_us})
