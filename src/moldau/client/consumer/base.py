"""What all parts of a consumer share: librdkafka's consumer, and where the application has got to."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import confluent_kafka

from moldau.base.errors import KafkaError
from moldau.base.ids import TopicPartition
from moldau.client.interceptors import ConsumerInterceptor, instances
from moldau.client.librdkafka import called, create, log_error, translate
from moldau.client.metrics import ConsumerMetrics
from moldau.client.records import ConsumerRecord, OffsetAndMetadata
from moldau.client.topic_partitions import from_librdkafka, to_librdkafka

log = logging.getLogger(__name__)

OnCommit = Callable[[dict[TopicPartition, OffsetAndMetadata] | None, KafkaError | None], None]

#: Offsets that stand for the ends of a partition.
BEGINNING, END = -2, -1
#: Java's defaults where librdkafka has others. Offsets are stored by `store_positions`.
_DEFAULTS = {
    "auto.offset.reset": "latest",
    "isolation.level": "read_uncommitted",
    "enable.auto.offset.store": False,
    "statistics.interval.ms": 1000,
}


class ConsumerBase:
    def __init__(self, config: Mapping[str, Any], interceptors: Sequence[ConsumerInterceptor]) -> None:
        self._interceptors: list[ConsumerInterceptor] = instances(
            interceptors or config.get("interceptor.classes")
        )
        self._metrics = ConsumerMetrics()
        #: The next offset of each partition that the last poll has given records of.
        self._delivered: dict[TopicPartition, OffsetAndMetadata] = {}
        #: Polled and not handed out: by a loop over the consumer, or because nobody waited for them any more.
        self._ahead: deque[ConsumerRecord[Any, Any]] = deque()
        #: Asynchronous commits without an answer: the offsets that were chosen, and who is told.
        self._commits: deque[tuple[dict[TopicPartition, int] | None, OnCommit]] = deque()
        self._paused: set[TopicPartition] = set()
        self._closed = False
        self._has_group = bool(config.get("group.id"))
        settings = {**_DEFAULTS, **translate(config)}
        #: Where partitions assigned by hand are read from; None: where the group has committed.
        self._start: int | None = None
        if not self._has_group:
            # librdkafka wants a group even where there are no commits to ask for.
            settings |= {"group.id": "moldau-no-group", "enable.auto.commit": False}
            beginnings = ("earliest", "smallest", "beginning")
            self._start = BEGINNING if settings["auto.offset.reset"] in beginnings else END
        self._commits_by_itself = str(settings.get("enable.auto.commit", True)).lower() == "true"
        settings |= {
            "stats_cb": self._metrics.take_statistics,
            "on_commit": self._committed,
            "error_cb": log_error,
        }
        self._consumer = create(confluent_kafka.Consumer, settings, _ignored)

    def assignment(self) -> set[TopicPartition]:
        """The partitions this consumer reads now."""
        return set(from_librdkafka(called(self._consumer.assignment)))

    def _store_positions(self) -> None:
        """What was polled counts as handled: from now on it may be committed."""
        if not self._delivered or not self._has_group:
            return
        assigned = self.assignment()
        positions = {each: at for each, at in self._handled().items() if each in assigned}
        if positions:
            called(self._consumer.store_offsets, offsets=to_librdkafka(positions))

    def _handled(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """The next offset of each partition that the application has not been given."""
        handled = dict(self._delivered)
        for record in reversed(list(self._ahead)):
            handled[record.topic_partition] = OffsetAndMetadata(record.offset)
        return handled

    def _forget(self, partitions: list[TopicPartition]) -> None:
        """These partitions are no longer ours."""
        for each in partitions:
            self._unread(each)
            self._paused.discard(each)

    def _unread(self, partition: TopicPartition) -> None:
        """What was polled of it counts no more, in hand or not."""
        self._delivered.pop(partition, None)
        self._ahead = deque(each for each in self._ahead if each.topic_partition != partition)

    def _committed(self, error: Any, partitions: Any) -> None:
        raise NotImplementedError


def _ignored(name: str) -> None:
    log.warning("the configuration '%s' is not known and is ignored", name)
