"""Admin requests about the cluster: ACLs, elections, reassignments, features, quotas."""

from __future__ import annotations

from moldau.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from moldau.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from moldau.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from moldau.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from moldau.protocol.messages.describe_acls import DescribeAclsRequest
from moldau.protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from moldau.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from moldau.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from moldau.protocol.messages.unregister_broker import UnregisterBrokerRequest
from moldau.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from moldau.protocol.schema import Message
from tests.interop.differential.broker import Broker


def acls(broker: Broker) -> None:
    creation = AclCreation(
        resource_type=2, resource_name="t", principal="User:a", host="*", operation=3, permission_type=3
    )
    anything = {
        "resource_type_filter": 1, "resource_name_filter": None, "pattern_type_filter": 1,
        "principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1,
    }  # fmt: skip
    requests: dict[str, Message] = {
        "describe": DescribeAclsRequest(**anything),
        "create": CreateAclsRequest(creations=[creation, creation]),
        "create nothing": CreateAclsRequest(),
        "delete": DeleteAclsRequest(filters=[DeleteAclsFilter(**anything)]),
        "delete nothing": DeleteAclsRequest(),
    }
    for version in (1, 2, 3):
        for where in ("broker", "controller"):
            for label, request in requests.items():
                broker.ask(f"v{version} {where} {label}", request, version, controller=where == "controller")


def elections(broker: Broker) -> None:
    topic = broker.topic("elections", 2)
    for version in (0, 1, 2):
        for kind in (0, 1, 7) if version >= 1 else (0,):
            for label, topics in (
                ("one", [(topic, [0])]),
                ("unknown", [("nobody", [0]), (topic, [9])]),
                ("nothing", []),
                ("twice", [(topic, [0, 0])]),
            ):
                asked = [TopicPartitions(topic=name, partitions=indexes) for name, indexes in topics]
                request = ElectLeadersRequest(election_type=kind, topic_partitions=asked, timeout_ms=5000)
                broker.ask(f"v{version} type {kind} {label}", request, version)
            everything = ElectLeadersRequest(election_type=kind, topic_partitions=None, timeout_ms=5000)
            answer = broker.call(everything, version)
            answer.replica_election_results = [
                each for each in answer.replica_election_results if each.topic == topic
            ]
            broker.note(f"v{version} type {kind} everything", answer)


def reassignments(broker: Broker) -> None:
    topic = broker.topic("reassigned", 2)
    for version in (0, 1):
        for label, name, index, replicas in (
            ("the same", topic, 0, [1]),
            ("to an unknown broker", topic, 0, [7]),
            ("a known and an unknown broker", topic, 0, [1, 7]),
            ("twice the same", topic, 0, [1, 1]),
            ("to none", topic, 0, []),
            ("negative", topic, 0, [-1]),
            ("cancelled", topic, 0, None),
            ("unknown partition", topic, 9, [1]),
            ("unknown topic", "nobody", 0, [1]),
        ):
            part = ReassignablePartition(partition_index=index, replicas=replicas)
            topics = [ReassignableTopic(name=name, partitions=[part])]
            request = AlterPartitionReassignmentsRequest(topics=topics, timeout_ms=5000)
            broker.ask(f"v{version} {label}", request, version)
        broker.ask(f"v{version} nothing", AlterPartitionReassignmentsRequest(timeout_ms=5000), version)
    for label, asked in (
        ("all", None),
        ("none", []),
        ("one", [ListPartitionReassignmentsTopics(name=topic, partition_indexes=[0])]),
        ("unknown", [ListPartitionReassignmentsTopics(name="nobody", partition_indexes=[0])]),
    ):
        broker.ask(f"list {label}", ListPartitionReassignmentsRequest(topics=asked, timeout_ms=5000), 0)
    broker.ask("unregister an unknown broker", UnregisterBrokerRequest(broker_id=77), 0)


def features(broker: Broker) -> None:
    for version in (0, 1, 2):
        for label, name, level, kind in (
            ("unchanged", "metadata.version", 30, 1),
            ("too high", "metadata.version", 99, 1),
            ("downgrade as upgrade", "metadata.version", 29, 1),
            ("too low", "metadata.version", 1, 2),
            ("unknown", "nobody.version", 1, 1),
            ("unknown to zero", "nobody.version", 0, 2),
            ("unknown upgrade type", "metadata.version", 29, 0),
            ("zero level", "eligible.leader.replicas.version", 0, 1),
            ("negative", "eligible.leader.replicas.version", -1, 1),
            ("empty name", "", 1, 1),
        ):
            update = FeatureUpdateKey(feature=name, max_version_level=level)
            if version == 0:
                update.allow_downgrade = kind == 2
            else:
                update.upgrade_type = kind
            request = UpdateFeaturesRequest(
                feature_updates=[update], validate_only=version >= 1, timeout_ms=5000
            )
            broker.ask(f"v{version} {label}", request, version)
        broker.ask(f"v{version} nothing", UpdateFeaturesRequest(timeout_ms=5000), version)


def quotas(broker: Broker) -> None:
    user = broker.name("user")

    def entry(*entity: tuple[str, str | None], key: str = "producer_byte_rate", value: float = 5000.0,
              remove: bool = False) -> RequestEntryData:  # fmt: skip
        parts = [EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
        return RequestEntryData(entity=parts, ops=[OpData(key=key, value=value, remove=remove)])

    for version in (0, 1):
        for label, wanted in (
            ("a user", entry(("user", user))),
            ("a user and a client", entry(("user", user), ("client-id", "c"))),
            ("a bad entity", entry(("nobody", "x"))),
            ("the same type twice", entry(("user", user), ("user", user))),
            ("no entity", entry()),
            ("an unknown key", entry(("user", user), key="nobody_rate")),
            ("a negative value", entry(("user", user), value=-1.0)),
            ("a fraction", entry(("user", user), value=1.5)),
            ("zero", entry(("user", user), value=0.0)),
            ("an ip", entry(("ip", "10.0.0.1"), key="connection_creation_rate")),
            ("a bad ip", entry(("ip", "not an ip"), key="connection_creation_rate")),
            ("a wrong key for an ip", entry(("ip", "10.0.0.1"))),
            ("an empty name", entry(("user", ""))),
            ("removed", entry(("ip", "10.0.0.1"), key="connection_creation_rate", remove=True)),
        ):
            broker.ask(f"v{version} {label}", AlterClientQuotasRequest(entries=[wanted]), version)
        for label, components, strict in (
            ("exactly", [("user", 0, user)], False),
            ("exactly, strictly", [("user", 0, user)], True),
            ("default", [("user", 1, None)], False),
            ("exact without a name", [("user", 0, None)], False),
            ("default with a name", [("user", 1, "x")], False),
            ("any with a name", [("user", 2, "x")], False),
            ("an unknown match type", [("user", 9, None)], False),
            ("an unknown entity", [("nobody", 2, None)], False),
            ("an empty entity", [("", 2, None)], False),
            ("the same type twice", [("user", 2, None), ("user", 2, None)], False),
            ("user and ip", [("user", 2, None), ("ip", 2, None)], False),
        ):
            asked = [
                ComponentData(entity_type=kind, match_type=match, match=name)
                for kind, match, name in components
            ]
            request = DescribeClientQuotasRequest(components=asked, strict=strict)
            broker.ask(f"v{version} describe {label}", request, version)


SCENES = {
    "acls": acls,
    "elect leaders": elections,
    "reassignments": reassignments,
    "update features": features,
    "client quotas": quotas,
}
