"""Asynchronous commits that wait for their response, and the notification of callbacks and interceptors.

librdkafka reports the result of every commit in a poll, in the order of the commits, and does not say which
call it belongs to. A commit with explicit offsets is recognised by them. While auto-commit is on, other
results may belong to an automatic commit, for which no callback waits.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import confluent_kafka

from moldau.base.errors import KafkaError
from moldau.base.ids import TopicPartition
from moldau.client.interceptors import ConsumerInterceptor, call_all
from moldau.client.librdkafka.errors import client_error
from moldau.client.records import OffsetAndMetadata
from moldau.client.topic_partitions import committed_offsets

logger = logging.getLogger(__name__)

Offsets = Mapping[TopicPartition, OffsetAndMetadata | int]
OnCommit = Callable[[dict[TopicPartition, OffsetAndMetadata] | None, KafkaError | None], None]


class PendingCommits:
    def __init__(self, interceptors: Sequence[ConsumerInterceptor], *, auto_commit: bool) -> None:
        self._interceptors = interceptors
        self._auto_commit = auto_commit
        #: Explicit offsets (None: those of the last poll) and the callback.
        self._pending: deque[tuple[dict[TopicPartition, int] | None, OnCommit]] = deque()

    def add(self, partitions: Iterable[Any] | None, on_commit: OnCommit | None) -> None:
        """Register a commit that is about to be sent, with librdkafka's partitions if they are explicit."""
        offsets = None if partitions is None else _offsets_in(partitions)
        self._pending.append((offsets, on_commit or _log_failure))

    def remove_last(self) -> None:
        """Unregister the last commit, which could not be sent."""
        self._pending.pop()

    def completed(self, error: Any, partitions: Any) -> None:
        """Handle a commit's result: librdkafka's `on_commit`, called in a poll."""
        on_commit = self._callback_for(partitions or ())
        if error is not None and nothing_to_commit(error):
            error, partitions = None, ()
        done: dict[TopicPartition, OffsetAndMetadata] | None = None
        failure: KafkaError | None = None
        try:
            if error is not None:
                raise client_error(error)
            done = committed_offsets(partitions)
        except KafkaError as reason:
            failure = reason
        if done:
            self.notify_interceptors(done)
        if on_commit is not None:
            call_all([partial(on_commit, done, failure)])

    def notify_interceptors(self, done: dict[TopicPartition, OffsetAndMetadata]) -> None:
        call_all([partial(each.on_commit, done) for each in self._interceptors])

    def _callback_for(self, partitions: Iterable[Any]) -> OnCommit | None:
        """Return the callback that waits for this result; None if it is an automatic commit's."""
        offsets = _offsets_in(partitions)
        for each in self._pending:
            if not self._auto_commit or each[0] is None or each[0] == offsets:
                self._pending.remove(each)
                return each[1]
        return None


def nothing_to_commit(error: Any) -> bool:
    return bool(error.code() == confluent_kafka.KafkaError._NO_OFFSET)


def _offsets_in(partitions: Iterable[Any]) -> dict[TopicPartition, int]:
    return {TopicPartition(each.topic, each.partition): each.offset for each in partitions}


def _log_failure(offsets: dict[TopicPartition, OffsetAndMetadata] | None, error: KafkaError | None) -> None:
    if error is not None:
        logger.warning("an asynchronous commit failed: %s", error)
