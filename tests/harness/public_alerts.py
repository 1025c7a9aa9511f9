"""Conditions of public alert rules for Kafka, on the names of the JMX exporter and of kafka_exporter.

An operator who comes from Apache Kafka has such rules already. `PUBLIC` has the expressions of Strimzi's
examples, of awesome-prometheus-alerts and of Grafana's Kafka library, whose alternatives for other exporters
are left out, and says what they do while one node of three is down.
"""

from __future__ import annotations

import json
from enum import Enum
from typing import Final, NamedTuple


class While(Enum):
    """What an alert does while a node is down."""

    FIRES = "fires"
    #: Also after the node has returned, until the leaders are moved back.
    FIRES_ON = "fires on"
    #: After the node has returned: its replicas are in sync again.
    FIRES_AFTER = "fires after"
    SILENT = "silent"
    #: Also without a failure, for topics without producers.
    ALWAYS = "always"


class PublicAlert(NamedTuple):
    source: str
    alert: str
    expression: str
    node_down: While

    @property
    def name(self) -> str:
        return f"{self.source}_{self.alert}"


_REPLICAS: Final = "kafka_server_replicamanager"
_CONTROLLER: Final = "kafka_controller_kafkacontroller"
PUBLIC: Final = (
    PublicAlert(
        "strimzi", "UnderReplicatedPartitions", f"{_REPLICAS}_underreplicatedpartitions > 0", While.FIRES
    ),
    PublicAlert(
        "strimzi",
        "AbnormalControllerState",
        f"sum({_CONTROLLER}_activecontrollercount) by (strimzi_io_name, namespace) != 1",
        While.SILENT,
    ),
    PublicAlert(
        "strimzi",
        "OfflinePartitions",
        f"sum({_CONTROLLER}_offlinepartitionscount) by (namespace, pod) > 0",
        While.FIRES,
    ),
    PublicAlert(
        "strimzi", "UnderMinIsrPartitionCount", f"{_REPLICAS}_underminisrpartitioncount > 0", While.FIRES
    ),
    PublicAlert(
        "strimzi",
        "OfflineLogDirectoryCount",
        "kafka_log_logmanager_offlinelogdirectorycount > 0",
        While.SILENT,
    ),
    PublicAlert(
        "strimzi",
        "ScrapeProblem",
        'up{kubernetes_namespace!~"openshift-.+",kubernetes_pod_name=~".+-kafka-[0-9]+"} == 0',
        While.FIRES,
    ),
    PublicAlert(
        "strimzi",
        "UnderReplicatedPartition",
        "kafka_topic_partition_under_replicated_partition > 0",
        While.FIRES,
    ),
    PublicAlert("strimzi", "TooLargeConsumerGroupLag", "kafka_consumergroup_lag > 1000", While.SILENT),
    PublicAlert(
        "strimzi",
        "NoMessageForTooLong",
        'changes(kafka_topic_partition_current_offset{topic!="__consumer_offsets"}[10m]) == 0',
        While.ALWAYS,
    ),
    PublicAlert(
        "samber",
        "KafkaTopicsReplicas",
        "min(kafka_topic_partition_in_sync_replica) by (topic) < 3",
        While.FIRES,
    ),
    PublicAlert(
        "samber",
        "KafkaConsumerGroupLag",
        "sum(kafka_consumergroup_lag) by (consumergroup) > 10000",
        While.SILENT,
    ),
    PublicAlert(
        "grafana",
        "KafkaUnderReplicatedPartitionCount",
        "sum by (kafka_cluster,instance) (kafka_cluster_partition_underreplicated{}) > 0",
        While.FIRES,
    ),
    PublicAlert(
        "grafana",
        "KafkaUnderMinISRPartitionCount",
        "sum by (kafka_cluster) (kafka_cluster_partition_underminisr{}) > 0",
        While.FIRES,
    ),
    PublicAlert(
        "grafana",
        "KafkaOfflinePartitionCount",
        f"sum by (kafka_cluster) ({_CONTROLLER}_offlinepartitionscount{{}}) > 0",
        While.FIRES,
    ),
    PublicAlert(
        "grafana",
        "KafkaPreferredReplicaImbalance",
        f"sum by (kafka_cluster) ({_CONTROLLER}_preferredreplicaimbalancecount{{}}) > 0",
        While.FIRES_ON,
    ),
    PublicAlert(
        "grafana",
        "KafkaNoActiveController",
        f"sum by(kafka_cluster) ({_CONTROLLER}_activecontrollercount{{}}) != 1",
        While.SILENT,
    ),
    PublicAlert(
        "grafana",
        "KafkaUncleanLeaderElection",
        "sum by (kafka_cluster,instance) "
        "(rate(kafka_controller_controllerstats_uncleanleaderelections_total{}[5m])) != 0",
        While.SILENT,
    ),
    PublicAlert(
        "grafana",
        "KafkaBrokerCount",
        "count by(kafka_cluster) (kafka_server_kafkaserver_brokerstate{}) == 0",
        While.SILENT,
    ),
    PublicAlert(
        "grafana",
        "KafkaISRExpandRate",
        f"sum by (kafka_cluster,instance) (rate({_REPLICAS}_isrexpands_total{{}}[5m])) != 0",
        While.FIRES_AFTER,
    ),
    PublicAlert(
        "grafana",
        "KafkaISRShrinkRate",
        f"sum by (kafka_cluster,instance) (rate({_REPLICAS}_isrshrinks_total{{}}[5m])) != 0",
        While.SILENT,
    ),
    PublicAlert(
        "grafana",
        "KafkaLagKeepsIncreasing",
        "sum by (job,kafka_cluster,topic,consumergroup) "
        '(delta(kafka_consumergroup_uncommitted_offsets{topic!="__consumer_offsets",consumergroup!=""}[5m]))'
        " > 0",
        While.SILENT,
    ),
    PublicAlert(
        "grafana",
        "KafkaLagIsTooHigh",
        "sum by (job,kafka_cluster,topic,consumergroup) "
        '(kafka_consumergroup_uncommitted_offsets{topic!="__consumer_offsets",consumergroup!=""}) > 100',
        While.SILENT,
    ),
)


def names(*behaviours: While) -> set[str]:
    return {each.name for each in PUBLIC if each.node_down in behaviours}


def rule_file() -> str:
    """Return the alerts as a rule file, without waiting times. JSON is YAML."""
    rules = [{"alert": each.name, "expr": each.expression} for each in PUBLIC]
    return json.dumps({"groups": [{"name": "public", "rules": rules}]})


def target_labels(number: int) -> dict[str, str]:
    """Return the labels that Strimzi's and Grafana's scrape configurations give to a node."""
    pod = f"test-kafka-{number}"
    return {
        "cluster": "test",
        "kafka_cluster": "test",
        "namespace": "kafka",
        "kubernetes_namespace": "kafka",
        "strimzi_io_name": "test",
        "pod": pod,
        "kubernetes_pod_name": pod,
    }
