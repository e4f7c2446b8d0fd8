"""On which file system a path lies, and whether changes made elsewhere reach us as events."""

from __future__ import annotations

import os
from pathlib import Path

from memwatch.host.mounts import read_mounts
from memwatch.host.procfs import PROC

_REMOTE = frozenset(
    {
        "9p", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "drvfs", "gfs2", "glusterfs",
        "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "prl_fs", "smb2", "smb3",
        "smbfs", "vboxsf", "virtiofs", "vmhgfs", "wekafs",
    }
)  # fmt: skip
_USER_SPACE = "fuse"  # sshfs, rclone, s3fs …: the kernel sees none of what happens behind them


def file_system(path: Path, proc: Path = PROC) -> str | None:
    """Return the type of the file system that holds `path` (`ext4`), or None when unknown.

    Follows links, and so can hang on a dead mount: `memwatch.host.deadline` bounds it.
    """
    place = os.path.realpath(path)
    kind, longest = None, -1
    for mount in read_mounts(proc):
        point = mount.point.rstrip("/")
        if len(point) >= longest and (place == point or place.startswith(point + "/")):
            kind, longest = mount.kind, len(point)
    return kind


def is_remote(kind: str | None) -> bool:
    """Say whether files of this type change without an event here.

    >>> [is_remote(kind) for kind in ("ext4", "nfs4", "fuse.sshfs", None)]
    [False, True, True, False]
    """
    return kind is not None and (kind in _REMOTE or kind.partition(".")[0] == _USER_SPACE)
