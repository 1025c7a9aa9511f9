"""Where a consumer reads: its position, seeking by offset and by time, pausing, how far it is behind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import confluent_kafka

from moldau.base.ids import TopicPartition
from moldau.client.consumer.base import BEGINNING, END, ConsumerBase
from moldau.client.librdkafka import called, client_error
from moldau.client.records import OffsetAndTimestamp
from moldau.client.topic_partitions import named

_TIMEOUT = 60.0


class ConsumerPositions(ConsumerBase):
    def position(self, partition: TopicPartition) -> int | None:
        """The next offset that will be read; None before the first record."""
        handled = self._handled()
        if partition in handled:
            return handled[partition].offset
        offset = called(self._consumer.position, named([partition]))[0].offset
        return offset if offset >= 0 else None

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Read on from `offset`. The partition must be assigned."""
        self._unread(partition)
        called(self._consumer.seek, confluent_kafka.TopicPartition(*partition, offset))

    def seek_to_beginning(self, partitions: Iterable[TopicPartition] = ()) -> None:
        """These partitions, or all that are assigned."""
        for each in list(partitions) or self.assignment():
            self.seek(each, BEGINNING)

    def seek_to_end(self, partitions: Iterable[TopicPartition] = ()) -> None:
        """These partitions, or all that are assigned."""
        for each in list(partitions) or self.assignment():
            self.seek(each, END)

    def seek_to_timestamp(self, timestamp_ms: int, partitions: Iterable[TopicPartition] = ()) -> None:
        """To the first record at or after a time; to the end where there is none."""
        wanted = list(partitions) or list(self.assignment())
        for each, at in self.offsets_for_times(dict.fromkeys(wanted, timestamp_ms)).items():
            self.seek(each, END if at is None else at.offset)

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Read no more of these until `resume`; the consumer stays in the group."""
        wanted = list(partitions)
        called(self._consumer.pause, named(wanted))
        self._paused.update(wanted)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        wanted = list(partitions)
        called(self._consumer.resume, named(wanted))
        self._paused.difference_update(wanted)

    def paused(self) -> set[TopicPartition]:
        return set(self._paused)

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float = _TIMEOUT
    ) -> dict[TopicPartition, int]:
        return {each: self._watermarks(each, timeout)[0] for each in partitions}

    def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float = _TIMEOUT
    ) -> dict[TopicPartition, int]:
        return {each: self._watermarks(each, timeout)[1] for each in partitions}

    def lag(self, partition: TopicPartition, timeout: float = _TIMEOUT) -> int | None:
        """How many offsets are still to be read; None before the first record."""
        position = self.position(partition)
        return None if position is None else max(self._watermarks(partition, timeout)[1] - position, 0)

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int], timeout: float = _TIMEOUT
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after a time in milliseconds; None where there is none."""
        asked = [confluent_kafka.TopicPartition(*each, at) for each, at in timestamps.items()]
        found: dict[TopicPartition, OffsetAndTimestamp | None] = {}
        for each in called(self._consumer.offsets_for_times, asked, timeout):
            if each.error is not None:
                raise client_error(each.error)
            name = TopicPartition(each.topic, each.partition)
            found[name] = OffsetAndTimestamp(each.offset, timestamps[name]) if each.offset >= 0 else None
        return found

    def _watermarks(self, partition: TopicPartition, timeout: float) -> tuple[int, int]:
        low, high = called(
            self._consumer.get_watermark_offsets, confluent_kafka.TopicPartition(*partition), timeout
        )
        return low, high
