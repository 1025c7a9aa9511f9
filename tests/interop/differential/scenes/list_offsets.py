"""ListOffsets and OffsetForLeaderEpoch in every version."""

from __future__ import annotations

from moldau.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from moldau.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.harness.wire.batches import batch
from tests.interop.differential.broker import TIME, Broker


def offsets(broker: Broker) -> None:
    topic = broker.topic("offsets", 2)
    broker.fill(topic, 4)
    broker.put(topic, batch(timestamp=TIME - 500))
    stamps = (-1, -2, -3, -4, -5, -6, -7, 0, TIME - 1, TIME, TIME + 1, TIME + 1500, TIME + 3000, TIME + 3001)
    for version in range(1, 12):
        for isolation in (0, 1) if version >= 2 else (0,):
            for stamp in stamps:
                for index in (0, 1):
                    asked = ListOffsetsPartition(partition_index=index, timestamp=stamp)
                    label = f"v{version} isolation {isolation}, {stamp} of {index}"
                    _list(broker, label, version, topic, asked, isolation=isolation)
        for epoch in (0, 1, 5) if version >= 4 else ():
            for stamp in (-1, -2, TIME):
                asked = ListOffsetsPartition(partition_index=0, timestamp=stamp, current_leader_epoch=epoch)
                _list(broker, f"v{version} epoch {epoch}, {stamp}", version, topic, asked)
        first = ListOffsetsPartition(partition_index=0, timestamp=-1)
        second = ListOffsetsPartition(partition_index=0, timestamp=-2)
        _list(broker, f"v{version} the same twice", version, topic, first, second)
        _list(broker, f"v{version} unknown topic", version, "nobody", first)
        unknown = ListOffsetsPartition(partition_index=7, timestamp=-1)
        _list(broker, f"v{version} unknown partition", version, topic, unknown)
        _list(broker, f"v{version} a replica", version, topic, first, replica_id=7)
        _list(broker, f"v{version} a debugging consumer", version, topic, first, replica_id=-2)


def _list(
    broker: Broker, label: str, version: int, topic: str, *asked: ListOffsetsPartition,
    isolation: int = 0, replica_id: int = -1,
) -> None:  # fmt: skip
    topics = [ListOffsetsTopic(name=topic, partitions=list(asked))]
    request = ListOffsetsRequest(replica_id=replica_id, isolation_level=isolation, topics=topics)
    broker.ask(label, request, version)


def leader_epochs(broker: Broker) -> None:
    topic = broker.topic("epochs", 2)
    broker.fill(topic, 2)
    for version in (2, 3, 4):
        for name, index in ((topic, 0), (topic, 1), (topic, 9), ("nobody", 0)):
            for epoch in (-1, 0, 1, 9):
                for current in (-1, 0, 1):
                    asked = OffsetForLeaderPartition(
                        partition=index, leader_epoch=epoch, current_leader_epoch=current
                    )
                    request = OffsetForLeaderEpochRequest(
                        topics=[OffsetForLeaderTopic(topic=name, partitions=[asked])]
                    )
                    broker.ask(f"v{version} {index} epoch {epoch}, current {current}", request, version)
        for replica in (-1, 1, 7) if version >= 3 else ():
            asked = OffsetForLeaderPartition(partition=0, leader_epoch=0, current_leader_epoch=0)
            request = OffsetForLeaderEpochRequest(
                replica_id=replica, topics=[OffsetForLeaderTopic(topic=topic, partitions=[asked])]
            )
            broker.ask(f"v{version} replica {replica}", request, version)


SCENES = {
    "list offsets": offsets,
    "offset for leader epoch": leader_epochs,
}
