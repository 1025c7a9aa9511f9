"""Topics spread over the brokers of a cluster, and a producer of numbers."""

from __future__ import annotations

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from moldau.testing import Cluster
from tests.harness.wire.requests import wait_until_known

PARTITIONS = 6
#: Clients of a paused broker time out soon and try another one.
QUIET = {"log_level": 0, "reconnect.backoff.max.ms": 200, "retry.backoff.ms": 50, "socket.timeout.ms": 3000}


def create(cluster: Cluster, topic: str, replicas: int = 3, partitions: int = PARTITIONS) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, **QUIET})
    new = NewTopic(topic, partitions, replicas)
    for created in admin.create_topics([new], request_timeout=60).values():
        created.result(60)
    awake = [node for node in cluster.brokers if node.running and not node.paused]
    wait_until_known(",".join(f"127.0.0.1:{node.port}" for node in awake), topic)


class Feed:
    """A producer of numbers, spread over the partitions; all must be acknowledged."""

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
        assert self._producer.flush(60) == 0 and not failed
        self.sent += count
