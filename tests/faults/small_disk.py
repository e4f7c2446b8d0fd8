"""Disks that are too small: a limit on file sizes for any user, a small tmpfs for root."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def forbid_growth(pid: int) -> Iterator[None]:
    """Let every write of a process that makes a file longer fail, as on a full disk."""
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


@contextmanager
def tmpfs(folder: Path, size_bytes: int) -> Iterator[str]:
    """Mount a small file system at `folder`; yields why it could not be, or nothing."""
    if os.geteuid() != 0:
        yield "only root may mount"
        return
    options = f"size={size_bytes},mode=0700"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "memwatch-test", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode != 0:
        yield f"mount is not permitted: {mounted.stderr.strip()}"
        return
    try:
        yield ""
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=False, capture_output=True)
