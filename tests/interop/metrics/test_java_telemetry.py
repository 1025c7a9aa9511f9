"""Kafka's Java clients push their metrics (KIP-714), and its own tool manages the subscriptions."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.apache.node import java_command
from tests.harness.scraping import MeasuredCluster, measured_cluster
from tests.harness.waiting import eventually

pytestmark = pytest.mark.interop

CLIENT_METRICS = "org.apache.kafka.tools.ClientMetricsCommand"
RECORDS = 4000


@pytest.fixture(scope="module")
def measured() -> Iterator[MeasuredCluster]:
    with measured_cluster() as cluster:
        yield cluster


def java(libs: Path, name: str, *words: str) -> str:
    done = subprocess.run(
        java_command(libs, name, *words), capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_java_producer_pushes_its_metrics(measured: MeasuredCluster, libs: Path) -> None:
    servers = ("--bootstrap-server", measured.cluster.bootstrap_servers)
    words = ("--alter", "--name", "java", "--metrics", "*", "--interval", "500")
    altered = java(
        libs, CLIENT_METRICS, *servers, *words, "--match", "client_software_name=apache-kafka-java"
    )
    assert altered == "Altered client metrics config for java.\n"
    described = java(libs, CLIENT_METRICS, *servers, "--describe").splitlines()
    assert described[0] == "Client metrics configs for java are:"
    assert "  interval.ms=500" in described
    producer = subprocess.Popen(
        java_command(
            libs,
            "org.apache.kafka.tools.ProducerPerformance",
            *("--topic", "java", "--num-records", str(RECORDS), "--record-size", "100"),
            *("--throughput", "400"),
            *("--producer-props", f"bootstrap.servers={measured.cluster.bootstrap_servers}"),
            *("client.id=java-producer", "enable.metrics.push=true"),
        ),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        eventually(lambda: pushed_records(measured) > 0, timeout=60)
        output, _ = producer.communicate(timeout=60)
    finally:
        producer.kill()
    assert producer.returncode == 0, output
    assert pushed_records(measured) == pytest.approx(RECORDS, rel=0.05)
    assert measured.value("moldau_client_telemetry_malformed_total") == 0
    assert java(libs, CLIENT_METRICS, *servers, "--delete", "--name", "java").startswith("Deleted")


def pushed_records(measured: MeasuredCluster) -> float:
    return measured.sums("org_apache_kafka_producer_record_send_total", client_id="java-producer")
