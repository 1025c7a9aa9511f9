"""`moldau dev --secure`: TLS and SCRAM without configuration, and configs of clients that work as printed."""

from __future__ import annotations

import ast
import stat
from pathlib import Path

import confluent_kafka
import kafka

from tests.harness.tools import run_tool
from tests.harness.waiting import eventually
from tests.integration.tools.test_dev_cluster import Dev, dev, running


def printed(shown: list[str], first: str, last: str) -> str:
    """Return the indented block from a line that begins with `first` to one that is `last`."""
    lines = [line.strip() for line in shown]
    begin = next(index for index, line in enumerate(lines) if line.startswith(first))
    return "".join(lines[begin : lines.index(last, begin) + 1])


def end(node: Dev) -> None:
    """Stop the command; on a busy machine it may log that its loop was late."""
    node.process.terminate()
    node.process.communicate(timeout=60)


def properties(file: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in file.read_text().splitlines())


def test_printed_configs_work(tmp_path: Path) -> None:
    with running(tmp_path, "--secure", "--port", "0") as node:
        file = tmp_path / "data/security/client.properties"
        assert all(f"  {line}" in node.shown for line in file.read_text().splitlines())
        common = ("--bootstrap-server", node.bootstrap, "--command-config", str(file))
        assert run_tool("kafka-topics", *common, "--create", "--topic", "orders").code == 0
        block = printed(node.shown, "confluent_kafka.Producer({", "})")
        configs = ast.literal_eval(block.removeprefix("confluent_kafka.Producer(").removesuffix(")"))
        producer = confluent_kafka.Producer(configs)
        producer.produce("orders", b"one")
        assert producer.flush(20) == 0
        call = ast.parse(printed(node.shown, "kafka.KafkaProducer(", ")")).body[0]
        assert isinstance(call, ast.Expr) and isinstance(call.value, ast.Call)
        arguments = {str(each.arg): ast.literal_eval(each.value) for each in call.value.keywords}
        consumer = kafka.KafkaConsumer(**arguments)
        assert "orders" in consumer.topics()
        consumer.close()
        end(node)


def test_a_cluster_keeps_its_certificates_and_users(tmp_path: Path) -> None:
    with running(tmp_path, "--secure", "--port", "0") as node:
        before = properties(tmp_path / "data/security/librdkafka.properties")
        end(node)
    with running(tmp_path, "--port", "0") as node:
        configs = {**before, "bootstrap.servers": node.bootstrap}
        assert confluent_kafka.Producer(configs).list_topics(timeout=20).brokers
        end(node)


def test_three_brokers(tmp_path: Path) -> None:
    with running(tmp_path, "--secure", "--brokers", "3", "--port", "0") as cluster:
        configs = properties(tmp_path / "data/security/librdkafka.properties")
        producer = confluent_kafka.Producer({**configs, "acks": "all", "log_level": 0})
        # Seen once with fewer on a busy machine, for a reason that was not found.
        eventually(lambda: len(producer.list_topics(timeout=20).brokers) == 3, timeout=30)
        producer.produce("orders", b"one")
        assert producer.flush(30) == 0
        end(cluster)


def test_files_with_secrets_belong_to_their_owner_only(tmp_path: Path) -> None:
    with running(tmp_path, "--secure", "--brokers", "2", "--port", "0") as cluster:
        password = properties(tmp_path / "data/security/librdkafka.properties")["sasl.password"]
        open_to_others = [
            each
            for each in tmp_path.rglob("*")
            if each.is_file() and each.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)
        ]
        assert all(password.encode() not in each.read_bytes() for each in open_to_others)
        assert all(b"PRIVATE KEY" not in each.read_bytes() for each in open_to_others)
        commands = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in cluster.pids]
        assert all(password.encode() not in each for each in commands)
        end(cluster)


def test_existing_data_without_security_is_refused(tmp_path: Path) -> None:
    with running(tmp_path, "--port", "0") as node:
        end(node)
    process = dev(tmp_path, "--secure", "--port", "0")
    out, err = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "without security" in out + err
