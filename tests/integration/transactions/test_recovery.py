"""Transaction records, and the recovery of prepared transactions after a restart."""

from __future__ import annotations

from pathlib import Path

from confluent_kafka import Producer

from moldau.base.clock import SystemClock
from moldau.base.ids import TopicPartition
from moldau.protocol.messages.describe_transactions import DescribeTransactionsRequest
from moldau.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from moldau.protocol.stored.coordinator import TRANSACTION_STATE
from moldau.protocol.stored.transaction_state import TransactionLogValue
from moldau.statemachine.coordinator_records import CoordinatorRecord, decode_entries, encode_entries
from moldau.storage.disk.disk import PosixDisk
from moldau.storage.log.append import Origin
from moldau.storage.log.config import LogConfig
from moldau.storage.log.log import Log
from moldau.transactions.records import from_record, to_record
from tests.harness.waiting import eventually
from tests.harness.wire.requests import create_and_wait
from tests.harness.wire.wire import Wire
from tests.integration.conftest import Node, StartNode
from tests.integration.transactions.test_transactions import SECONDS, producer, read, send

SAFE_DOWNGRADE = 2


def begin(node: Node, topic: str) -> Producer:
    create_and_wait(node.bootstrap_servers, topic, 2)
    source = producer(node.bootstrap_servers, topic)
    source.begin_transaction()
    for partition in (0, 1):
        send(source, topic, f"in {partition}", partition=partition)
    return source


def state(bootstrap: str, transactional_id: str) -> str:
    with Wire(bootstrap) as wire:
        answer = wire.call(DescribeTransactionsRequest(transactional_ids=[transactional_id]), 0)
    return str(answer.transaction_states[0].transaction_state)


def stored(node: Node) -> tuple[Path, list[CoordinatorRecord]]:
    """Return the one partition of `__transaction_state` with records, and its records."""
    folders = node.data_dir.rglob("__transaction_state-*")
    [folder] = [each for each in folders if any(path.stat().st_size for path in each.glob("*.log"))]
    data = memoryview(b"".join(path.read_bytes() for path in sorted(folder.glob("*.log"))))
    entries = [entry for _, entry in decode_entries(TRANSACTION_STATE, data)]
    return folder, [entry for entry in entries if isinstance(entry, CoordinatorRecord)]


def leave_prepared(node: Node, *, committed: bool) -> None:
    """Leave the log as a coordinator that is killed right after preparing the end."""
    folder, records = stored(node)
    last = records[-1]
    assert isinstance(last.value, TransactionLogValue)
    found = from_record(last.key.transactional_id, last.value)  # type: ignore[attr-defined]
    prepared = found.prepared(committed=committed, client_version=2, next_producer_id=-1, now_ms=1)
    name, _, index = folder.name.rpartition("-")
    log = Log.open(
        PosixDisk(), SystemClock(), str(folder), TopicPartition(name, int(index)), None, LogConfig(),
        clean_shutdown=True,
    )  # fmt: skip
    log.append_as_leader(
        encode_entries([to_record(prepared, 2)], 1), log.leader_epochs.latest, origin=Origin.COORDINATOR
    )
    log.flusher.flush()
    log.close()


def test_a_prepared_commit_is_completed_after_a_restart(start_node: StartNode, topic: str) -> None:
    node = start_node()
    begin(node, topic)
    node.stop()
    leave_prepared(node, committed=True)
    node.restart()
    bootstrap = node.bootstrap_servers
    eventually(lambda: state(bootstrap, topic) == "CompleteCommit", what="the commit is completed")
    assert sorted(read(bootstrap, topic, 2)) == ["in 0", "in 1"]


def test_a_prepared_abort_is_completed_after_a_restart(start_node: StartNode, topic: str) -> None:
    node = start_node()
    begin(node, topic)
    node.stop()
    leave_prepared(node, committed=False)
    node.restart()
    bootstrap = node.bootstrap_servers
    eventually(lambda: state(bootstrap, topic) == "CompleteAbort", what="the abort is completed")
    assert read(bootstrap, topic, 2) == []
    assert len(read(bootstrap, topic, 2, committed=False)) == 2


def test_the_transaction_version_selects_the_record_version(start_node: StartNode, topic: str) -> None:
    node = start_node()
    begin(node, topic).commit_transaction(SECONDS)
    with Wire(node.bootstrap_servers) as wire:
        update = FeatureUpdateKey(
            feature="transaction.version", max_version_level=0, upgrade_type=SAFE_DOWNGRADE
        )
        answer = wire.call(UpdateFeaturesRequest(feature_updates=[update]), 1)
    assert answer.error_code == 0, answer
    source = producer(node.bootstrap_servers, topic)
    source.begin_transaction()
    send(source, topic, "classic")
    source.commit_transaction(SECONDS)
    eventually(lambda: "classic" in read(node.bootstrap_servers, topic, 2), what="the classic flow")
    versions = [record.version for record in stored(node)[1]]
    assert versions == sorted(versions, reverse=True)
    assert {0, 1} == set(versions)
