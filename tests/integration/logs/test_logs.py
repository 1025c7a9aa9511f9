"""Logs of a real node: as JSON, of requests switched on at run time, and of administrative requests."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from moldau.client.admin import AdminClient as GroupAdmin
from moldau.local.ports import ReservedPorts
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest
from moldau.testing import Cluster
from tests.harness.nodes.leaders import wait_until_in_sync
from tests.harness.rest_proxy import Api, embedded
from tests.harness.tools import ToolRun, run_tool
from tests.harness.waiting import eventually
from tests.harness.wire.wire import Wire


@pytest.fixture(scope="module")
def logged() -> Iterator[Cluster]:
    with Cluster(config={"auto.create.topics.enable": True}) as cluster:
        yield cluster


def set_level(cluster: Cluster, *words: str) -> ToolRun:
    return run_tool(
        "kafka-configs",
        *("--bootstrap-server", cluster.bootstrap_servers, "--alter"),
        *("--entity-type", "broker-loggers", "--entity-name", "1", *words),
    )


def lines_with(cluster: Cluster, *words: str) -> list[str]:
    return [line for line in cluster.log_file.read_text().splitlines() if all(word in line for word in words)]


def produce(cluster: Cluster, client_id: str) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "client.id": client_id})
    producer.produce("logged", b"x")
    assert producer.flush(30) == 0


def test_the_request_log_is_switched_at_run_time(logged: Cluster) -> None:
    produce(logged, "before")
    assert lines_with(logged, "client_id=before") == []
    assert set_level(logged, "--add-config", "kafka.request.logger=DEBUG").code == 0
    produce(logged, "during")
    found = eventually(lambda: lines_with(logged, "api=Produce", "client_id=during", "error=NONE"))
    assert "(kafka.request.logger)" in found[0]
    assert "principal=User:ANONYMOUS" in found[0]
    assert lines_with(logged, "api=Metadata", "client_id=during")
    assert set_level(logged, "--delete-config", "kafka.request.logger").code == 0
    produce(logged, "after")
    assert lines_with(logged, "client_id=after") == []


def test_slow_requests_are_logged_when_switched_on() -> None:
    """A write with acks=all that waits for a paused replica until it is fenced is slow."""
    config = {
        "broker.session.timeout.ms": 2000,
        "broker.heartbeat.interval.ms": 300,
        "default.replication.factor": 2,
        "min.insync.replicas": 1,
    }
    with Cluster(brokers=2, controllers=1, config=config) as cluster:
        first = cluster.node(1)
        servers = {"bootstrap.servers": f"127.0.0.1:{first.port}"}
        admin = AdminClient(servers)
        admin.create_topics([NewTopic("slow", 1, replica_assignment=[[1, 2]])])["slow"].result(30)
        wait_until_in_sync(cluster, "slow")
        assert set_level(cluster, "--add-config", "moldau.slow.requests=INFO").code == 0
        producer = Producer({**servers, "client.id": "writer", "acks": "all"})
        producer.produce("slow", b"x")
        assert producer.flush(30) == 0
        cluster.pause(2)
        producer.produce("slow", b"x")
        assert producer.flush(30) == 0
        cluster.resume(2)
        text = first.log_file.read_text().splitlines()
    slow = [line for line in text if "slow-request" in line and "client_id=writer" in line]
    assert len(slow) == 1
    assert "api=Produce" in slow[0]


def test_both_request_logs_are_off_by_default(logged: Cluster) -> None:
    described = run_tool(
        "kafka-configs",
        *("--bootstrap-server", logged.bootstrap_servers, "--describe"),
        *("--entity-type", "broker-loggers", "--entity-name", "1"),
    )
    assert "moldau.slow.requests=WARN" in described.out
    assert "kafka.request.logger=WARN" in described.out


def test_administrative_requests_are_in_the_audit_log(logged: Cluster) -> None:
    admin = AdminClient({"bootstrap.servers": logged.bootstrap_servers, "client.id": "auditor"})
    admin.create_topics([NewTopic("audited", 1, 1)])["audited"].result(30)
    with pytest.raises(Exception, match="TOPIC_ALREADY_EXISTS"):
        admin.create_topics([NewTopic("audited", 1, 1)])["audited"].result(30)
    found = eventually(lambda: lines_with(logged, "CreateTopics of audited by User:ANONYMOUS"))
    assert [line.rsplit(": ", 1)[1].split()[0] for line in found] == ["NONE", "TOPIC_ALREADY_EXISTS"]
    assert "(client auditor, listener PLAINTEXT)" in found[0]
    words = ("--add-config", "retention.ms=1234567", "--entity-type", "topics", "--entity-name", "audited")
    servers = ("--bootstrap-server", logged.bootstrap_servers)
    assert run_tool("kafka-configs", *servers, "--alter", *words).code == 0
    [line] = eventually(lambda: lines_with(logged, "IncrementalAlterConfigs of audited"))
    assert "1234567" not in line


def test_a_request_is_audited_though_its_client_does_not_wait(logged: Cluster) -> None:
    admin = AdminClient({"bootstrap.servers": logged.bootstrap_servers})
    admin.create_topics([NewTopic("left-alone", 1, 1)])["left-alone"].result(30)
    with Wire(logged.bootstrap_servers, client_id="impatient") as wire:
        wire.post(DeleteTopicsRequest(topic_names=["left-alone"], timeout_ms=10_000), 5)
    eventually(lambda: "left-alone" not in admin.list_topics(timeout=10).topics)
    [line] = eventually(lambda: lines_with(logged, "DeleteTopics of left-alone by User:ANONYMOUS"))
    assert "(client impatient, listener PLAINTEXT)" in line


def test_offsets_and_members_of_others_are_audited(logged: Cluster) -> None:
    servers = ("--bootstrap-server", logged.bootstrap_servers)
    produce(logged, "any")
    words = ("--group", "moved", "--topic", "logged", "--reset-offsets", "--to-earliest", "--execute")
    assert run_tool("kafka-consumer-groups", *servers, *words).code == 0
    assert eventually(lambda: lines_with(logged, "OffsetCommit of moved, logged by User:ANONYMOUS", "NONE"))
    with Consumer(
        {"bootstrap.servers": logged.bootstrap_servers, "group.id": "removed", "client.id": "member"}
    ) as member:
        member.subscribe(["logged"])
        eventually(lambda: member.poll(0.1) or member.assignment())
        with GroupAdmin(logged.bootstrap_servers) as admin:
            admin.remove_members_from_group("removed")
        found = eventually(lambda: lines_with(logged, "LeaveGroup of removed"))
        assert "(client member," not in found[0]
    assert lines_with(logged, "(client member,", "LeaveGroup") == []


def test_dev_logs_json(tmp_path: Path) -> None:
    reserved = ReservedPorts("127.0.0.1")
    port = reserved.choose()
    command = [
        sys.executable,
        "-m",
        "moldau",
        "dev",
        "--port",
        str(port),
        "--verbose",
        "--log-format",
        "json",
    ]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        while "Press Ctrl-C" not in process.stdout.readline():
            assert process.poll() is None
        process.terminate()
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        reserved.release()
    lines: list[dict[str, Any]] = [json.loads(line) for line in errors.splitlines()]
    [ready] = [line for line in lines if line["event"] == "node.ready"]
    assert ready["message"].startswith("node 1 of cluster ") and ready["node"] == 1
    assert [line["node"] for line in lines if line["event"] == "node.stopped"] == [1]
    assert "%s" not in {line["event"] for line in lines}


@pytest.mark.parametrize(
    ("service", "options", "event"),
    [
        ("registry", ["--verbose"], "registry.leader"),
        ("rest", ["--set", "producer.nonsense=1"], "config.warning"),
    ],
)
def test_services_log_json(
    logged: Cluster, tmp_path: Path, service: str, options: list[str], event: str
) -> None:
    reserved = ReservedPorts("127.0.0.1")
    port = reserved.choose()
    words = ["--bootstrap-server", logged.bootstrap_servers, "--port", str(port)]
    file = tmp_path / "log"

    def lines() -> list[dict[str, Any]]:
        written = file.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in written if line.endswith("\n")]

    with file.open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "moldau", service, *words, *options, "--log-format", "json"],
            stdout=subprocess.PIPE,
            stderr=log,
        )
    try:
        assert process.stdout is not None
        assert b" is ready: " in process.stdout.readline()
        if service == "rest":
            # The first record creates the producer.
            records = {"records": [{"value": 1}]}
            assert Api(port)("POST", "/topics/logged", records, embedded("json")).status == 200
        [line] = eventually(lambda: [each for each in lines() if each["event"] == event], timeout=30)
        assert line["logger"].startswith(f"moldau.{service}.")
        assert {"time", "level", "message"} <= line.keys()
    finally:
        process.terminate()
        process.communicate(timeout=60)
        reserved.release()


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "moldau", "dev", "--log-format", "xml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "--log-format is text or json, not xml." in done.stdout + done.stderr
