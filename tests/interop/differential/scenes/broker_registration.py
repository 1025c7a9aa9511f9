"""Requests of brokers and controllers to the active controller: registration, heartbeats, ISRs, directories.

The scenes act as a second broker, which is unregistered at the end. It has the node's own address, so that
connections to it succeed.
"""

from __future__ import annotations

import uuid
from typing import Any

from moldau.base.ids import ZERO_UUID
from moldau.protocol.apis import APIS
from moldau.protocol.headers import (
    RequestHeader,
    decode_request_header,
    decode_response_header,
    encode_request_header,
)
from moldau.protocol.messages import alter_partition, assign_replicas_to_dirs, controller_registration
from moldau.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from moldau.protocol.messages.api_versions import ApiVersionsRequest
from moldau.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from moldau.protocol.messages.broker_registration import BrokerRegistrationRequest, Feature, Listener
from moldau.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from moldau.protocol.messages.describe_cluster import DescribeClusterRequest
from moldau.protocol.messages.envelope import EnvelopeRequest
from moldau.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from moldau.protocol.messages.metadata import MetadataRequest
from moldau.protocol.messages.unregister_broker import UnregisterBrokerRequest
from moldau.protocol.schema import Message, decode, encode_bytes
from moldau.security.principal import KafkaPrincipal, encode_principal
from tests.harness.waiting import eventually
from tests.interop.differential.broker import Broker

SECOND_BROKER = 7
DIRECTORIES = [bytes([9] * 15 + [number]) for number in (1, 2)]
FAR = 1 << 40


class SimulatedBroker:
    """The second broker, from the view of the controller."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.cluster_id = broker.call(DescribeClusterRequest(), 1).cluster_id
        features = broker.call(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 4)
        self._features = [
            Feature(
                name=each.name, min_supported_version=each.min_version, max_supported_version=each.max_version
            )
            for each in features.supported_features
        ]
        self.incarnation = uuid.uuid4().bytes
        self.epoch = -1

    def ask(self, label: str, request: Message, version: int = 0) -> Any:
        return self._broker.ask(label, request, version, controller=True)

    def register(self, label: str, version: int = 4, **fields: Any) -> Any:
        asked = {
            "broker_id": SECOND_BROKER,
            "cluster_id": self.cluster_id,
            "incarnation_id": self.incarnation,
            "listeners": [Listener(name="PLAINTEXT", host="127.0.0.1", port=self._broker.port)],
            "features": self._features,
            "rack": "a",
            **fields,
        }
        if version >= 2:
            asked.setdefault("log_dirs", DIRECTORIES)
        answer = self._broker.call(BrokerRegistrationRequest(**asked), version, controller=True)
        if answer.error_code == 0:
            self.epoch = answer.broker_epoch
            answer.broker_epoch = 1
        self._broker.note(f"v{version} register {label}", answer)
        return answer

    def without_feature(self, name: str) -> list[Feature]:
        return [each for each in self._features if each.name != name]

    def heartbeat(self, label: str, version: int = 2, **fields: Any) -> Any:
        asked = {
            "broker_id": SECOND_BROKER,
            "broker_epoch": self.epoch,
            "current_metadata_offset": FAR,
            **fields,
        }
        return self.ask(f"v{version} heartbeat {label}", BrokerHeartbeatRequest(**asked), version)

    def unregister(self, label: str = "unregister", *, controller: bool = True) -> Any:
        request = UnregisterBrokerRequest(broker_id=SECOND_BROKER)
        return self._broker.ask(label, request, 0, controller=controller)


def registrations(broker: Broker) -> None:
    second = SimulatedBroker(broker)
    for version in range(5):
        second.incarnation = uuid.uuid4().bytes
        second.register("another cluster", version, cluster_id="nobody")
        second.register(
            "without metadata.version", version, features=second.without_feature("metadata.version")
        )
        old = Feature(name="metadata.version", min_supported_version=1, max_supported_version=2)
        second.register(
            "with an old version", version, features=[*second.without_feature("metadata.version"), old]
        )
        if version >= 1:
            second.register("migrating from ZooKeeper", version, is_migrating_zk_broker=True)
        if version >= 2:
            second.register("without directories", version, log_dirs=[])
            second.register("with a reserved directory", version, log_dirs=[ZERO_UUID])
            second.register("with a directory twice", version, log_dirs=[DIRECTORIES[0]] * 2)
            second.register("valid", version)
            second.register("repeated", version)
            second.register("another incarnation", version, incarnation_id=uuid.uuid4().bytes)
            second.register("directories of another broker", version, broker_id=SECOND_BROKER + 1)
            second.unregister(f"v{version} unregister", controller=version % 2 == 0)
        else:
            second.register("without directories", version)
    second.unregister("unregister an unregistered broker")
    second.ask("unregister broker -1", UnregisterBrokerRequest(broker_id=-1))


def heartbeats(broker: Broker) -> None:
    second = SimulatedBroker(broker)
    for version in (0, 1, 2):
        second.heartbeat("of an unknown broker", version)
        second.register("for heartbeats")
        second.heartbeat("far behind", version, current_metadata_offset=0)
        second.heartbeat("that stays fenced", version, want_fence=True)
        second.heartbeat("with an old broker epoch", version, broker_epoch=second.epoch - 1)
        second.heartbeat("with a future broker epoch", version, broker_epoch=second.epoch + 1)
        second.heartbeat("caught up", version)
        second.heartbeat("again", version)
        if version >= 1:
            second.heartbeat("with an unknown directory offline", version, offline_log_dirs=[bytes([8] * 16)])
            second.heartbeat("with a directory offline", version, offline_log_dirs=[DIRECTORIES[1]])
        second.heartbeat("that wants to be fenced", version, want_fence=True)
        second.heartbeat("that is unfenced again", version)
        second.heartbeat("that wants to shut down", version, want_shut_down=True)
        second.unregister(f"v{version} unregister")
        second.incarnation = uuid.uuid4().bytes


def with_a_topic(broker: Broker, second: SimulatedBroker, name: str) -> bytes:
    """Create a topic of three partitions; the simulated broker leads two, the node has replicas of all."""
    second.register(f"for {name}")
    second.heartbeat(f"for {name}")
    name = broker.name(name)
    assignments = [
        CreatableReplicaAssignment(partition_index=index, broker_ids=ids)
        for index, ids in enumerate(([SECOND_BROKER, 1], [SECOND_BROKER, 1], [1, SECOND_BROKER]))
    ]
    topic = CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, assignments=assignments)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
    created = broker.call(request, 7, controller=True).topics[0]
    if created.error_code != 0:
        raise AssertionError(f"{name} was not created: {created!r}")
    broker.knows(name, created.topic_id)
    return bytes(created.topic_id)


def in_sync_replicas(broker: Broker) -> None:
    second = SimulatedBroker(broker)
    others_id = broker.topic_ids[broker.topic("isr-of-others")]
    topic_id = ZERO_UUID

    def ask(label: str, version: int, isr: list[int] | None = None, **fields: Any) -> Any:
        whose = {"broker_id": SECOND_BROKER, "broker_epoch": second.epoch}
        whose |= {name: fields.pop(name) for name in list(whose) if name in fields}
        wanted = fields.pop("topic_id", topic_id)
        epochs = fields.pop("epochs", {SECOND_BROKER: second.epoch})
        members = [SECOND_BROKER, 1] if isr is None else isr
        if version >= 3:
            fields["new_isr_with_epochs"] = [
                alter_partition.BrokerState(broker_id=each, broker_epoch=epochs.get(each, -1))
                for each in members
            ]
        else:
            fields["new_isr"] = members
        part = alter_partition.RequestPartitionData(**{"partition_index": 0, **fields})
        topics = [alter_partition.RequestTopicData(topic_id=wanted, partitions=[part])]
        request = alter_partition.AlterPartitionRequest(topics=topics, **whose)
        return second.ask(f"v{version} {label}", request, version)

    for version in (2, 3):
        topic_id = with_a_topic(broker, second, f"isr-{version}")
        ask("unchanged", version)
        ask("without the node", version, [SECOND_BROKER], partition_index=1)
        ask("without the node, again", version, [SECOND_BROKER], partition_index=1)
        ask("with the node, as it was", version, partition_index=1)
        ask("with the node", version, partition_index=1, partition_epoch=1)
        ask("in an old epoch", version, partition_epoch=-1)
        ask("in a future epoch", version, partition_epoch=9)
        ask("in a future leader epoch", version, leader_epoch=5)
        ask("in an old leader epoch", version, leader_epoch=-1)
        ask("of an unknown broker", version, [])
        ask("without its leader", version, [1])
        ask("with an unknown broker", version, [SECOND_BROKER, 99])
        ask("a partition led by another broker", version, partition_index=2)
        ask("a partition without a replica", version, [1], topic_id=others_id)
        ask("an unknown partition", version, partition_index=9)
        ask("an unknown topic", version, topic_id=bytes(range(16)))
        ask("an old broker epoch", version, broker_epoch=second.epoch - 1)
        ask("an unknown broker", version, broker_id=99)
        ask("a recovery that was not started", version, leader_recovery_state=1)
        request = alter_partition.AlterPartitionRequest(broker_id=SECOND_BROKER, broker_epoch=second.epoch)
        second.ask(f"v{version} nothing", request, version)
    ask("an old broker epoch of a replica", 3, [SECOND_BROKER], epochs={SECOND_BROKER: second.epoch - 1})
    second.unregister()


def producer_ids(broker: Broker) -> None:
    second = SimulatedBroker(broker)
    second.ask("of an unknown broker", AllocateProducerIdsRequest(broker_id=SECOND_BROKER, broker_epoch=1))
    second.register("for producer ids")
    request = AllocateProducerIdsRequest(broker_id=SECOND_BROKER, broker_epoch=second.epoch)
    first_block = broker.call(request, 0, controller=True)
    second_block = broker.call(request, 0, controller=True)
    broker.note("steps", [second_block.producer_id_start - first_block.producer_id_start])
    first_block.producer_id_start = 0
    broker.note("a block", first_block)
    second.ask(
        "an old broker epoch",
        AllocateProducerIdsRequest(broker_id=SECOND_BROKER, broker_epoch=second.epoch - 1),
    )
    second.ask("no epoch", AllocateProducerIdsRequest(broker_id=SECOND_BROKER, broker_epoch=-1))
    second.unregister()


def directories(broker: Broker) -> None:
    second = SimulatedBroker(broker)
    others_id = broker.topic_ids[broker.topic("directories-of-others")]
    topic_id = with_a_topic(broker, second, "directories")

    def ask(label: str, directory: bytes, *partitions: int, **fields: Any) -> None:
        wanted = fields.pop("topic_id", topic_id)
        parts = [assign_replicas_to_dirs.RequestPartitionData(partition_index=each) for each in partitions]
        topics = [assign_replicas_to_dirs.RequestTopicData(topic_id=wanted, partitions=parts)]
        whose = {"broker_id": SECOND_BROKER, "broker_epoch": second.epoch, **fields}
        places = [assign_replicas_to_dirs.RequestDirectoryData(id=directory, topics=topics)]
        request = assign_replicas_to_dirs.AssignReplicasToDirsRequest(directories=places, **whose)
        answer = broker.call(request, 0, controller=True)
        for place in answer.directories:
            # Replace directory ids by names.
            place.id = DIRECTORIES[0] if place.id == directory else bytes(range(16))
        broker.note(label, answer)

    ask("two of them", DIRECTORIES[0], 0, 1)
    ask("one of them in another directory", DIRECTORIES[1], 1)
    ask("a partition without a replica", DIRECTORIES[0], 0, topic_id=others_id)
    ask("an unknown partition", DIRECTORIES[0], 9)
    ask("an unknown topic", DIRECTORIES[0], 0, topic_id=bytes(range(16)))
    ask("an unknown directory", bytes([5] * 16), 0)
    ask("no directory", ZERO_UUID, 0)
    ask("the lost directory", bytes(15) + b"\1", 0)
    ask("an old broker epoch", DIRECTORIES[0], 0, broker_epoch=second.epoch - 1)
    ask("an unknown broker", DIRECTORIES[0], 0, broker_id=99)
    ask("nothing", DIRECTORIES[0])
    second.unregister()


def controllers(broker: Broker) -> None:
    listener = controller_registration.Listener(
        name="CONTROLLER", host="127.0.0.1", port=broker.controller_port
    )
    feature = controller_registration.Feature(
        name="metadata.version", min_supported_version=7, max_supported_version=30
    )
    for label, fields in (
        ("one", {}),
        ("repeated", {}),
        ("without listeners", {"listeners": []}),
        ("without features", {"features": []}),
    ):
        asked = {
            "controller_id": 1,
            "incarnation_id": bytes(range(16)),
            "listeners": [listener],
            "features": [feature],
            **fields,
        }
        request = controller_registration.ControllerRegistrationRequest(**asked)
        broker.ask(label, request, 0, controller=True)


def unpacked(request: bytes, response: bytes) -> Any:
    header, _ = decode_request_header(request)
    _, start = decode_response_header(header.api_key, header.api_version, response)
    return decode(APIS[header.api_key].response, response, header.api_version, start)


def envelopes(broker: Broker) -> None:
    def inside(request: Message, version: int) -> bytes:
        head = encode_request_header(RequestHeader(request.API_KEY, version, 5, "second"))
        return head + encode_bytes(request, version)

    topic = CreatableTopic(name=broker.name("enveloped"), num_partitions=1, replication_factor=1)
    create = inside(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 4)
    listing = inside(ListPartitionReassignmentsRequest(topics=None, timeout_ms=5000), 0)
    versions = inside(ApiVersionsRequest(), 0)
    metadata = inside(MetadataRequest(topics=None), 9)
    unknown = encode_request_header(RequestHeader(19, 4, 5, "second")).replace(
        b"\0\x13\0\4", b"\0\x13\0\x63", 1
    )
    user, here = encode_principal(KafkaPrincipal("User", "alice")), bytes([127, 0, 0, 1])
    for label, data, principal, address in (
        ("a listing", listing, user, here),
        ("a new topic", create, user, here),
        ("a new topic again", create, user, bytes(16)),
        ("a bad address", listing, user, b"\1\2"),
        ("no address", listing, user, b""),
        ("no principal", listing, None, here),
        ("a bad principal", listing, b"\0\0\xff", here),
        ("a principal of an unknown version", listing, b"\0\7" + user[2:], here),
        ("a request that is not forwarded", versions, user, here),
        ("a request that controllers do not serve", metadata, user, here),
        ("an unknown version", unknown, user, here),
        ("half a request", create[:20], user, here),
        (
            "an envelope",
            inside(EnvelopeRequest(request_data=listing, client_host_address=here), 0),
            user,
            here,
        ),
    ):
        request = EnvelopeRequest(request_data=data, request_principal=principal, client_host_address=address)
        answer = broker.ask(label, request, 0, controller=True)
        if answer.response_data is not None:
            broker.transcript.pop()
            broker.note(label, unpacked(data, answer.response_data))
    eventually(lambda: broker.call(MetadataRequest(topics=None), 9).topics, what="the topic")


SCENES = {
    "controller, broker registration": registrations,
    "controller, heartbeats": heartbeats,
    "controller, in-sync replicas": in_sync_replicas,
    "controller, producer ids": producer_ids,
    "controller, directories": directories,
    "controller, controller registration": controllers,
    "controller, envelopes": envelopes,
}
