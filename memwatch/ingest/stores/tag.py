"""The small files by which a writer says which checkpoint is its newest whole one.

DeepSpeed leaves `latest` (a folder's name) last of all, Megatron
`latest_checkpointed_iteration.txt` (a number).
"""

from __future__ import annotations

import os
from typing import NamedTuple

from memwatch.ingest.stores.names import EntryName, entry_name
from memwatch.ingest.stores.top import Entry
from memwatch.ingest.stores.walk import open_file

_MOST_BYTES = 300
_LATEST = "latest"
_ITERATION = "latest_checkpointed_iteration.txt"


class Tag(NamedTuple):
    """What such a file says, and when it was written."""

    name: EntryName
    t_us: int

    def of(self, entry: Entry) -> tuple[int | None, bool]:
        """Return when it was written to name this one, and whether it does not name it yet."""
        name = entry.name
        if name.style != self.name.style or name.step is None or self.name.step is None:
            return None, False
        if name.step == self.name.step:
            return self.t_us, False
        return None, name.step > self.name.step and entry.found.last_us > self.t_us


def read_tag(root: int) -> Tag | None:
    """Return what the store's own tag says; None where there is none."""
    for file, form in ((_LATEST, "{}"), (_ITERATION, "iter_{}")):
        try:
            with open_file(root, file) as fd:
                text = os.pread(fd, _MOST_BYTES, 0).decode("utf-8", "replace").strip()
                name = entry_name(form.format(text), folder=True)
                if name is not None:
                    return Tag(name, os.fstat(fd).st_mtime_ns // 1000)
        except OSError:
            continue
    return None
