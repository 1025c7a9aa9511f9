"""A real Kafka-speaking node for your tests: `with Cluster() as cluster: ... cluster.bootstrap_servers`.

With pytest the fixture `kafka_cluster` is there as soon as Moldau is installed.
"""

from moldau.testing.cluster import Cluster, NodeFailed

__all__ = ["Cluster", "NodeFailed"]
