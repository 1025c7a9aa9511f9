"""A closed local segment as the source of a copy. Blocking."""

from __future__ import annotations

from collections.abc import Iterator

from moldau.storage.log.log import Log
from moldau.storage.producers.snapshot import encode_snapshot
from moldau.storage.segment.files import LOG, OFFSET_INDEX, TIME_INDEX, TXN_INDEX
from moldau.tiered.state.copying import Candidate
from moldau.tiered.state.segments import RemoteSegment
from moldau.tiered.stores.interface import PIECE_BYTES, SegmentIndexes


class LocalSegment:
    def __init__(self, log: Log, candidate: Candidate, segment: RemoteSegment) -> None:
        self._log = log
        self._files = candidate.segment.files
        self._next_offset = candidate.next_offset
        self.size = segment.size

    def pieces(self) -> Iterator[bytes | memoryview]:
        file = self._files.file(LOG)
        for position in range(0, self.size, PIECE_BYTES):
            wanted = min(PIECE_BYTES, self.size - position)
            piece = file.pread(wanted, position)
            if len(piece) != wanted:
                raise OSError(f"{file.path} is shorter than its {self.size} bytes")
            yield piece

    def indexes(self) -> SegmentIndexes:
        disk, files = self._files.open_files.disk, self._files
        transactions = files.path(TXN_INDEX)
        return SegmentIndexes(
            offsets=disk.read_bytes(files.path(OFFSET_INDEX)),
            timestamps=disk.read_bytes(files.path(TIME_INDEX)),
            transactions=disk.read_bytes(transactions) if disk.exists(transactions) else b"",
            leader_epochs=self._leader_epochs(),
            producers=encode_snapshot(self._log.producers_at(self._next_offset)),
        )

    def _leader_epochs(self) -> bytes:
        """Return the leader epochs up to the end of the segment, as a checkpoint file."""
        entries = [
            entry for entry in self._log.leader_epochs.entries if entry.start_offset < self._next_offset
        ]
        lines = ["0", str(len(entries)), *(f"{epoch} {start}" for epoch, start in entries), ""]
        return "\n".join(lines).encode()
