"""The real Prometheus and `promtool`: rules and metrics are valid, and alerts fire when a node is killed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from moldau.local.ports import ReservedPorts
from tests.harness.nodes.leaders import leaders_of, wait_until_in_sync
from tests.harness.scraping import MeasuredCluster, measured_cluster
from tests.harness.waiting import eventually

pytestmark = pytest.mark.skipif(
    shutil.which("promtool") is None or shutil.which("prometheus") is None,
    reason="Prometheus is not installed (apt install prometheus)",
)

DEPLOY = Path(__file__).parents[3] / "deploy" / "prometheus"
#: Conditions that public alert rules for Kafka have in common, on the names of both exporters.
PUBLIC = """
groups:
  - name: public
    rules:
      - alert: PublicUnderReplicated
        expr: kafka_server_replicamanager_underreplicatedpartitions > 0
      - alert: PublicAbnormalController
        expr: sum(kafka_controller_kafkacontroller_activecontrollercount) != 1
      - alert: PublicOffline
        expr: sum(kafka_controller_kafkacontroller_offlinepartitionscount) > 0
      - alert: PublicTopicReplicas
        expr: min by (topic) (kafka_topic_partition_in_sync_replica{topic="copied"}) < 3
      - alert: PublicBrokers
        expr: max(kafka_brokers) < 3
      - alert: PublicLag
        expr: sum by (consumergroup) (kafka_consumergroup_lag) > 50
"""
#: What `promtool` says about names that dashboards expect as they are.
NAMING = re.compile(
    r"^(?:kafka|process)_\S+ (?:non-histogram|metric names should|counter metrics should|use base unit|"
    r"label names should be written in 'snake_case')"
)


def promtool(*words: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["promtool", *words], input=given, capture_output=True, timeout=60, check=False)


def test_the_rules_and_the_configuration_are_valid() -> None:
    for words in (
        ("rules", str(DEPLOY / "moldau-alerts.yml")),
        ("config", str(DEPLOY / "prometheus.yml")),
    ):
        done = promtool("check", *words)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_metrics_are_valid(measured: MeasuredCluster) -> None:
    """`promtool` finds no fault but the spelling of names that are not ours."""
    done = promtool("check", "metrics", given=measured.get("/metrics").body)
    complaints = (done.stdout + done.stderr).decode().splitlines()
    assert [line for line in complaints if line and not NAMING.match(line)] == []


class Prometheus:
    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/api/v1"

    def _get(self, path: str) -> dict[str, list[dict[str, object]]]:
        with urllib.request.urlopen(f"{self._url}/{path}", timeout=30) as answer:
            data: dict[str, list[dict[str, object]]] = json.load(answer)["data"]
            return data

    def firing(self) -> set[str]:
        alerts = self._get("alerts")["alerts"]
        return {str(each["labels"]["alertname"]) for each in alerts if each["state"] == "firing"}  # type: ignore[index]

    def healthy_targets(self) -> int:
        try:
            return sum(each["health"] == "up" for each in self._get("targets")["activeTargets"])
        except OSError:
            return 0


@contextmanager
def prometheus(folder: Path, ports: list[int]) -> Iterator[Prometheus]:
    """Run Prometheus with our rules, without their waiting times, and the public ones."""
    rules = re.sub(r"\bfor: \w+", "for: 0s", (DEPLOY / "moldau-alerts.yml").read_text())
    (folder / "moldau.yml").write_text(rules)
    (folder / "public.yml").write_text(PUBLIC)
    targets = ", ".join(f'"127.0.0.1:{port}"' for port in ports)
    (folder / "prometheus.yml").write_text(
        "global: {scrape_interval: 500ms, evaluation_interval: 500ms}\n"
        "rule_files: [moldau.yml, public.yml]\n"
        "scrape_configs:\n"
        "  - job_name: moldau\n"
        f"    static_configs: [{{targets: [{targets}], labels: {{cluster: test}}}}]\n"
    )
    reserved = ReservedPorts("127.0.0.1")
    port = reserved.choose()
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        yield Prometheus(port)
    finally:
        process.terminate()
        process.wait(30)
        reserved.release()


def test_alerts_fire_while_a_node_is_down_and_only_then(tmp_path: Path) -> None:
    with measured_cluster(brokers=3) as measured:
        cluster = measured.cluster
        servers = {"bootstrap.servers": cluster.bootstrap_servers}
        admin = AdminClient(servers)
        topics = [NewTopic("copied", 3, 3), NewTopic("single", 3, 1)]
        for created in admin.create_topics(topics).values():
            created.result(30)
        producer = Producer(servers)
        producer.produce("copied", b"x")
        assert producer.flush(30) == 0
        wait_until_in_sync(cluster, "copied")
        with prometheus(tmp_path, list(measured.ports.values())) as monitor:
            eventually(lambda: monitor.healthy_targets() == 3, timeout=30)
            eventually(lambda: monitor.firing() == set(), timeout=30)
            victim = leaders_of(cluster, "single")[0]
            cluster.kill(victim)
            expected = {
                *("KafkaNodeDown", "KafkaUnderReplicatedPartitions", "KafkaFencedBrokers"),
                *("KafkaOfflinePartitions", "PublicUnderReplicated", "PublicOffline"),
                *("PublicTopicReplicas", "PublicBrokers"),
            }
            eventually(lambda: expected <= monitor.firing(), timeout=40)
            silent = {
                "KafkaUncleanLeaderElection",
                "KafkaLogDirectoryOffline",
                "PublicLag",
                "KafkaUnderMinIsr",
            }
            assert not silent & monitor.firing()
            eventually(
                lambda: not {"PublicAbnormalController", "KafkaNoActiveController"} & monitor.firing(),
                timeout=20,
            )
            cluster.restart(victim)
            eventually(lambda: not monitor.firing() & expected, timeout=60)
