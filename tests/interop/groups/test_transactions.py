"""Kafka's transaction tools on Moldau and on Apache Kafka, and DumpLogSegments on the transaction log."""

from __future__ import annotations

import re
import uuid
from pathlib import Path

import pytest
from confluent_kafka import Producer

from moldau.testing import Cluster
from tests.harness.apache.node import ApacheCluster
from tests.harness.waiting import eventually
from tests.harness.wire.requests import create_and_wait
from tests.interop.conftest import JavaTool, Node

pytestmark = pytest.mark.interop

TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
DUMP = "org.apache.kafka.tools.DumpLogSegments"
_REPLACED = [
    (re.compile(r"\b\d{13}\b"), "TIME"),
    (re.compile(r"\b\d+\s*\n"), "N\n"),
    (re.compile(r"[ \t]+"), " "),
]


def transactional(bootstrap: str, transactional_id: str) -> Producer:
    producer = Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": transactional_id, "log_level": 0}
    )
    producer.init_transactions(30)
    return producer


def plain(output: str, *words: str) -> list[str]:
    for pattern, word in _REPLACED:
        output = pattern.sub(word, output)
    for word in words:
        output = output.replace(word, "NAME")
    return sorted(line.strip() for line in output.splitlines() if "NAME" in line or "Id" in line)


def test_transactions_are_listed_described_and_aborted(
    tool: JavaTool, apache: ApacheCluster, moldau: Node
) -> None:
    """The same commands for an open transaction; `abort` ends it on the partition."""
    name = f"tools-{uuid.uuid4().hex[:6]}"
    told = []
    for node in (apache, moldau):
        bootstrap = node.bootstrap_servers
        create_and_wait(bootstrap, name)
        producer = transactional(bootstrap, name)
        producer.begin_transaction()
        producer.produce(name, "open", partition=0)
        producer.flush(30)

        def run(*arguments: str, bootstrap: str = bootstrap) -> str:
            output, code = tool(TRANSACTIONS, "--bootstrap-server", bootstrap, *arguments)
            assert code == 0, tool.stderr
            return output

        described = run("describe", "--transactional-id", name)
        columns = described.splitlines()[1].split()
        shown = run("describe-producers", "--topic", name, "--partition", "0")
        start = shown.splitlines()[1].split()[-1]
        told.append(
            {
                "list": [line.split()[0::3] for line in run("list").splitlines() if name in line],
                "describe": [described.split()[:9], columns[4:6]],
                "producers": shown.splitlines()[0].split(),
                "hanging": plain(
                    run("find-hanging", "--topic", name, "--max-transaction-timeout", "1"), name
                ),
            }
        )
        run("abort", "--topic", name, "--partition", "0", "--start-offset", start)
        after = run("describe-producers", "--topic", name, "--partition", "0").splitlines()[1].split()
        assert after[-1] == "None", after
    assert told[0] == told[1]


def test_force_terminate_ends_a_transaction(tool: JavaTool, moldau: Node) -> None:
    name = f"terminate-{uuid.uuid4().hex[:6]}"
    bootstrap = moldau.bootstrap_servers
    create_and_wait(bootstrap, name)
    producer = transactional(bootstrap, name)
    producer.begin_transaction()
    producer.produce(name, "open", partition=0)
    producer.flush(30)
    _, code = tool(
        TRANSACTIONS, "--bootstrap-server", bootstrap, "forceTerminateTransaction", "--transactionalId", name
    )
    assert code == 0, tool.stderr

    def state() -> str:
        output, _ = tool(
            TRANSACTIONS, "--bootstrap-server", bootstrap, "describe", "--transactional-id", name
        )
        return output

    eventually(
        lambda: "CompleteAbort" in state() or "Empty" in state(), what="the transaction is over", every=1
    )


def test_java_reads_stored_transactions(tool: JavaTool, tmp_path: Path) -> None:
    """DumpLogSegments decodes our `__transaction_state`."""
    with Cluster(data_dir=tmp_path) as node:
        bootstrap = node.bootstrap_servers
        create_and_wait(bootstrap, "orders", 2)
        producer = transactional(bootstrap, "stored")
        producer.begin_transaction()
        for partition in (0, 1):
            producer.produce("orders", "one", partition=partition)
        producer.commit_transaction(30)
        folders = list(node.data_dir.rglob("__transaction_state-*"))
        [log] = [path for folder in folders for path in folder.glob("*.log") if path.stat().st_size]

        def dump() -> str:
            output, code = tool(DUMP, "--transaction-log-decoder", "--files", str(log))
            assert code == 0, tool.stderr
            return output

        said = eventually(lambda: _statuses(dump())[-1:] == ["4"] and dump(), what="the end", every=1)
    assert '"transactionalId":"stored"' in said
    # Empty, open with one partition or more, commit prepared, commit complete.
    statuses = _statuses(said)
    assert (statuses[0], set(statuses[1:-2]), statuses[-2:]) == ("0", {"1"}, ["2", "4"]), said


def _statuses(dumped: str) -> list[str]:
    return re.findall(r'"transactionStatus":(\d)', dumped)
