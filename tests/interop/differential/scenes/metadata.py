"""Requests about brokers and topics: ApiVersions, Metadata, and the Describe APIs."""

from __future__ import annotations

from moldau.metadata.features import FEATURES
from moldau.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from moldau.protocol.messages.describe_cluster import DescribeClusterRequest
from moldau.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    RequestPartitionData,
    RequestTopicData,
)
from moldau.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from moldau.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from moldau.protocol.schema import decode
from moldau.server.dispatch.apis import served_apis
from moldau.server.settings import BROKER, CONTROLLER
from tests.harness.waiting import eventually
from tests.interop.differential.broker import Broker

UNKNOWN_ID = bytes(range(16))
BAD_NAMES = ("", ".", "..", "a/b", "a b", "x" * 250, "é")


def api_versions(broker: Broker) -> None:
    for controller in (False, True):
        where = "controller" if controller else "broker"
        for version in range(5):
            asked = ApiVersionsRequest(client_software_name="me", client_software_version="1.0-x")
            answer = broker.call(asked, version, controller=controller)
            _keep_supported(answer, CONTROLLER if controller else BROKER)
            broker.note(f"v{version} {where}", answer)
        for name, number in (("", "1"), ("me", ""), ("-me", "1"), ("me", "1 0"), ("me/you", "1"), ("é", "1")):
            asked = ApiVersionsRequest(client_software_name=name, client_software_version=number)
            for version in (3, 4):
                broker.ask(f"v{version} {where} {name!r} {number!r}", asked, version, controller=controller)
    for version in (5, 99, -1):
        frame = broker.raw(f"version {version}", 18, version, b"\0" * 4)
        if frame is not None:
            broker.note(f"version {version}, said", decode(ApiVersionsResponse, frame, 0, 4))


def _keep_supported(answer: ApiVersionsResponse, role: str) -> None:
    """Keep only the APIs and features that Moldau has; docs/COMPATIBILITY.md lists the others."""
    served = served_apis(role)
    features = {name for name, feature in FEATURES.items() if feature.served > 0}
    answer.api_keys = [each for each in answer.api_keys if each.api_key in served]
    answer.supported_features = [each for each in answer.supported_features if each.name in features]
    answer.finalized_features = [each for each in answer.finalized_features if each.name in features]


def unknown_requests(broker: Broker) -> None:
    for label, key, version in (
        ("an unknown API", 999, 0),
        ("a removed API", 4, 0),
        ("Metadata 99", 3, 99),
        ("Produce 2", 0, 2),
        ("Fetch 3", 1, 3),
        ("an API of controllers", 52, 0),
    ):
        broker.raw(label, key, version, b"\0" * 16)


def named(*names: str | None) -> list[MetadataRequestTopic]:
    return [MetadataRequestTopic(name=name) for name in names]


def metadata(broker: Broker) -> None:
    topic = broker.topic("metadata", 3)
    for version in range(14):
        _metadata(broker, version, topic)


def _metadata(broker: Broker, version: int, topic: str) -> None:
    topic_id = broker.topic_ids[topic]

    def say(label: str, asked: MetadataRequest) -> None:
        if version >= 4:
            asked.allow_auto_topic_creation = False
        broker.ask(f"v{version} {label}", asked, version)

    say("one topic", MetadataRequest(topics=named(topic)))
    say("the same twice", MetadataRequest(topics=named(topic, topic)))
    for name in BAD_NAMES:
        say(f"name {name[:9]!r}", MetadataRequest(topics=named(name)))
    _all_topics(broker, version, topic)
    if version >= 4:
        say("unknown", MetadataRequest(topics=named(broker.name("nobody"))))
        say("internal and unknown", MetadataRequest(topics=named("__transaction_state")))
    if 8 <= version <= 10:
        operations = MetadataRequest(
            topics=named(topic),
            include_cluster_authorized_operations=True,
            include_topic_authorized_operations=True,
        )
        say("operations", operations)
    elif version > 10:
        asked = named(topic, broker.name("nobody"), "a/b")
        say("operations", MetadataRequest(topics=asked, include_topic_authorized_operations=True))
    if version >= 10:
        for label, asked in (
            ("by id", MetadataRequestTopic(topic_id=topic_id, name=None)),
            ("by unknown id", MetadataRequestTopic(topic_id=UNKNOWN_ID, name=None)),
            ("by id and name", MetadataRequestTopic(topic_id=topic_id, name=topic)),
            ("by unknown id and name", MetadataRequestTopic(topic_id=UNKNOWN_ID, name=topic)),
            ("neither id nor name", MetadataRequestTopic(name=None)),
        ):
            say(label, MetadataRequest(topics=[asked]))
        say("operations by id", MetadataRequest(
            topics=[
                MetadataRequestTopic(topic_id=topic_id, name=None),
                MetadataRequestTopic(topic_id=UNKNOWN_ID, name=None),
            ],
            include_topic_authorized_operations=True,
        ))  # fmt: skip
        both = [MetadataRequestTopic(topic_id=topic_id, name=None), MetadataRequestTopic(name=topic)]
        say("one by id, one by name", MetadataRequest(topics=both))


def _all_topics(broker: Broker, version: int, topic: str) -> None:
    for label, topics in (("null", None), ("empty", [])):
        if topics is None and version == 0:
            continue
        answer = broker.call(MetadataRequest(topics=topics, allow_auto_topic_creation=True), version)
        answer.topics = [each for each in answer.topics if each.name == topic]
        broker.note(f"v{version} all topics, {label}", answer)


def auto_creation(broker: Broker) -> None:
    """Apache Kafka responds before it has created the topic; the final state is compared."""
    for version in (0, 3, 4, 9, 12):
        name = broker.name(f"auto-{version}")
        request = MetadataRequest(topics=named(name), allow_auto_topic_creation=True)
        eventually(lambda: broker.call(request, version).topics[0].error_code == 0)  # noqa: B023
        answer = broker.call(request, 12)
        broker.knows(name, answer.topics[0].topic_id)
        broker.note(f"v{version} created", answer)
    for name in ("a/b", "", "__cluster_metadata"):
        request = MetadataRequest(topics=named(name), allow_auto_topic_creation=True)
        broker.ask(f"{name!r} is not created", request, 12)
    taken = broker.topic("auto.dots")
    colliding = MetadataRequest(topics=named(taken.replace(".", "_")), allow_auto_topic_creation=True)
    broker.ask("a name that collides", colliding, 12)


def cluster(broker: Broker) -> None:
    for version in (0, 1, 2):
        for controller in (False, True):
            for kind in (1, 2, 0, 3) if version >= 1 else (1,):
                for operations in (False, True):
                    asked = DescribeClusterRequest(
                        endpoint_type=kind,
                        include_cluster_authorized_operations=operations,
                        include_fenced_brokers=version >= 2 and operations,
                    )
                    where = "controller" if controller else "broker"
                    label = f"v{version} {where}, endpoint type {kind}, operations {operations}"
                    broker.ask(label, asked, version, controller=controller)


def quorum(broker: Broker) -> None:
    def asked(*topics: tuple[str, list[int]]) -> DescribeQuorumRequest:
        return DescribeQuorumRequest(
            topics=[
                RequestTopicData(
                    topic_name=name, partitions=[RequestPartitionData(partition_index=n) for n in indexes]
                )
                for name, indexes in topics
            ]
        )

    for version in (0, 1, 2):
        for controller in (False, True):
            where = "controller" if controller else "broker"
            answer = broker.call(asked(("__cluster_metadata", [0])), version, controller=controller)
            for partition in answer.topics[0].partitions:
                partition.leader_epoch = partition.high_watermark = 0
                for replica in (*partition.current_voters, *partition.observers):
                    replica.log_end_offset = 0
            broker.note(f"v{version} {where}", answer)
            for label, topics in (
                ("another topic", [("nobody", [0])]),
                ("another partition", [("__cluster_metadata", [1])]),
                ("two partitions", [("__cluster_metadata", [0, 1])]),
                ("nothing", []),
                ("no partitions", [("__cluster_metadata", [])]),
            ):
                broker.ask(f"v{version} {where} {label}", asked(*topics), version, controller=controller)


def topic_partitions(broker: Broker) -> None:
    first, second = broker.topic("pages-a", 3), broker.topic("pages-b", 5)
    third = broker.name("pages-c")

    def say(label: str, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> None:
        place = None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1])
        topics = [TopicRequest(name=name) for name in names]
        request = DescribeTopicPartitionsRequest(topics=topics, response_partition_limit=limit, cursor=place)
        broker.ask(label, request, 0)

    say("two topics", second, first)
    say("the same twice", first, first)
    say("unknown", third, first)
    say("bad names", "", "a/b", first)
    for limit in (1, 2, 3, 4, 7, 8, 0, -1):
        say(f"limit {limit}", first, second, third, limit=limit)
    for place in (
        (first, 0),
        (first, 2),
        (first, 3),
        (first, 9),
        (second, 4),
        ("zzz", 0),
        ("", 0),
        (third, 0),
    ):
        say(f"from {place}", first, second, cursor=place)
        say(f"from {place}, limit 2", first, second, limit=2, cursor=place)
        say(f"from {place}, with an unknown one", first, second, third, cursor=place)
    say("a negative cursor", first, cursor=(first, -1))


SCENES = {
    "api versions": api_versions,
    "unknown requests": unknown_requests,
    "metadata": metadata,
    "metadata, auto creation": auto_creation,
    "describe cluster": cluster,
    "describe quorum": quorum,
    "describe topic partitions": topic_partitions,
}
