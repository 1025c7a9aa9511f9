"""The command-line tools over SASL_PLAINTEXT and SASL_SSL, with --command-config and its older names."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.security.every_listener import SecuredListeners, every_listener, write_properties
from tests.harness.security.secured_node import jaas
from tests.harness.tools import ToolRun, run_tool, tool_command
from tests.harness.waiting import eventually

TOPIC = "orders"
WAYS = [("SASL_PLAINTEXT", "PLAIN"), ("SASL_SSL", "SCRAM-SHA-512")]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredListeners]:
    with every_listener(tmp_path_factory.mktemp("secured")) as running:
        yield running


class SecuredTools:
    """Tools that connect to one listener with a properties file."""

    def __init__(self, node: SecuredListeners, folder: Path, listener: str, mechanism: str) -> None:
        properties = node.properties(listener, mechanism)
        self.bootstrap = properties.pop("bootstrap.servers")
        self.file = write_properties(folder / "client.properties", properties)

    def run(self, name: str, *argv: str, config: str = "--command-config", stdin: str = "") -> ToolRun:
        return run_tool(name, "--bootstrap-server", self.bootstrap, config, self.file, *argv, stdin=stdin)

    def good(self, name: str, *argv: str, config: str = "--command-config", stdin: str = "") -> str:
        done = self.run(name, *argv, config=config, stdin=stdin)
        assert done.code == 0, done
        return done.out


@pytest.fixture(params=WAYS, ids=lambda way: way[0], scope="module")
def tools(
    request: pytest.FixtureRequest, node: SecuredListeners, tmp_path_factory: pytest.TempPathFactory
) -> SecuredTools:
    found = SecuredTools(node, tmp_path_factory.mktemp("client"), *request.param)
    found.good("kafka-topics", "--create", "--if-not-exists", "--topic", TOPIC, "--partitions", "1")
    found.good("kafka-console-producer", "--topic", TOPIC, stdin="one\ntwo\n")
    return found


@pytest.mark.parametrize(
    ("name", "argv", "shown"),
    [
        ("kafka-topics", ["--describe", "--topic", TOPIC], TOPIC),
        (
            "kafka-configs",
            ["--describe", "--entity-type", "brokers", "--entity-name", "1", "--all"],
            "node.id",
        ),
        ("kafka-get-offsets", ["--topic", TOPIC], f"{TOPIC}:0:"),
        ("kafka-consumer-groups", ["--list"], ""),
        ("kafka-groups", ["--list"], "GROUP"),
        ("kafka-share-groups", ["--list"], ""),
        ("kafka-streams-groups", ["--list"], ""),
        ("kafka-transactions", ["list"], "TransactionalId"),
        ("kafka-broker-api-versions", [], "id: 1"),
        ("kafka-features", ["describe"], "metadata.version"),
        ("kafka-metadata-quorum", ["describe", "--status"], "LeaderId"),
        ("kafka-log-dirs", ["--describe"], TOPIC),
        ("kafka-reassign-partitions", ["--list"], "No partition reassignments"),
    ],
)
def test_admin_tools_log_in(tools: SecuredTools, name: str, argv: list[str], shown: str) -> None:
    assert shown in tools.good(name, *argv)


@pytest.mark.parametrize("config", ["--command-config", "--consumer.config"])
def test_console_consumer_logs_in(tools: SecuredTools, config: str) -> None:
    argv = ("--topic", TOPIC, "--from-beginning", "--max-messages", "2", "--timeout-ms", "20000")
    assert tools.good("kafka-console-consumer", *argv, config=config).splitlines() == ["one", "two"]


def test_console_producer_logs_in_by_properties_of_the_command_line(
    tools: SecuredTools, node: SecuredListeners
) -> None:
    properties = node.properties("SASL_PLAINTEXT", "SCRAM-SHA-256")
    argv = [word for item in properties.items() for word in ("--producer-property", "=".join(item))]
    address = ("--bootstrap-server", properties["bootstrap.servers"], "--topic", f"{TOPIC}-2")
    done = run_tool("kafka-console-producer", *address, *argv, stdin="three\n")
    assert done.code == 0, done


@pytest.mark.parametrize("config", ["--command-config", "--producer.config"])
def test_producer_perf_test_logs_in(tools: SecuredTools, config: str) -> None:
    argv = ("--topic", f"{TOPIC}-perf", "--num-records", "10", "--record-size", "10", "--throughput", "-1")
    assert "10 records sent" in tools.good("kafka-producer-perf-test", *argv, config=config)


def test_verifiable_producer_and_latency_tools_log_in(tools: SecuredTools) -> None:
    argv = ("--topic", f"{TOPIC}-verified", "--max-messages", "3")
    assert '"acked":3' in tools.good("kafka-verifiable-producer", *argv).replace(" ", "")
    latency = ("--topic", f"{TOPIC}-latency", "--num-records", "3", "--producer-acks", "all")
    assert "Avg latency" in tools.good("kafka-e2e-latency", *latency, "--record-size", "10")


def test_replica_verification_logs_in(tools: SecuredTools) -> None:
    argv = (
        "--bootstrap-server",
        tools.bootstrap,
        "--command-config",
        tools.file,
        "--report-interval-ms",
        "50",
    )
    with subprocess.Popen(
        tool_command("kafka-replica-verification", *argv), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        stdout = process.stdout
        try:
            eventually(lambda: "max lag is" in stdout.readline(), what="a report")
        finally:
            process.kill()


def test_refused_login_is_reported_without_the_password(node: SecuredListeners, tmp_path: Path) -> None:
    tools = SecuredTools(node, tmp_path, "SASL_PLAINTEXT", "PLAIN")
    wrong = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    wrong["sasl.jaas.config"] = jaas("PLAIN", "alice", "not-the-word")
    tools.file = write_properties(tmp_path / "wrong.properties", wrong)
    for name, argv in (
        ("kafka-topics", ["--list"]),
        ("kafka-console-producer", ["--topic", TOPIC]),
        ("kafka-console-consumer", ["--topic", TOPIC]),
    ):
        done = tools.run(name, *argv)
        assert done.code == 1
        text = done.out + done.err
        assert "refused the login: Authentication failed: Invalid username or password" in text
        assert "moldau doctor" in text
        assert "not-the-word" not in text
