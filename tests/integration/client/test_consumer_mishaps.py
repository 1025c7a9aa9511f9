"""A consumer whose application is interrupted, breaks off or raises: every record is still handled once."""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import Any

import pytest

from moldau.client import (
    AdminClient,
    AsyncConsumer,
    Consumer,
    ConsumerInterceptor,
    NewTopic,
    Producer,
    RebalanceListener,
    RecordDeserializationError,
    TopicPartition,
)

RECORDS = 10


@pytest.fixture
def filled(bootstrap: str, topic: str) -> str:
    """A topic of one partition with ten numbers."""
    with AdminClient(bootstrap) as admin:
        admin.create_topics([NewTopic(topic, partitions=1, replication_factor=1)])
    with Producer[Any, Any]({"bootstrap.servers": bootstrap}) as producer:
        for number in range(RECORDS):
            producer.send(topic, str(number).encode(), partition=0)
    return topic


def settings(bootstrap: str, group: str, **others: Any) -> dict[str, Any]:
    config = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    return {**config, "session.timeout.ms": 6000, "heartbeat.interval.ms": 500, **others}


def numbers(records: list[Any]) -> list[int]:
    return [int(record.value) for record in records]


def rest(bootstrap: str, topic: str) -> list[int]:
    """What the next consumer of the group is given."""
    found: list[Any] = []
    with Consumer[Any, Any](settings(bootstrap, topic)) as consumer:
        consumer.subscribe([topic])
        deadline = time.monotonic() + 60
        while (not found or found[-1].offset < RECORDS - 1) and time.monotonic() < deadline:
            found += consumer.poll(0.2)
    return numbers(found)


def test_iteration_handles_only_the_records_it_yielded(bootstrap: str, filled: str) -> None:
    with Consumer[Any, Any](settings(bootstrap, filled)) as consumer:
        consumer.subscribe([filled])
        assert numbers(list(itertools.islice(consumer, 3))) == [0, 1, 2]
        assert consumer.position(TopicPartition(filled, 0)) == 3
        assert numbers(list(itertools.islice(consumer, 2))) == [3, 4]
    assert rest(bootstrap, filled) == [5, 6, 7, 8, 9]


def test_commit_during_iteration_covers_the_yielded_records(bootstrap: str, filled: str) -> None:
    zero = TopicPartition(filled, 0)
    with Consumer[Any, Any](settings(bootstrap, filled, **{"enable.auto.commit": False})) as consumer:
        consumer.subscribe([filled])
        for record in consumer:
            done = consumer.commit_sync()
            assert done[zero].offset == record.offset + 1
            if record.offset == 3:
                break
        assert numbers(consumer.poll(60.0)) == [4, 5, 6, 7, 8, 9], (
            "the next poll goes on where the loop ended"
        )
    assert rest(bootstrap, filled) == [4, 5, 6, 7, 8, 9]


def test_seek_during_iteration_takes_effect(bootstrap: str, filled: str) -> None:
    with Consumer[Any, Any](settings(bootstrap, filled)) as consumer:
        consumer.subscribe([filled])
        assert numbers(list(itertools.islice(consumer, 2))) == [0, 1]
        consumer.seek(TopicPartition(filled, 0), 8)
        assert numbers(list(itertools.islice(consumer, 2))) == [8, 9]


def test_any_exception_of_a_deserializer_is_wrapped(bootstrap: str, filled: str) -> None:
    class Picky:
        def deserialize(self, topic: str, data: bytes | None, headers: Any = ()) -> int:
            number = int(data or b"")
            if number == 4:
                raise LookupError("no four")
            return number

    with Consumer[Any, Any](settings(bootstrap, filled), value_deserializer=Picky()) as consumer:
        consumer.subscribe([filled])
        found: list[Any] = []
        with pytest.raises(RecordDeserializationError, match=r"offset 4: LookupError.*no four"):
            while True:
                found += consumer.poll(1.0)
        assert numbers(found) == [0, 1, 2, 3]
    assert rest(bootstrap, filled) == [4, 5, 6, 7, 8, 9]


def test_exception_of_a_listener_is_raised_and_loses_no_records(bootstrap: str, filled: str) -> None:
    class Failing(RebalanceListener):
        def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
            raise LookupError("assigned")

        def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
            raise LookupError("revoked")

    class Closing(ConsumerInterceptor):
        closed = False

        def close(self) -> None:
            self.closed = True

    closing = Closing()
    consumer = Consumer[Any, Any](settings(bootstrap, filled), interceptors=[closing])
    consumer.subscribe([filled], listener=Failing())
    found: list[Any] = []
    with pytest.raises(LookupError, match="assigned"):
        while True:
            found += consumer.poll(1.0)
    while len(found) < RECORDS:
        found += consumer.poll(1.0)
    assert numbers(found) == list(range(RECORDS))
    with pytest.raises(LookupError, match="revoked"):
        consumer.close()
    assert closing.closed


def test_records_polled_with_a_failing_listener_are_read_again(bootstrap: str, filled: str) -> None:
    """As when a rebalance comes between the records that one poll finds."""
    with Consumer[Any, Any](settings(bootstrap, filled, **{"max.poll.records": 2})) as consumer:
        consumer.subscribe([filled])
        found: list[Any] = []
        while not found:
            found += consumer.poll(1.0)
        consumer._listener_errors.append(LookupError("just now"))
        with pytest.raises(LookupError):
            consumer.poll(60.0)
        while len(found) < RECORDS:
            found += consumer.poll(1.0)
        assert numbers(found) == list(range(RECORDS))


def test_cancelled_poll_loses_no_records(bootstrap: str, filled: str) -> None:
    async def main() -> list[int]:
        found: list[Any] = []
        config = settings(bootstrap, filled, **{"max.poll.records": 5})
        async with AsyncConsumer[Any, Any](config) as consumer:
            consumer.subscribe([filled])
            while not found:
                # Cancelled before it has its answer, and it may find something after that.
                await cancelled_poll(consumer, 0.3)
                await asyncio.sleep(0.4)
                found += await consumer.poll(0.0)
            while len(found) < 5:
                found += await consumer.poll(1.0)
            # And one that nobody comes back for.
            await cancelled_poll(consumer, 10.0)
        return numbers(found)

    handled = asyncio.run(asyncio.wait_for(main(), 60))
    assert handled + rest(bootstrap, filled) == list(range(RECORDS))


async def cancelled_poll(consumer: AsyncConsumer[Any, Any], timeout: float) -> None:
    polling = asyncio.ensure_future(consumer.poll(timeout))
    await asyncio.sleep(0)
    polling.cancel()
    await asyncio.wait([polling])


def test_async_iteration_handles_only_the_records_it_yielded(bootstrap: str, filled: str) -> None:
    async def main() -> list[int]:
        found: list[Any] = []
        async with AsyncConsumer[Any, Any](settings(bootstrap, filled)) as consumer:
            consumer.subscribe([filled])
            async for record in consumer:
                found.append(record)
                if len(found) == 3:
                    break
        return numbers(found)

    assert asyncio.run(asyncio.wait_for(main(), 60)) == [0, 1, 2]
    assert rest(bootstrap, filled) == [3, 4, 5, 6, 7, 8, 9]


def test_result_of_an_automatic_commit_does_not_complete_another(bootstrap: str, filled: str) -> None:
    zero = TopicPartition(filled, 0)
    with Consumer[Any, Any](settings(bootstrap, filled, **{"auto.commit.interval.ms": 50})) as consumer:
        consumer.subscribe([filled])
        found: list[Any] = []
        while len(found) < RECORDS:
            found += consumer.poll(1.0)
        consumer.poll(0.0)
        # Its answer lies ready when the next commit is asked for.
        deadline = time.monotonic() + 60
        while consumer.committed([zero])[zero] is None and time.monotonic() < deadline:
            time.sleep(0.05)
        answers: list[Any] = []
        consumer.commit_async({zero: 4}, lambda *answer: answers.append(answer))
        while not answers and time.monotonic() < deadline:
            consumer.poll(0.1)
        assert [(offsets[zero].offset, error) for offsets, error in answers] == [(4, None)]
