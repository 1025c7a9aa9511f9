"""A log after any sequence of operations has the same contents as a list of batches."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from moldau.protocol.records import iter_batches, iter_records
from moldau.storage.log.log import Log
from tests.unit.storage.log.one_log import NOW, Folder, batch

PRODUCER = 77


@dataclass(frozen=True)
class Appended:
    base_offset: int
    count: int
    timestamp: int
    value: bytes
    epoch: int

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.count


class LogMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.parent = Path(tempfile.mkdtemp(prefix="log-machine-"))
        self.crashes = 0
        self.batches: list[Appended] = []
        self.start = 0
        self.end = 0
        self.epoch = 0
        self.log: Log
        self.folder: Folder

    @initialize(
        interval=st.sampled_from([0, 100, 1000, 4096]), segment_bytes=st.sampled_from([600, 2000, 10_000])
    )
    def begin(self, interval: int, segment_bytes: int) -> None:
        self.folder = Folder(self.parent, segment_bytes=segment_bytes, index_interval_bytes=interval)
        self.log = self.folder.open()

    def teardown(self) -> None:
        shutil.rmtree(self.parent)

    @rule(count=st.integers(1, 5), size=st.integers(0, 80), late_ms=st.integers(-50, 50))
    def append(self, count: int, size: int, late_ms: int) -> None:
        timestamp = NOW + self.end * 10 + late_ms
        value = os.urandom(size)
        info = self.log.append_as_leader(batch(count, value=value, timestamp=timestamp), self.epoch)
        assert info.first_offset == self.end
        self.batches.append(Appended(self.end, count, timestamp, value, self.epoch))
        self.end += count
        self.log.high_watermark = self.end

    @rule()
    def become_leader_again(self) -> None:
        self.epoch += 1

    @rule()
    def roll(self) -> None:
        self.log.roll()

    @rule()
    def flush(self) -> None:
        assert self.log.flusher.flush() == self.end

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        boundaries = [item.base_offset for item in self.batches if item.base_offset >= self.start]
        offset = data.draw(st.sampled_from([*boundaries, self.end]))
        self.log.truncate_to(offset)
        self.batches = [item for item in self.batches if item.next_offset <= offset]
        self.end = offset

    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.start, self.end))
        assert self.log.delete_records_before(offset) == offset
        self.start = offset
        self.log.delete_old_segments(NOW)

    @rule()
    def restart(self) -> None:
        self.log.close()
        self.log = self.folder.open(
            clean_shutdown=True, recovery_point=self.log.flusher.recovery_point, log_start_offset=self.start
        )
        assert self.log.flusher.recovery_point == self.end
        self.log.high_watermark = self.end

    @rule()
    def crash(self) -> None:
        self._reopen_copy()
        assert self.log.log_end_offset == self.end

    @rule(data=st.data(), flip=st.booleans())
    @precondition(lambda self: self.end > self.start)
    def crash_with_a_torn_tail(self, data: st.DataObject, flip: bool) -> None:
        active = self.log.segments.items[-1]
        recovery_point = self.log.flusher.recovery_point
        safe = 0 if recovery_point <= active.base_offset else active.position_of(recovery_point)
        if safe is None or safe >= active.size:
            return
        position = data.draw(st.integers(safe, active.size - 1))
        name = Path(active.files.log_path).name
        self._reopen_copy(name, position, flip)
        assert recovery_point <= self.log.log_end_offset <= self.end
        self.end = self.log.log_end_offset
        self.batches = [item for item in self.batches if item.next_offset <= self.end]
        self.start = min(self.start, self.end)
        assert self.log.log_start_offset == max(self.start, self.log.segments.items[0].base_offset)
        self.start = self.log.log_start_offset

    def _reopen_copy(self, name: str | None = None, position: int = 0, flip: bool = False) -> None:
        self.crashes += 1
        recovery_point = self.log.flusher.recovery_point
        self.folder = self.folder.copy(self.parent / f"crash-{self.crashes}")
        if name is not None:
            path = self.folder.path / name
            if flip:
                _flip(path, position)
            else:
                os.truncate(path, position)
        self.log = self.folder.open(recovery_point=recovery_point, log_start_offset=self.start)
        self.log.high_watermark = self.log.log_end_offset

    @rule(data=st.data(), max_bytes=st.integers(0, 3000), blocking=st.booleans())
    def read(self, data: st.DataObject, max_bytes: int, blocking: bool) -> None:
        offset = data.draw(st.integers(self.start, self.end))
        bound = data.draw(
            st.sampled_from([self.start, *(item.next_offset for item in self.batches), self.end])
        )
        result = self.log.reader.read(offset, max_bytes, upper_bound=bound, blocking=blocking)
        if result is None:
            result = self.log.reader.read(offset, max_bytes, upper_bound=bound, blocking=True)
        assert result is not None
        expected = [item for item in self.batches if item.next_offset > offset and item.base_offset < bound]
        if offset >= bound or not expected:
            assert result.parts == []
            return
        found = memoryview(b"".join(result.parts))
        got = list(iter_batches(found))
        assert sum(header.size_in_bytes for _, header in got) == len(found)
        assert [header.base_offset for _, header in got] == [
            item.base_offset for item in expected[: len(got)]
        ]
        assert got, "at least one batch"
        assert len(got) == 1 or len(found) <= max_bytes
        for (position, header), item in zip(got, expected, strict=False):
            records = list(iter_records(found[position:], header))
            assert [record.offset for record in records] == list(range(item.base_offset, item.next_offset))
            assert {record.value for record in records} == {item.value}
            assert header.partition_leader_epoch == item.epoch

    @rule(data=st.data())
    @precondition(lambda self: bool(self.batches))
    def search_by_time(self, data: st.DataObject) -> None:
        wanted = data.draw(st.sampled_from([item.timestamp for item in self.batches])) + data.draw(
            st.integers(-1, 1)
        )
        candidates = [
            (item.timestamp, max(item.base_offset, self.start), item.epoch)
            for item in self.batches
            if item.timestamp >= wanted and item.next_offset > self.start
        ]
        assert self.log.reader.offset_for_timestamp(wanted) == (candidates[0] if candidates else None)

    @invariant()
    def ends_are_right(self) -> None:
        if hasattr(self, "log"):
            assert self.log.log_end_offset == self.end
            assert self.log.log_start_offset == self.start
            assert self.log.segments.items[-1].base_offset <= self.end
            assert self.log.flusher.recovery_point <= self.end
            entries = self.log.leader_epochs.entries
            assert list(entries) == sorted(set(entries))


def _flip(path: Path, position: int) -> None:
    """Damage a byte. The checksum excludes base offset and leader epoch: there, damage the magic byte."""
    data = bytearray(path.read_bytes())
    for start, header in iter_batches(bytes(data)):
        if start <= position < start + 16:
            position = start + 16
        if position < start + header.size_in_bytes:
            break
    data[position] ^= 0x55
    path.write_bytes(data)


TestLog = LogMachine.TestCase
TestLog.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
