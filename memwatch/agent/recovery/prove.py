"""What a recovered state is held against: the hash that the run logged, the blobs it points at."""

from __future__ import annotations

import time

from memwatch.agent.memory.entry import Blob
from memwatch.agent.memory.state_hash import state_hash
from memwatch.agent.recovery.account import Account
from memwatch.agent.recovery.blobs import BlobReader
from memwatch.agent.recovery.chain import Commit
from memwatch.agent.recovery.replay import Replayer
from memwatch.agent.recovery.state import live_blobs
from memwatch.domain.errors import DamagedError


def prove_values(replayer: Replayer, blobs: BlobReader, account: Account, *, whole: bool) -> None:
    """Tell which values cannot be had. Blobs are read with `whole`, else only looked for."""
    for (tier, key), why in replayer.unknown.items():
        account.lost.add(f"{key!r} of tier {tier} has no value: {why}")
    began, stored_bytes = time.perf_counter(), 0
    there: list[Blob] = []
    needed = live_blobs(replayer.tiers, replayer.journal)

    def missing(blob: Blob, error: DamagedError) -> None:
        account.damaged.add(error)
        for name in needed[blob]:
            account.lost.add(f"{name} cannot be read: {error}")

    for blob in needed:
        try:
            stored_bytes += blobs.size(blob)
            there.append(blob)
        except DamagedError as error:
            missing(blob, error)
    account.spent("load", time.perf_counter() - began)
    if whole:
        with account.time("blobs"):
            blobs.expect(stored_bytes)
            for blob in there:
                try:
                    blobs.prove(blob)
                except DamagedError as error:
                    missing(blob, error)
        account.spent("blobs", 0, stored_bytes, len(there))


def prove_state(
    replayer: Replayer, passed: Commit | None, account: Account
) -> tuple[bool | None, dict[str, str] | None]:
    """Hold the state as of a checkpoint against the hashes that its commit carries.

    Returns whether all are equal, None where none was logged, and the hashes that are. A tier that
    differs is lost, since nobody can say what of it is right.
    """
    if passed is None or not passed.state_hash:
        return None, None
    with account.time("replay"):
        then, told = replayer.committed(), passed.state_hash
        found = {tier: state_hash(then.get(tier, {}).values()) for tier in sorted({*then, *told})}
    nothing = state_hash(())
    differing = [tier for tier, known in found.items() if told.get(tier, nothing) != known]
    for tier in differing:
        account.lost.add(
            f"tier {tier} is not what the run logged: its state hash as of lsn {passed.last_lsn} "
            f"is {found[tier][:12]}…, and {told.get(tier, nothing)[:12]}… was committed"
        )
    return not differing, None if differing else found
