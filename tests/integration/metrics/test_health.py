"""/healthz and /readyz of real nodes: while they start, are fenced, lose their controllers and stop."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from moldau.server.metrics.http import MAX_CONNECTIONS
from tests.harness.scraping import MeasuredCluster, measured_cluster
from tests.harness.waiting import eventually

SESSION_MS = 1500
QUICK = {"broker.session.timeout.ms": SESSION_MS, "broker.heartbeat.interval.ms": 300}


def test_a_node_that_serves_clients_is_ready(measured: MeasuredCluster) -> None:
    answer = measured.get("/readyz")
    assert (answer.status, json.loads(answer.body)) == (200, {"status": "ready", "reasons": []})
    assert measured.get("/healthz").status == 200
    assert measured.value("moldau_ready") == 1
    assert measured.value("kafka_server_kafkaserver_brokerstate") == 3


def test_a_broker_without_a_controller_is_not_ready() -> None:
    with measured_cluster(brokers=1, controllers=1, config=QUICK) as measured:
        cluster = measured.cluster
        assert measured.readiness(1) == (200, [])
        # The controller is a node of its own, which has no broker to be registered.
        assert measured.readiness(2) == (200, [])
        # `count()` of a family of brokers counts brokers.
        of_controller = measured.families(node=2)
        assert "kafka_server_kafkaserver_brokerstate" not in of_controller
        assert "kafka_server_replicamanager_leadercount" not in of_controller
        assert "kafka_controller_kafkacontroller_activebrokercount" in of_controller

        cluster.pause(2)
        eventually(lambda: measured.readiness(1)[0] == 503, timeout=20)
        _, reasons = measured.readiness(1)
        assert "fenced: no controller has accepted a heartbeat" in reasons[0]
        assert measured.get("/healthz").status == 200
        assert measured.value("moldau_ready") == 0
        assert measured.value("moldau_broker_heartbeat_age_seconds") * 1000 > SESSION_MS
        cluster.resume(2)
        eventually(lambda: measured.readiness(1) == (200, []), timeout=20)

        cluster.pause(2)
        cluster.node(1).begin_stop()
        eventually(lambda: measured.readiness(1) == (503, ["the node is shutting down"]), every=0.01)
        assert measured.value("kafka_server_kafkaserver_brokerstate") == 7
        cluster.node(1).wait_stopped()

        cluster.node(1).start(wait=False)
        eventually(lambda: _answers(measured, 1), timeout=20)
        status, reasons = measured.readiness(1)
        assert status == 503
        assert reasons[0] == "the committed metadata is not applied yet"
        assert "the broker is not registered" in reasons
        assert measured.value("kafka_server_brokertopicmetrics_messagesin_total") == 0
        cluster.resume(2)
        eventually(lambda: measured.readiness(1) == (200, []), timeout=30)


def test_a_controller_without_a_quorum_is_not_ready() -> None:
    with measured_cluster(brokers=1, controllers=3) as measured:
        cluster = measured.cluster
        assert [measured.readiness(node) for node in (2, 3, 4)] == [(200, [])] * 3
        leader = int(measured.value("kafka_server_raft_metrics_current_leader", node=2))
        survivor = next(node for node in (2, 3, 4) if node != leader)
        for node in {2, 3, 4} - {survivor}:
            cluster.kill(node)
        expected = (503, ["there is no active controller"])
        eventually(lambda: measured.readiness(survivor) == expected, timeout=20)


def _answers(measured: MeasuredCluster, node: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", measured.ports[node])) == 0


def test_without_a_port_nothing_of_it_is_imported() -> None:
    program = (
        "import moldau.server.run, sys; ours = ('moldau.metrics', 'moldau.server.metrics'); "
        "print([name for name in sys.modules if name.startswith(ours)])"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert answer.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", 405),
        (b"GET /nothing HTTP/1.1\r\n\r\n", 404),
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nX: " + b"x" * 20_000 + b"\r\n\r\n", 400),
        (b"HEAD /healthz HTTP/1.1\r\n\r\n", 200),
        (b"GET /healthz?full=1 HTTP/1.0\r\n\r\n", 200),
    ],
)
def test_requests_are_bounded_and_refused(
    measured: MeasuredCluster, request_bytes: bytes, status: int
) -> None:
    with socket.create_connection(("127.0.0.1", measured.ports[1]), timeout=30) as client:
        client.sendall(request_bytes)
        answer = client.recv(65_536)
    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
    assert request_bytes[:4] != b"HEAD" or answer.endswith(b"\r\n\r\n")


def test_probes_are_answered_while_clients_hold_all_connections(measured: MeasuredCluster) -> None:
    address = ("127.0.0.1", measured.ports[1])
    held = [socket.create_connection(address, timeout=30) for _ in range(MAX_CONNECTIONS)]
    try:
        assert [measured.get(path).status for path in ("/healthz", "/readyz", "/metrics")] == [200] * 3
    finally:
        for each in held:
            each.close()


def test_a_broker_with_a_failed_log_directory_is_not_ready(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    config = {"log.dirs": ",".join(map(str, folders)), "metadata.log.dir": str(tmp_path / "metadata")}
    with measured_cluster(config=config) as measured:
        assert measured.readiness() == (200, [])
        admin = AdminClient({"bootstrap.servers": measured.cluster.bootstrap_servers})
        admin.create_topics([NewTopic("before", 4, 1)])["before"].result(30)
        # A file in the place of the folder: nothing can be created in it any more.
        folders[1].rename(tmp_path / "gone")
        folders[1].write_text("")
        for number in range(4):
            created = admin.create_topics([NewTopic(f"after-{number}", 4, 1)])[f"after-{number}"]
            created.exception(30)
        expected = f"the log directory {folders[1]} is offline"
        eventually(lambda: measured.readiness() == (503, [expected]), timeout=30)
        assert measured.value("kafka_log_logmanager_offlinelogdirectorycount") == 1
        directories = {
            sample.labels["logDirectory"]: sample.value
            for sample in measured.families()["kafka_log_logmanager_logdirectoryoffline"].samples
        }
        assert directories == {str(folders[0]): 0, str(folders[1]): 1}
        assert measured.value("kafka_server_replicamanager_offlinereplicacount") > 0
        assert measured.get("/healthz").status == 200
