"""The real Prometheus and `promtool`: rules and metrics are valid, and alerts fire when a node is killed."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from confluent_kafka import Producer

from moldau.base.ids import TopicPartition
from moldau.client.admin.client import AdminClient, checked
from moldau.client.admin.topic_types import NewTopic
from tests.harness.lag.service import lag_service
from tests.harness.nodes.leaders import leaders_of, wait_until_in_sync
from tests.harness.prometheus_server import needs_prometheus, prometheus, promtool
from tests.harness.public_alerts import PUBLIC, While, names, rule_file, target_labels
from tests.harness.scraping import MeasuredCluster, measured_cluster
from tests.harness.waiting import eventually

pytestmark = needs_prometheus

DEPLOY = Path(__file__).parents[3] / "deploy" / "prometheus"
ALERTS, ALERTS_TEST = DEPLOY / "moldau-alerts.yml", DEPLOY / "moldau-alerts-test.yml"
#: These fire all the time: one condition has no exception for topics without copies, the other one none for
#: topics without producers.
ALWAYS = {
    ("samber_KafkaTopicsReplicas", "single"),
    *(("strimzi_NoMessageForTooLong", topic) for topic in ("copied", "strict", "single")),
}
OURS = {
    *("KafkaNodeDown", "KafkaUnderReplicatedPartitions", "KafkaFencedBrokers", "KafkaOfflinePartitions"),
    "KafkaUnderMinIsr",
}
SILENT = {"KafkaUncleanLeaderElection", "KafkaLogDirectoryOffline", "KafkaGroupLagStatus"}
#: Without an active controller for as long as an election takes.
ELECTION = {
    *("KafkaNoActiveController", "grafana_KafkaNoActiveController", "strimzi_AbnormalControllerState"),
}
#: All that are about the lag of a group.
LAG_ALERTS = {
    *("KafkaConsumerLagGrows", "KafkaGroupWithoutMembers", "KafkaGroupLagStatus"),
    *("strimzi_TooLargeConsumerGroupLag", "samber_KafkaConsumerGroupLag"),
    *("grafana_KafkaLagKeepsIncreasing", "grafana_KafkaLagIsTooHigh"),
}
#: For how long no alert may fire before the node is killed: six evaluations.
SILENT_S = 3.0
#: What `promtool` says about names that dashboards expect as they are.
NAMING = re.compile(
    r"^(?:kafka|process)_\S+ (?:non-histogram|metric names should|counter metrics should|use base unit|"
    r"label names should be written in 'snake_case')"
)


def test_the_rules_and_the_configuration_are_valid() -> None:
    for words in (
        ("rules", str(ALERTS)),
        ("config", str(DEPLOY / "prometheus.yml")),
    ):
        done = promtool("check", *words)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_metrics_are_valid(measured: MeasuredCluster) -> None:
    """`promtool` finds no fault but the spelling of names that are not ours."""
    done = promtool("check", "metrics", given=measured.get("/metrics").body)
    complaints = (done.stdout + done.stderr).decode().splitlines()
    assert [line for line in complaints if line and not NAMING.match(line)] == []


def test_every_alert_fires_as_its_test_says() -> None:
    done = promtool("test", "rules", str(ALERTS_TEST))
    assert done.returncode == 0, done.stdout + done.stderr


def test_public_rules_name_metrics_that_are_served(measured: MeasuredCluster, tmp_path: Path) -> None:
    file = tmp_path / "public.yml"
    file.write_text(rule_file())
    done = promtool("check", "rules", str(file))
    assert done.returncode == 0, done.stdout + done.stderr
    declared = set(re.findall(r"^# TYPE (\S+)", measured.get("/metrics").body.decode(), re.MULTILINE))
    named = {name for each in PUBLIC for name in re.findall(r"\bkafka_\w+\b", each.expression)}
    assert len(named) > 12
    assert named - declared == {"kafka_cluster"}, "all but a label of Grafana's rules"


def our_rules() -> str:
    """Return our rules without their waiting times."""
    return re.sub(r"\bfor: \w+", "for: 0s", ALERTS.read_text())


def nodes_job(ports: Mapping[int, int]) -> dict[str, Any]:
    targets = [
        {"targets": [f"127.0.0.1:{port}"], "labels": target_labels(number)} for number, port in ports.items()
    ]
    return {"job_name": "moldau", "static_configs": targets}


def test_alerts_fire_while_a_node_is_down_and_only_then(tmp_path: Path) -> None:
    with measured_cluster(brokers=3) as measured:
        cluster = measured.cluster
        servers = {"bootstrap.servers": cluster.bootstrap_servers}
        strict = {"min.insync.replicas": "3"}
        topics = [
            NewTopic("copied", 3, 3),
            NewTopic("strict", 1, 3, configs=strict),
            NewTopic("single", 3, 1),
        ]
        with AdminClient(cluster.bootstrap_servers) as admin:
            checked(admin.create_topics(topics))
        producer = Producer(servers)
        producer.produce("copied", b"x")
        assert producer.flush(30) == 0
        wait_until_in_sync(cluster, "copied", "strict")
        rules = {"moldau.yml": our_rules(), "public.yml": rule_file()}
        with prometheus(tmp_path, rules, [nodes_job(measured.ports)]) as monitor:
            eventually(lambda: monitor.healthy_targets() == 3, timeout=30)
            eventually(lambda: monitor.firing() == ALWAYS, timeout=30)
            silent_since = time.time()
            eventually(lambda: monitor.evaluated_at() > silent_since + SILENT_S, timeout=30)
            assert monitor.fired(SILENT_S) == ALWAYS
            victim = leaders_of(cluster, "single")[0]
            cluster.kill(victim)
            expected = OURS | names(While.FIRES, While.FIRES_ON)

            def firing() -> set[str]:
                return {name for name, topic in monitor.firing() - ALWAYS}

            eventually(lambda: expected <= firing(), timeout=40)
            assert ("samber_KafkaTopicsReplicas", "copied") in monitor.firing()
            eventually(lambda: not ELECTION & firing(), timeout=20)
            assert not (SILENT | names(While.SILENT, While.FIRES_AFTER)) & firing()
            cluster.restart(victim)
            returns = OURS | names(While.FIRES)
            eventually(lambda: not firing() & returns, timeout=60)
            eventually(lambda: names(While.FIRES_AFTER) <= firing(), timeout=20)


def lag_job(port: int) -> dict[str, Any]:
    """Return the job `moldau-lag` as deploy/prometheus/prometheus.yml has it, with another address."""
    config = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())
    job: dict[str, Any] = next(each for each in config["scrape_configs"] if each["job_name"] == "moldau-lag")
    return job | {"static_configs": [{"targets": [f"127.0.0.1:{port}"], "labels": {"cluster": "test"}}]}


def test_lag_alerts_fire_for_a_group_that_falls_back(measured: MeasuredCluster, tmp_path: Path) -> None:
    """A group without members that commits nothing while records arrive, beside one that has read all."""
    bootstrap = measured.cluster.bootstrap_servers
    topic, behind, fine = (f"{name}-{uuid.uuid4().hex[:8]}" for name in ("lag", "behind", "fine"))
    place = TopicPartition(topic, 0)
    producer = Producer({"bootstrap.servers": bootstrap})

    def produce(count: int) -> None:
        for _ in range(count):
            producer.produce(topic, b"x", partition=0)
        assert producer.flush(30) == 0

    with (
        AdminClient(bootstrap) as admin,
        lag_service(bootstrap, "--window", "1.5", "--interval", "0.2") as port,
        prometheus(
            tmp_path,
            {"moldau.yml": our_rules(), "public.yml": rule_file()},
            [nodes_job(measured.ports), lag_job(port)],
        ) as monitor,
    ):
        checked(admin.create_topics([NewTopic(topic, 1, 1)]))
        # More than the largest threshold of a public rule.
        produced = 10_050
        produce(produced)
        for group in (behind, fine):
            checked(admin.alter_group_offsets(group, {place: 0 if group == behind else produced}))

        def alerts_of(group: str) -> set[str]:
            return {name for name, value in monitor.firing("consumergroup") if value == group}

        def has_fallen_back() -> bool:
            nonlocal produced
            produce(10)
            produced += 10
            checked(admin.alter_group_offsets(fine, {place: produced}))
            return alerts_of(behind) == LAG_ALERTS

        eventually(lambda: monitor.healthy_targets() == 2, timeout=30)
        eventually(has_fallen_back, timeout=40)
        # Its lag is what arrives between two commits.
        assert alerts_of(fine) <= {"grafana_KafkaLagKeepsIncreasing"}
        checked(admin.alter_group_offsets(behind, {place: produced}))
        eventually(lambda: not alerts_of(behind), timeout=40)
