"""The real Prometheus and `promtool`: rules and metrics are valid, and alerts fire when a node is killed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from moldau.local.ports import ReservedPorts
from tests.harness.nodes.leaders import leaders_of, wait_until_in_sync
from tests.harness.public_alerts import PUBLIC, While, names, rule_file, target_labels
from tests.harness.scraping import MeasuredCluster, measured_cluster
from tests.harness.waiting import eventually

pytestmark = pytest.mark.skipif(
    shutil.which("promtool") is None or shutil.which("prometheus") is None,
    reason="Prometheus is not installed (apt install prometheus)",
)

DEPLOY = Path(__file__).parents[3] / "deploy" / "prometheus"
#: An alert that fires, and the topic that it names, if any.
Firing = tuple[str, str]
#: The condition has no exception for topics without copies: it fires for `single` all the time.
ALWAYS = {("samber_KafkaTopicsReplicas", "single")}
OURS = {
    *("KafkaNodeDown", "KafkaUnderReplicatedPartitions", "KafkaFencedBrokers", "KafkaOfflinePartitions"),
    "KafkaUnderMinIsr",
}
SILENT = {"KafkaUncleanLeaderElection", "KafkaLogDirectoryOffline", "KafkaGroupLagStatus"}
#: Without an active controller for as long as an election takes.
ELECTION = {
    *("KafkaNoActiveController", "grafana_KafkaNoActiveController", "strimzi_AbnormalControllerState"),
}
#: For how long no alert may fire before the node is killed: six evaluations.
SILENT_S = 3.0
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


GROUP_STATUS_TEST = """
rule_files: [{rules}]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - series: 'moldau_lag_group_status{{cluster="c", consumergroup="fine", instance="a"}}'
        values: "1x10"
      - series: 'moldau_lag_group_status{{cluster="c", consumergroup="stopped", instance="a"}}'
        values: "1 1 4x8"
    alert_rule_test:
      - eval_time: 1m
        alertname: KafkaGroupLagStatus
      - eval_time: 5m
        alertname: KafkaGroupLagStatus
        exp_alerts:
          - exp_labels: {{severity: warning, cluster: c, consumergroup: stopped}}
            exp_annotations:
              summary: "{summary}"
"""


def test_the_status_of_a_group_is_an_alert(tmp_path: Path) -> None:
    summary = "Group stopped has the lag status 4 (2 WARN, 4 STOP, 5 STALL, 6 REWIND)."
    file = tmp_path / "test.yml"
    file.write_text(GROUP_STATUS_TEST.format(rules=DEPLOY / "moldau-alerts.yml", summary=summary))
    done = promtool("test", "rules", str(file))
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


class Prometheus:
    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/api/v1"

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self._url}/{path}", timeout=30) as answer:
            return json.load(answer)["data"]

    def firing(self) -> set[Firing]:
        alerts = self._get("alerts")["alerts"]
        return {_firing(each["labels"]) for each in alerts if each["state"] == "firing"}

    def fired(self, seconds: float) -> set[Firing]:
        """Return the alerts that fired within the last seconds."""
        query = f'max_over_time(ALERTS{{alertstate="firing"}}[{round(seconds * 1000)}ms])'
        found = self._get(f"query?query={urllib.parse.quote(query)}")["result"]
        return {_firing(each["metric"]) for each in found}

    def evaluated_at(self) -> float:
        """Return the time until which all rules were evaluated."""
        groups = self._get("rules")["groups"]
        return min(datetime.fromisoformat(each["lastEvaluation"]).timestamp() for each in groups)

    def healthy_targets(self) -> int:
        try:
            return sum(each["health"] == "up" for each in self._get("targets")["activeTargets"])
        except OSError:
            return 0


def _firing(labels: dict[str, str]) -> Firing:
    return labels["alertname"], labels.get("topic", "")


@contextmanager
def prometheus(folder: Path, ports: dict[int, int]) -> Iterator[Prometheus]:
    """Run Prometheus with our rules, without their waiting times, and the public ones."""
    rules = re.sub(r"\bfor: \w+", "for: 0s", (DEPLOY / "moldau-alerts.yml").read_text())
    (folder / "moldau.yml").write_text(rules)
    (folder / "public.yml").write_text(rule_file())
    targets = [
        {"targets": [f"127.0.0.1:{port}"], "labels": target_labels(number)} for number, port in ports.items()
    ]
    config = {
        "global": {"scrape_interval": "500ms", "evaluation_interval": "500ms"},
        "rule_files": ["moldau.yml", "public.yml"],
        "scrape_configs": [{"job_name": "moldau", "static_configs": targets}],
    }
    # JSON is YAML.
    (folder / "prometheus.yml").write_text(json.dumps(config))
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
        strict = {"min.insync.replicas": "3"}
        topics = [
            NewTopic("copied", 3, 3),
            NewTopic("strict", 1, 3, config=strict),
            NewTopic("single", 3, 1),
        ]
        for created in admin.create_topics(topics).values():
            created.result(30)
        producer = Producer(servers)
        producer.produce("copied", b"x")
        assert producer.flush(30) == 0
        wait_until_in_sync(cluster, "copied", "strict")
        with prometheus(tmp_path, measured.ports) as monitor:
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
            assert not (SILENT | names(While.SILENT)) & firing()
            cluster.restart(victim)
            returns = OURS | names(While.FIRES)
            eventually(lambda: not firing() & returns, timeout=60)
