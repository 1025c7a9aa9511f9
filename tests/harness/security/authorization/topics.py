"""Cases of requests about topics and their records."""

from __future__ import annotations

from typing import Any

from moldau.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from moldau.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from moldau.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from moldau.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from moldau.protocol.messages.describe_topic_partitions import TopicRequest as DescribedTopic
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from moldau.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from moldau.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from moldau.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.protocol.schema import Message
from tests.harness.security.authorization.case import (
    NOT_REQUESTED,
    TOPIC_DENIED,
    TRANSACTIONAL_ID_DENIED,
    Acl,
    Case,
    Outcome,
    World,
    authorization_codes,
    cluster,
    denied,
    topic,
    transactional_id,
)
from tests.harness.wire.batches import batch

UNKNOWN_ID = b"\x07" * 16
_TRANSACTIONAL = 0x10


def _produce(name: str = "", topic_id: bytes | None = None, **transaction: Any) -> ProduceRequest:
    records = batch(**transaction)
    data = PartitionProduceData(index=0, records=memoryview(records))
    asked = TopicProduceData(name=name, partition_data=[data])
    if topic_id is not None:
        asked.topic_id = topic_id
    return ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[asked])


def _produce_in_transaction(world: World) -> ProduceRequest:
    request = _produce("orders", attributes=_TRANSACTIONAL, producer_id=4000, producer_epoch=0, sequence=0)
    request.transactional_id = world.transactional_id
    return request


def _fetch(name: str = "", topic_id: bytes | None = None, *, replica_id: int = -1) -> FetchRequest:
    asked = FetchTopic(topic=name, partitions=[FetchPartition(partition=0, partition_max_bytes=1 << 20)])
    if topic_id is not None:
        asked.topic_id = topic_id
    return FetchRequest(
        replica_id=replica_id, max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, session_epoch=-1, topics=[asked]
    )


def _list_offsets(*names: str) -> ListOffsetsRequest:
    partitions = [ListOffsetsPartition(partition_index=0, timestamp=-1)]
    return ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=partitions) for name in names]
    )


def _metadata(*names: str, create: bool = False, **more: bool) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=create, **more)


def _metadata_by_id(topic_id: bytes) -> MetadataRequest:
    topics = [MetadataRequestTopic(topic_id=topic_id, name=None)]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=False)


def _visible(response: Any) -> Outcome:
    return tuple(sorted(each.name for each in response.topics if each.name in ("orders", "secrets")))


def _each_topic(response: Any) -> Outcome:
    """Return name, error code, whether the id is shown, and authorized operations of each topic."""
    return tuple(
        (each.name, each.error_code, any(each.topic_id), each.topic_authorized_operations)
        for each in sorted(response.topics, key=lambda each: each.name or "")
    )


def _offsets_by_topic(response: Any) -> Outcome:
    return tuple(sorted((each.name, each.partitions[0].error_code) for each in response.topics))


def _create(name: str) -> CreateTopicsRequest:
    topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1)]
    return CreateTopicsRequest(topics=topics, timeout_ms=10_000, validate_only=True)


def _created(response: Any) -> Outcome:
    """Return the error of the creation and of the configs."""
    return tuple((each.error_code, each.topic_config_error_code) for each in response.topics)


def _delete(name: str) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=10_000)


def _delete_by_id(topic_id: bytes) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=[DeleteTopicState(name=None, topic_id=topic_id)], timeout_ms=10_000)


def _deleted(response: Any) -> Outcome:
    return tuple((each.name is not None, each.error_code) for each in response.responses)


def _delete_records(name: str) -> DeleteRecordsRequest:
    partitions = [DeleteRecordsPartition(partition_index=0, offset=0)]
    return DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=name, partitions=partitions)], timeout_ms=10_000
    )


def _leader_epoch(name: str) -> OffsetForLeaderEpochRequest:
    partitions = [OffsetForLeaderPartition(partition=0, current_leader_epoch=-1, leader_epoch=0)]
    return OffsetForLeaderEpochRequest(
        replica_id=-1, topics=[OffsetForLeaderTopic(topic=name, partitions=partitions)]
    )


def _describe(*names: str) -> DescribeTopicPartitionsRequest:
    return DescribeTopicPartitionsRequest(topics=[DescribedTopic(name=name) for name in names])


def _producers(name: str) -> Message:
    return DescribeProducersRequest(topics=[TopicRequest(name=name, partition_indexes=[0])])


def _create_partitions(name: str) -> CreatePartitionsRequest:
    return CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=name, count=3, assignments=None)],
        timeout_ms=10_000,
        validate_only=True,
    )


_READ_AND_DESCRIBE = 1 << 3 | 1 << 8
_EVERY_TOPIC = Acl(*topic("WRITE", "*"))
_CREATED_TOPIC = "auto-{user}"

CASES: list[Case] = [
    Case("Produce", 12, lambda world: _produce("orders"), TOPIC_DENIED, (topic("WRITE"),)),
    Case(
        "Produce with a DENY",
        12,
        lambda world: _produce("orders"),
        TOPIC_DENIED,
        (topic("WRITE"),),
        also=(
            ((_EVERY_TOPIC,), ()),
            ((topic("ALL"),), ()),
            ((topic("ALL"), denied(topic("WRITE"))), TOPIC_DENIED),
            ((topic("DESCRIBE"),), TOPIC_DENIED),
            ((topic("READ"), topic("CREATE")), TOPIC_DENIED),
        ),
    ),
    Case(
        "Produce to a missing topic",
        12,
        lambda world: _produce("missing"),
        TOPIC_DENIED,
        (topic("WRITE", "missing"),),
        allowed=(3,),
    ),
    Case(
        "Produce by id",
        13,
        lambda world: _produce(topic_id=world.topic_ids["orders"]),
        TOPIC_DENIED,
        (topic("WRITE"),),
    ),
    Case("Produce by unknown id", 13, lambda world: _produce(topic_id=UNKNOWN_ID), (100,)),
    Case(
        "Produce in a transaction",
        11,
        _produce_in_transaction,
        TRANSACTIONAL_ID_DENIED,
        (transactional_id("WRITE"), topic("WRITE")),
        lacking=(TRANSACTIONAL_ID_DENIED, TOPIC_DENIED),
        observe=authorization_codes,
    ),
    Case("Fetch", 12, lambda world: _fetch("orders"), TOPIC_DENIED, (topic("READ"),)),
    Case(
        "Fetch with DESCRIBE",
        12,
        lambda world: _fetch("orders"),
        TOPIC_DENIED,
        (topic("READ"),),
        also=(
            ((topic("DESCRIBE"),), TOPIC_DENIED),
            ((topic("READ", "*"), denied(topic("READ"))), TOPIC_DENIED),
            ((cluster("CLUSTER_ACTION"),), TOPIC_DENIED),
        ),
    ),
    Case(
        "Fetch of a missing topic",
        12,
        lambda world: _fetch("missing"),
        TOPIC_DENIED,
        (topic("READ", "missing"),),
        allowed=(3,),
    ),
    Case(
        "Fetch by id",
        16,
        lambda world: _fetch(topic_id=world.topic_ids["orders"]),
        TOPIC_DENIED,
        (topic("READ"),),
    ),
    Case("Fetch by unknown id", 16, lambda world: _fetch(topic_id=UNKNOWN_ID), (100,)),
    Case(
        "Fetch of a follower",
        12,
        lambda world: _fetch("orders", replica_id=7),
        TOPIC_DENIED,
        (cluster("CLUSTER_ACTION"),),
        allowed=(6,),
        also=(((topic("ALL"),), TOPIC_DENIED),),
    ),
    Case("ListOffsets", 7, lambda world: _list_offsets("orders"), TOPIC_DENIED, (topic("DESCRIBE"),)),
    Case(
        "ListOffsets of two topics",
        7,
        lambda world: _list_offsets("orders", "secrets"),
        (("orders", 29), ("secrets", 29)),
        (topic("DESCRIBE"),),
        allowed=(("orders", 0), ("secrets", 29)),
        also=(((topic("WRITE"),), (("orders", 0), ("secrets", 29))),),
        observe=_offsets_by_topic,
    ),
    Case(
        "ListOffsets of a missing topic",
        7,
        lambda world: _list_offsets("missing"),
        TOPIC_DENIED,
        (topic("DESCRIBE", "missing"),),
        allowed=(3,),
    ),
    Case("Metadata", 12, lambda world: _metadata("orders"), TOPIC_DENIED, (topic("DESCRIBE"),)),
    Case(
        "Metadata of an existing and a missing topic",
        12,
        lambda world: _metadata("orders", "missing", include_topic_authorized_operations=True),
        (("missing", 29, False, NOT_REQUESTED), ("orders", 29, False, NOT_REQUESTED)),
        (topic("READ"),),
        allowed=(("missing", 29, False, NOT_REQUESTED), ("orders", 0, True, _READ_AND_DESCRIBE)),
        also=(
            (
                (topic("DESCRIBE", "missing"),),
                (("missing", 3, False, 1 << 8), ("orders", 29, False, NOT_REQUESTED)),
            ),
        ),
        observe=_each_topic,
    ),
    Case(
        "Metadata by id",
        12,
        lambda world: _metadata_by_id(world.topic_ids["orders"]),
        ((None, 29, True, NOT_REQUESTED),),
        (topic("DESCRIBE"),),
        allowed=(("orders", 0, True, NOT_REQUESTED),),
        observe=_each_topic,
    ),
    Case("Metadata by unknown id", 12, lambda world: _metadata_by_id(UNKNOWN_ID), (100,)),
    Case(
        "Metadata of all topics",
        12,
        lambda world: MetadataRequest(topics=None),
        (),
        (topic("DESCRIBE"),),
        allowed=("orders",),
        also=(((topic("READ", "*"),), ("orders", "secrets")),),
        observe=_visible,
    ),
    Case(
        "Metadata of all topics",
        0,
        lambda world: MetadataRequest(topics=[]),
        (),
        (topic("ALTER"),),
        allowed=("orders",),
        observe=_visible,
    ),
    Case(
        "Metadata that creates a topic",
        12,
        lambda world: _metadata(f"auto-{world.user}", create=True),
        TOPIC_DENIED,
        (topic("DESCRIBE", _CREATED_TOPIC), topic("CREATE", _CREATED_TOPIC)),
        lacking=(TOPIC_DENIED, TOPIC_DENIED),
        also=(
            ((topic("WRITE", _CREATED_TOPIC), cluster("CREATE")), ()),
            ((cluster("CREATE"),), TOPIC_DENIED),
        ),
        observe=authorization_codes,
    ),
    Case(
        "Metadata with operations of the cluster",
        8,
        lambda world: _metadata(include_cluster_authorized_operations=True),
        (0,),
        (cluster("DESCRIBE"),),
        allowed=(1 << 8,),
        also=(((cluster("ALTER"),), (1 << 7 | 1 << 8,)),),
        observe=lambda response: (response.cluster_authorized_operations,),
    ),
    Case(
        "CreateTopics",
        7,
        lambda world: _create(f"new-{world.user}"),
        ((29, 0),),
        (topic("CREATE", "new-{user}"),),
        allowed=((0, 29),),
        also=(
            ((topic("CREATE", "new-{user}"), topic("DESCRIBE_CONFIGS", "new-{user}")), ((0, 0),)),
            ((cluster("CREATE"),), ((0, 29),)),
            ((topic("DESCRIBE_CONFIGS", "new-{user}"),), ((29, 0),)),
        ),
        observe=_created,
    ),
    Case(
        "CreateTopics of an existing topic",
        7,
        lambda world: _create("secrets"),
        TOPIC_DENIED,
        (topic("CREATE", "secrets"),),
        allowed=(36,),
    ),
    Case(
        "DeleteTopics",
        6,
        lambda world: _delete(f"doomed-{world.user}"),
        ((True, 29),),
        (topic("DELETE", "doomed-{user}"),),
        allowed=((True, 0),),
        also=(((topic("DESCRIBE", "doomed-{user}"),), ((True, 29),)), ((cluster("ALL"),), ((True, 0),))),
        observe=_deleted,
        topics=("doomed-{user}",),
    ),
    Case(
        "DeleteTopics of a missing topic",
        6,
        lambda world: _delete("missing"),
        TOPIC_DENIED,
        (topic("DESCRIBE", "missing"),),
        allowed=(3,),
        also=(((topic("DELETE", "missing"),), (3,)),),
    ),
    Case(
        "DeleteTopics by id",
        6,
        lambda world: _delete_by_id(world.topic_ids[f"condemned-{world.user}"]),
        ((False, 29),),
        (topic("DELETE", "condemned-{user}"),),
        allowed=((True, 0),),
        also=(((topic("DESCRIBE", "condemned-{user}"),), ((True, 29),)),),
        observe=_deleted,
        topics=("condemned-{user}",),
    ),
    Case("DeleteTopics by unknown id", 6, lambda world: _delete_by_id(UNKNOWN_ID), (100,)),
    Case("DeleteRecords", 2, lambda world: _delete_records("orders"), TOPIC_DENIED, (topic("DELETE"),)),
    Case(
        "DeleteRecords of a missing topic",
        2,
        lambda world: _delete_records("missing"),
        TOPIC_DENIED,
        (topic("DELETE", "missing"),),
        allowed=(3,),
    ),
    Case(
        "OffsetForLeaderEpoch",
        4,
        lambda world: _leader_epoch("orders"),
        TOPIC_DENIED,
        (topic("DESCRIBE"),),
        also=(((cluster("CLUSTER_ACTION"),), ()),),
    ),
    Case("DescribeProducers", 0, lambda world: _producers("orders"), TOPIC_DENIED, (topic("READ"),)),
    Case(
        "DescribeProducers of a missing topic",
        0,
        lambda world: _producers("missing"),
        TOPIC_DENIED,
        (topic("READ", "missing"),),
        allowed=(3,),
    ),
    Case(
        "DescribeTopicPartitions",
        0,
        lambda world: _describe("orders", "missing"),
        (("missing", 29, False, NOT_REQUESTED), ("orders", 29, False, NOT_REQUESTED)),
        (topic("READ"),),
        allowed=(("missing", 29, False, NOT_REQUESTED), ("orders", 0, True, _READ_AND_DESCRIBE)),
        observe=_each_topic,
    ),
    Case(
        "DescribeTopicPartitions of all topics",
        0,
        lambda world: _describe(),
        (),
        (topic("DESCRIBE"),),
        allowed=("orders",),
        observe=_visible,
    ),
    Case(
        "CreatePartitions",
        3,
        lambda world: _create_partitions("orders"),
        TOPIC_DENIED,
        (topic("ALTER"),),
        also=(((cluster("ALTER"), topic("CREATE")), TOPIC_DENIED),),
    ),
    Case(
        "CreatePartitions of a missing topic",
        3,
        lambda world: _create_partitions("missing"),
        TOPIC_DENIED,
        (topic("ALTER", "missing"),),
        allowed=(3,),
    ),
]
