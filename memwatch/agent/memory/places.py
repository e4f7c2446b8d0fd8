"""Where a value can be found: as an object, as text in memory, in a blob, or by its source (R4)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from memwatch.agent.memory import compression
from memwatch.agent.memory.blobs import BlobStore
from memwatch.agent.memory.entry import ABSENT, Entry, Source, Text
from memwatch.agent.memory.values import Types
from memwatch.domain.errors import DamagedError, UnkeepableError

Builders = Mapping[str, Callable[..., Any]]
"""Functions that make a value again, by the name that a `Source` gives."""


class Places:
    """Brings values to text and back, wherever they lie."""

    def __init__(self, types: Types, blobs: BlobStore, builders: Builders) -> None:
        self.types = types
        self.blobs = blobs
        self.builders = builders

    def encode(self, where: str, value: Any) -> tuple[str, Text]:
        """Return type and canonical text of a value; UnkeepableError says where it was put."""
        try:
            encoded = self.types.encode(value)
        except UnkeepableError as error:
            raise UnkeepableError(f"cannot keep {where}: {error}") from None
        return encoded.type, encoded.canonical

    def encode_source(self, where: str, source: Source) -> tuple[Text, Source]:
        """Return the canonical text of a source, and a copy that nobody else can change.

        Raises UnkeepableError for what is none.
        """
        if type(source) is not Source or type(source.by) is not str:
            raise UnkeepableError(
                f"cannot keep {where}: its source is Source(name of a builder, arguments), "
                f"not {source!r:.80}"
            )
        said = {"by": source.by, "args": source.args}
        text = self.encode(f"the source of {where}", said)[1]
        copy = self.types.decode("", text)
        if type(copy["args"]) is not dict:
            raise UnkeepableError(f"cannot keep the source of {where}: its arguments are by name")
        return text, Source(copy["by"], copy["args"])

    def load(self, entry: Entry) -> Any:
        """Return the value of an entry from wherever it is; see `Tier.get` for what is raised."""
        # Another thread may move the value meanwhile; each place is read once.
        value, packed, blob = entry.value, entry.packed, entry.blob
        if value is not ABSENT:
            return value
        if packed is not None:
            return self.types.decode(entry.type, unpacked(packed))
        if blob is not None:
            try:
                return self.types.decode(entry.type, self.blobs.load(blob))
            except DamagedError:
                if entry.source is None:
                    raise
        if entry.source is None:
            raise DamagedError(f"the value of {entry.key!r} is lost: no file of the run holds it")
        return self.build(entry.key, entry.source)

    def build(self, key: str, source: Source) -> Any:
        """Make a value by its builder, whose error is raised with the key added as a note."""
        builder = self.builders.get(source.by)
        if builder is None:
            raise LookupError(
                f"{key!r} is made by the builder {source.by!r}, which this run does not have: "
                "name it in RunOptions(builders=…)"
            )
        try:
            return builder(**source.args)
        except Exception as error:
            error.add_note(f"while the builder {source.by!r} made {key!r}")
            raise


def unpacked(packed: bytes) -> Text:
    """Return the canonical text of a packed value; we packed it, so its length is its own."""
    return compression.unpack(packed, sys.maxsize)
