"""The interface of a remote store, which plug-ins implement.

A store keeps segments under the id in their metadata. All methods block and are called from several threads.
They raise `RemoteStoreError`; a failed call is repeated later, and readers get a retriable error. `copy` must
return only when the store has everything durably, because the local files may be deleted after that. To
`delete` what does not exist succeeds, because deletions are repeated after a crash.

A store that can list its segments has one method more:

    def segments(self) -> Iterable[StoredSegment]

Then uploads that arrive after their deletion, as when a request timed out, are found and deleted.

A plug-in is a class named by `remote.log.storage.manager.class.name` (`package.module.Class`). It is created
with the configs whose names begin with `remote.log.storage.manager.impl.prefix`, without the prefix, and with
`broker.id`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from struct import Struct
from typing import NamedTuple, Protocol

from fastcrc.crc32 import iscsi as crc32c

from moldau.base.ids import Uuid
from moldau.tiered.state.segments import PartitionId, RemoteSegment

#: Segments are read in pieces of this size while they are copied.
PIECE_BYTES = 4 * 1024 * 1024
#: The sizes of the parts, and the CRC-32C of the sizes and the parts.
_SIZES = Struct(">5I")
_CRC = Struct(">I")
_MAGIC = b"MTSX\x00\x02\x00\x00"


class RemoteStoreError(Exception):
    """The store could not do what was asked now; the call is repeated later."""


class RemoteSegmentMissing(RemoteStoreError):
    """The store does not have the segment."""


class RemoteIndexesDamaged(RemoteStoreError):
    """What the store returned are not the indexes of the segment. Records are found without them."""


class SegmentIndexes(NamedTuple):
    """Everything that is stored with the records of a segment, in Kafka's file formats.

    `transactions` is empty if no transaction of the segment was aborted.
    """

    offsets: bytes
    timestamps: bytes
    transactions: bytes
    leader_epochs: bytes
    producers: bytes

    @property
    def checksum(self) -> int:
        """The CRC-32C of all parts and their sizes."""
        return crc32c(self._body())

    def _body(self) -> bytes:
        return _SIZES.pack(*(len(part) for part in self)) + b"".join(self)

    def pack(self) -> bytes:
        """Return one block of bytes with all parts, for stores in which every object costs a request."""
        body = self._body()
        return _MAGIC + _CRC.pack(crc32c(body)) + body

    @classmethod
    def unpack(cls, data: bytes) -> SegmentIndexes:
        """Return the parts of a block; `RemoteIndexesDamaged` if a bit of it has changed."""
        start = len(_MAGIC) + _CRC.size + _SIZES.size
        if len(data) < start or not data.startswith(_MAGIC):
            raise RemoteIndexesDamaged("the indexes of a remote segment are damaged: unknown format")
        (crc,) = _CRC.unpack_from(data, len(_MAGIC))
        if crc32c(data[len(_MAGIC) + _CRC.size :]) != crc:
            raise RemoteIndexesDamaged(
                "the indexes of a remote segment are damaged: the checksum does not match"
            )
        sizes = _SIZES.unpack_from(data, len(_MAGIC) + _CRC.size)
        if start + sum(sizes) != len(data):
            raise RemoteIndexesDamaged(f"the indexes of a remote segment are damaged: {len(data)} bytes")
        parts = []
        for size in sizes:
            parts.append(data[start : start + size])
            start += size
        return cls(*parts)


class StoredSegment(NamedTuple):
    """A segment of which a store has anything, be it incomplete."""

    partition_id: PartitionId
    id: Uuid
    start_offset: int

    def as_remote(self) -> RemoteSegment:
        """Return what is known of the metadata, with which the segment can be deleted."""
        return RemoteSegment(self.partition_id, self.id, self.start_offset, -1, (), 0, -1, -1, -1)


class SegmentSource(Protocol):
    """The local segment that is copied."""

    @property
    def size(self) -> int: ...

    def pieces(self) -> Iterator[bytes | memoryview]:
        """Yield the bytes of the `.log` file in order; may be called again for another attempt."""
        ...

    def indexes(self) -> SegmentIndexes: ...


class RemoteStore(Protocol):
    def __init__(self, configs: Mapping[str, str]) -> None: ...

    def copy(self, segment: RemoteSegment, source: SegmentSource) -> bytes | None:
        """Store a segment; return metadata of the store's own, which later calls find in the segment."""
        ...

    def read(self, segment: RemoteSegment, position: int, size: int) -> bytes:
        """Return `size` bytes of the `.log` from a position, fewer only at its end."""
        ...

    def read_indexes(self, segment: RemoteSegment) -> SegmentIndexes: ...

    def delete(self, segment: RemoteSegment) -> None: ...

    def close(self) -> None: ...
