"""The routes of v3."""

from __future__ import annotations

from typing import Final

from moldau.rest.routing import Route
from moldau.rest.v3 import clusters, topics

_CLUSTER: Final = "/v3/clusters/{cluster_id}"
_TOPIC: Final = f"{_CLUSTER}/topics/{{topic_name}}"

V3_ROUTES: Final = (
    Route("GET", "/v3/clusters", "List Clusters", clusters.list_clusters),
    Route("GET", _CLUSTER, "Get Cluster", clusters.get_cluster),
    Route("GET", f"{_CLUSTER}/brokers", "List Brokers", clusters.list_brokers),
    Route("GET", f"{_CLUSTER}/brokers/{{broker_id}}", "Get Broker", clusters.get_broker),
    Route("GET", f"{_CLUSTER}/topics", "List Topics", topics.list_topics),
    Route("POST", f"{_CLUSTER}/topics", "Create Topic", topics.create_topic, body="CreateTopic"),
    Route("GET", _TOPIC, "Get Topic", topics.get_topic),
    Route("PATCH", _TOPIC, "Update Partition Count", topics.update_partitions, body="PartitionCount"),
    Route("DELETE", _TOPIC, "Delete Topic", topics.delete_topic),
)
