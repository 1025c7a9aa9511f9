"""Admin requests to a broker: producer ids, records, configs, log directories, producers."""

from __future__ import annotations

from moldau.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from moldau.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from moldau.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from moldau.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from moldau.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from moldau.protocol.messages.init_producer_id import InitProducerIdRequest
from moldau.protocol.messages.list_config_resources import ListConfigResourcesRequest
from tests.harness.waiting import eventually
from tests.harness.wire.batches import batch
from tests.interop.differential.broker import TIME, Broker

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32


def producer_ids(broker: Broker) -> None:
    # Until the first block of ids is fetched, Apache Kafka returns COORDINATOR_LOAD_IN_PROGRESS.
    new = InitProducerIdRequest(transactional_id=None)
    eventually(lambda: broker.call(new, 4).error_code == 0, what="producer ids are available")
    for version in range(6):
        answer = broker.call(InitProducerIdRequest(transactional_id=None), version)
        answer.producer_id = "an id" if answer.producer_id >= 0 else -1
        broker.note(f"v{version} new", answer)
        broker.ask(f"v{version} empty", InitProducerIdRequest(transactional_id=""), version)
        if version >= 3:
            for known, epoch in ((4000, 3), (-1, 3), (4000, -1), (-5, -5), (4000, 32767)):
                asked = InitProducerIdRequest(transactional_id=None, producer_id=known, producer_epoch=epoch)
                answer = broker.call(asked, version)
                answer.producer_id = "an id" if answer.producer_id >= 0 else -1
                broker.note(f"v{version} {known}, {epoch}", answer)


def delete_records(broker: Broker) -> None:
    compacted = broker.topic("delete-compacted", config={"cleanup.policy": "compact"})
    both = broker.topic("delete-both", config={"cleanup.policy": "compact,delete"})
    for version in (0, 1, 2):
        topic = broker.topic(f"delete-{version}")
        for name in (topic, compacted, both):
            broker.fill(name, 3)
        for name, index, offset in (
            (topic, 0, 2), (topic, 0, 2), (topic, 0, 1), (topic, 0, 0), (topic, 0, 7), (topic, 0, -2),
            (topic, 0, -1), (topic, 0, 6), (topic, 3, 0), (topic, -1, 0), ("nobody", 0, 0),
            (compacted, 0, 1), (both, 0, 1),
        ):  # fmt: skip
            cut = DeleteRecordsPartition(partition_index=index, offset=offset)
            request = DeleteRecordsRequest(
                topics=[DeleteRecordsTopic(name=name, partitions=[cut])], timeout_ms=5000
            )
            broker.ask(f"v{version} {name.rpartition('-')[0]}-{index} before {offset}", request, version)
        broker.ask(f"v{version} nothing", DeleteRecordsRequest(timeout_ms=5000), version)


def configs(broker: Broker) -> None:
    topic = broker.topic("configs", config={"max.message.bytes": "5000"})
    names = ["max.message.bytes", "retention.ms", "cleanup.policy", "nobody.knows"]
    for version in range(1, 5):
        for kind, name, keys in (
            (TOPIC, topic, names),
            (TOPIC, topic, []),
            (TOPIC, "nobody", None),
            (TOPIC, "a/b", None),
            (TOPIC, "", None),
            (BROKER, "1", ["log.retention.ms", "num.network.threads", "message.max.bytes", "nobody.knows"]),
            (BROKER, "", None),
            (BROKER, "7", None),
            (BROKER, "x", None),
            (LOGGER, "", None),
            (LOGGER, "7", None),
            (LOGGER, "x", None),
            (CLIENT_METRICS, "mine", None),
            (CLIENT_METRICS, "", None),
            (GROUP, "mine", ["consumer.session.timeout.ms"]),
            (GROUP, "", None),
            (0, "x", None),
            (1, "x", None),
            (99, "x", None),
        ):
            for synonyms in (False, True):
                resource = DescribeConfigsResource(
                    resource_type=kind, resource_name=name, configuration_keys=keys
                )
                request = DescribeConfigsRequest(
                    resources=[resource], include_synonyms=synonyms, include_documentation=version >= 3
                )
                label = f"v{version} {kind} {name[:7]!r} {keys is None} synonyms {synonyms}"
                broker.ask(label, request, version)
    everything = DescribeConfigsResource(resource_type=TOPIC, resource_name=topic, configuration_keys=None)
    broker.ask("a whole topic", DescribeConfigsRequest(resources=[everything], include_synonyms=True), 4)
    twice = DescribeConfigsRequest(resources=[everything, everything])
    broker.ask("the same twice", twice, 4)
    broker.ask("nothing", DescribeConfigsRequest(), 4)


def config_resources(broker: Broker) -> None:
    broker.ask("v0", ListConfigResourcesRequest(), 0)
    for kinds in ([BROKER], [LOGGER], [CLIENT_METRICS], [GROUP], [0], [99], [BROKER, 99], [BROKER, LOGGER]):
        broker.ask(f"v1 {kinds}", ListConfigResourcesRequest(resource_types=kinds), 1)
    for kinds in ([], [TOPIC]):
        answer = broker.call(ListConfigResourcesRequest(resource_types=kinds), 1)
        answer.config_resources = [each for each in answer.config_resources if each.resource_type != TOPIC]
        broker.note(f"v1 {kinds}", answer)


def log_dirs(broker: Broker) -> None:
    topic = broker.topic("dirs", 2)
    broker.fill(topic, 1)
    for version in range(1, 6):
        for label, topics in (
            ("both", [(topic, [0, 1])]),
            ("one", [(topic, [1])]),
            ("unknown", [("nobody", [0]), (topic, [9])]),
            ("nothing", []),
            ("no partitions", [(topic, [])]),
        ):
            asked = [DescribableLogDirTopic(topic=name, partitions=indexes) for name, indexes in topics]
            broker.ask(f"v{version} {label}", DescribeLogDirsRequest(topics=asked), version)


def move_replicas(broker: Broker) -> None:
    topic = broker.topic("moves", 2)
    here = broker.call(DescribeLogDirsRequest(topics=[]), 4).results[0].log_dir
    for version in (1, 2):
        for label, path, name, index in (
            ("to its own directory", here, topic, 0),
            ("to nowhere", "/nowhere", topic, 0),
            ("relative", "logs", topic, 0),
            ("unknown topic", here, "nobody", 0),
            ("unknown partition", here, topic, 9),
            ("unknown topic to an unknown directory", "/nowhere", "nobody", 0),
            ("an empty path", "", topic, 0),
        ):
            topics = [AlterReplicaLogDirTopic(name=name, partitions=[index])]
            request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=topics)])
            broker.ask(f"v{version} {label}", request, version)
        broker.ask(f"v{version} nothing", AlterReplicaLogDirsRequest(), version)


def producers(broker: Broker) -> None:
    topic = broker.topic("producers", 2)
    for producer in (81_000, 81_001):
        for sequence in (0, 1):
            broker.put(topic, batch(
                timestamp=TIME, producer_id=producer, producer_epoch=3, sequence=sequence
            ))  # fmt: skip
    for name, indexes in ((topic, [0, 1]), (topic, [7]), ("nobody", [0]), ("a/b", [0]), (topic, [])):
        asked = DescribeProducersRequest(topics=[TopicRequest(name=name, partition_indexes=indexes)])
        broker.ask(f"{name[:6]} {indexes}", asked, 0)
    broker.ask("nothing", DescribeProducersRequest(), 0)


SCENES = {
    "init producer id": producer_ids,
    "delete records": delete_records,
    "describe configs": configs,
    "list config resources": config_resources,
    "describe log dirs": log_dirs,
    "alter replica log dirs": move_replicas,
    "describe producers": producers,
}
