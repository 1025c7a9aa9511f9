"""A group shard on the real runtime, with a log, a clock and timers under the control of the test."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from moldau.base.clock import ManualClock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.config.broker.config import BrokerConfig
from moldau.groups.context import GroupContext
from moldau.groups.settings import GroupSettings
from moldau.groups.shard import GroupShard
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.protocol.stored.coordinator import CONSUMER_OFFSETS
from moldau.protocol.stored.metadata import PartitionRecord, RemoveTopicRecord, TopicRecord
from moldau.statemachine.coordinator_records import Entry, decode_entries, encode_entries
from moldau.statemachine.decision import Decision, Promise
from moldau.statemachine.runtime import Runtime

Decide = Callable[[], Decision[Entry, Any]]


class EntryLog:
    """Stores batches as the bytes they would be on disk; `refusal` makes appends fail."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, bytes]] = []
        self.end_offset = 0
        #: The end of the committed records.
        self.committed_end = 0
        self.refusal: KafkaError | None = None
        self.now_ms = 0

    def append(self, entries: Sequence[Entry]) -> int:
        if self.refusal is not None:
            raise self.refusal
        self.batches.append((self.end_offset, bytes(encode_entries(entries, self.now_ms))))
        self.end_offset += len(entries)
        return self.end_offset - 1

    def truncate(self) -> None:
        """Remove uncommitted records, as when another broker becomes the leader."""
        self.batches = [each for each in self.batches if each[0] < self.committed_end]
        self.end_offset = self.committed_end

    def entries(self) -> list[tuple[int, Entry]]:
        found = []
        for base, data in self.batches:
            decoded = decode_entries(CONSUMER_OFFSETS, memoryview(data))
            found += [(base + index, entry) for index, (_, entry) in enumerate(decoded)]
        return found


class ManualTimers:
    def __init__(self, clock: ManualClock, take: Callable[[Decide], object]) -> None:
        self._clock = clock
        self._take = take
        self.deadlines: dict[str, tuple[int, Decide]] = {}

    def schedule(self, key: str, delay_ms: int, decide: Decide) -> None:
        self.deadlines.pop(key, None)
        self.deadlines[key] = (self._clock.time_ms() + delay_ms, decide)

    def cancel(self, key: str) -> None:
        self.deadlines.pop(key, None)

    def is_scheduled(self, key: str) -> bool:
        return key in self.deadlines

    def advance(self, milliseconds: int) -> None:
        """Let time pass and run expired timers in order; refused decisions are retried."""
        end = self._clock.time_ms() + milliseconds
        while self.deadlines:
            key = min(self.deadlines, key=lambda each: self.deadlines[each][0])
            deadline, decide = self.deadlines[key]
            if deadline > end:
                break
            self._clock.advance(max(deadline - self._clock.time_ms(), 0))
            del self.deadlines[key]
            try:
                self._take(decide)
            except KafkaError:
                self.schedule(key, 500, decide)
        self._clock.advance(end - self._clock.time_ms())


class Coordination:
    """One group shard. Records are committed immediately unless `commits` is False."""

    def __init__(self, config: Mapping[str, str] | None = None) -> None:
        self.clock = ManualClock()
        self.log = EntryLog()
        self.commits = True
        #: The requested effects.
        self.effects: list[Any] = []
        self.image = MetadataImage.empty()
        self.config = broker_config(config)
        self._random = random.Random(7)
        self.load()

    def load(self) -> None:
        """Load a new shard from the log, as after a crash."""
        self.timers = ManualTimers(self.clock, self.take)
        context = GroupContext(
            self.timers, self.clock, self._random, lambda: GroupSettings.from_config(self.config)
        )
        self.shard = GroupShard(context)
        for offset, entry in self.log.entries():
            self.shard.replay((entry,), offset)
        self.runtime: Runtime[Entry] = Runtime(self.log, self.shard.replay, self.effects.append)
        self.shard.activate(self.image)

    def take(self, decide: Decide) -> Decision[Entry, Any]:
        self.log.now_ms = self.clock.time_ms()
        decision = self.runtime.take(decide)
        if self.commits:
            self.commit()
        return decision

    def commit(self) -> None:
        self.log.committed_end = self.log.end_offset
        self.runtime.committed(self.log.end_offset - 1)

    def lose_leadership(self) -> None:
        """Fail pending requests, remove uncommitted records, and load a new shard."""
        self.runtime.close(KafkaError(ErrorCode.NOT_COORDINATOR))
        self.log.truncate()
        self.load()

    def ask(self, decide: Callable[[GroupShard], Decision[Entry, Any]]) -> Promise[Any]:
        """Return the response as a promise, which may be settled; a raised error fails it.

        As on a node, a response waits until all records it may have seen are committed.
        """
        answer: Promise[Any] = Promise()
        try:
            decision = self.take(lambda: decide(self.shard))
        except KafkaError as error:
            answer.fail(error)
            return answer
        if isinstance(decision.response, Promise):
            return decision.response
        self.runtime.take(lambda: Decision([], None, replies=[(answer, decision.response)]))
        return answer

    def answer(self, decide: Callable[[GroupShard], Decision[Entry, Any]]) -> Any:
        """Return the response of a decision that does not wait."""
        promise = self.ask(decide)
        if promise.error is not None:
            raise promise.error
        assert promise.settled, "the response is still pending"
        return promise.value

    def pass_ms(self, milliseconds: int) -> None:
        self.timers.advance(milliseconds)

    # Metadata.

    def create_topic(self, name: str, partitions: int = 1) -> None:
        delta = MetadataDelta(self.image)
        topic_id = topic_id_of(name)
        if name not in self.image.topics.by_name:
            delta.replay(TopicRecord(name=name, topic_id=topic_id))
        for index in range(partitions):
            record = PartitionRecord(topic_id=topic_id, partition_id=index, replicas=[1], isr=[1], leader=1)
            delta.replay(record)
        self._changed(delta)

    def delete_topic(self, name: str) -> None:
        delta = MetadataDelta(self.image)
        delta.replay(RemoveTopicRecord(topic_id=self.image.topics.by_name[name].id))
        self._changed(delta)

    def _changed(self, delta: MetadataDelta) -> None:
        self.image = delta.apply(self.image.offset + 1, 1)
        self.shard.image_changed(delta, self.image)


def topic_id_of(name: str) -> Any:
    return name.encode().ljust(16, b".")[:16]


def broker_config(overrides: Mapping[str, str] | None = None) -> BrokerConfig:
    return BrokerConfig.from_properties(
        {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
            "log.dirs": "/nowhere",
            **(overrides or {}),
        }
    )
