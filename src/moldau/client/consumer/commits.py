"""A consumer's commits: synchronous, asynchronous, of chosen offsets, and what was committed."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import confluent_kafka

from moldau.base.errors import KafkaError
from moldau.base.ids import TopicPartition
from moldau.client.consumer.base import ConsumerBase, OnCommit
from moldau.client.interceptors import told
from moldau.client.librdkafka import called, client_error
from moldau.client.records import OffsetAndMetadata
from moldau.client.topic_partitions import committed_offsets, named, to_librdkafka

log = logging.getLogger(__name__)

Offsets = Mapping[TopicPartition, OffsetAndMetadata | int]

_TIMEOUT = 60.0


class ConsumerCommits(ConsumerBase):
    def commit_sync(self, offsets: Offsets | None = None) -> dict[TopicPartition, OffsetAndMetadata]:
        """Commit what was polled, or chosen offsets, and wait; what was committed."""
        try:
            answer = self._consumer.commit(**self._to_commit(offsets), asynchronous=False)
        except confluent_kafka.KafkaException as error:
            if _nothing_to_commit(error.args[0]):
                return {}
            raise client_error(error.args[0]) from error
        done = committed_offsets(answer)
        self._tell(done)
        return done

    def commit_async(self, offsets: Offsets | None = None, on_commit: OnCommit | None = None) -> None:
        """Commit without waiting; `on_commit` is called in a later poll, in the order of the commits."""
        chosen = None if offsets is None else _offsets_in(to_librdkafka(offsets))
        self._commits.append((chosen, on_commit or _unheard))
        try:
            self._consumer.commit(**self._to_commit(offsets), asynchronous=True)
        except confluent_kafka.KafkaException as error:
            self._commits.pop()
            if not _nothing_to_commit(error.args[0]):
                raise client_error(error.args[0]) from error

    def committed(
        self, partitions: Iterable[TopicPartition], timeout: float = _TIMEOUT
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed; None for partitions without a commit."""
        wanted = list(partitions)
        found = committed_offsets(called(self._consumer.committed, named(wanted), timeout))
        return {each: found.get(each) for each in wanted}

    def group_metadata(self) -> Any:
        """For `Producer.send_offsets_to_transaction`."""
        return self._consumer.consumer_group_metadata()

    def _to_commit(self, offsets: Offsets | None) -> dict[str, Any]:
        if offsets is not None:
            return {"offsets": to_librdkafka(offsets)}
        self._store_positions()
        return {}

    def _committed(self, error: Any, partitions: Any) -> None:
        """In a poll: the answer to an asynchronous commit, also to the automatic ones."""
        on_commit = self._asked_for(partitions or ())
        if error is not None and _nothing_to_commit(error):
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
            self._tell(done)
        if on_commit is not None:
            told([partial(on_commit, done, failure)])

    def _asked_for(self, partitions: Iterable[Any]) -> OnCommit | None:
        """Who waits for this answer; None when it is to an automatic commit."""
        answered = _offsets_in(partitions)
        for each in self._commits:
            if not self._commits_by_itself or each[0] is None or each[0] == answered:
                self._commits.remove(each)
                return each[1]
        return None

    def _tell(self, done: dict[TopicPartition, OffsetAndMetadata]) -> None:
        told([partial(each.on_commit, done) for each in self._interceptors])


def _offsets_in(partitions: Iterable[Any]) -> dict[TopicPartition, int]:
    return {TopicPartition(each.topic, each.partition): each.offset for each in partitions}


def _nothing_to_commit(error: Any) -> bool:
    return bool(error.code() == confluent_kafka.KafkaError._NO_OFFSET)


def _unheard(offsets: dict[TopicPartition, OffsetAndMetadata] | None, error: KafkaError | None) -> None:
    if error is not None:
        log.warning("an asynchronous commit failed: %s", error)
