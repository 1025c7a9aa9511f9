"""Topics spread over the brokers of a cluster, and numbers for them."""

from __future__ import annotations

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from moldau.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from moldau.testing import Cluster
from tests.harness.waiting import eventually
from tests.harness.wire import Wire

PARTITIONS = 6
#: Who asks a broker that stands still asks another one soon.
QUIET = {"log_level": 0, "reconnect.backoff.max.ms": 200, "retry.backoff.ms": 50, "socket.timeout.ms": 3000}


def create(cluster: Cluster, topic: str, replicas: int = 3) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, **QUIET})
    for created in admin.create_topics([NewTopic(topic, PARTITIONS, replicas)]).values():
        created.result(20)
    # A client that asks a broker which has not heard of the topic may not ask again for minutes.
    awake = [node.port for node in cluster.brokers if node.running and not node.paused]
    eventually(lambda: all(_knows(port, topic) for port in awake), what=f"all brokers know {topic}")


def _knows(port: int, topic: str) -> bool:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    (found,) = Wire(f"127.0.0.1:{port}").call(request, 9).topics
    return len(found.partitions) == PARTITIONS and all(each.leader_id >= 0 for each in found.partitions)


class Feed:
    """Numbers, spread over the partitions; all acknowledged."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        settings = {"bootstrap.servers": cluster.bootstrap_servers, "enable.idempotence": True}
        self._producer = Producer({**settings, **QUIET})
        self._topic = topic
        self.sent = 0

    def more(self, count: int) -> None:
        failed: list[object] = []
        for number in range(self.sent, self.sent + count):
            self._producer.produce(
                self._topic,
                str(number),
                partition=number % PARTITIONS,
                on_delivery=lambda error, _: failed.append(error) if error else None,
            )
        assert self._producer.flush(40) == 0 and not failed
        self.sent += count
