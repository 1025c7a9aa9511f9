"""Apache Kafka and Moldau alternate on one folder with SCRAM users, delegation tokens and ACLs.

Each one finds what the other wrote: the same descriptions, logins and decisions.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tests.harness.apache.shared_folder import APACHE, MOLDAU
from tests.harness.security.login import logged_in
from tests.harness.security.records import TOPICS, SecurityLedger, decisions, descriptions
from tests.harness.security.secured_node import SecuredNode, scram_options
from tests.harness.waiting import eventually

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

CONFIG: dict[str, str | int | bool] = {
    # A metadata snapshot after nearly every change: both the log and snapshots change hands.
    "metadata.log.max.record.bytes.between.snapshots": 1500,
    "broker.session.timeout.ms": 1000,
    "broker.heartbeat.interval.ms": 200,
}


@pytest.mark.parametrize(
    "turns", [(APACHE, MOLDAU) * 2, (MOLDAU, APACHE) * 2], ids=["Apache first", "ours first"]
)
def test_users_tokens_and_acls_change_hands(turns: tuple[str, ...], tmp_path: Path, libs: Path) -> None:
    ledger = SecurityLedger()
    with SecuredNode(tmp_path, libs, None, CONFIG) as node:
        node.shared.format(turns[0], *scram_options())
        described: dict[str, object] = {}
        decided: dict[tuple[str, str, str], int] = {}
        for turn, software in enumerate(turns):
            node.start(software, formatted=True)
            if turn == 0:
                _create_topics(node)
            else:
                assert descriptions(node) == described
                assert decisions(node) == decided
            ledger.check(node)
            ledger.work(node, turn)
            described, decided = descriptions(node), decisions(node)
            node.shared.kill() if turn % 2 else node.shared.stop()


def _create_topics(node: SecuredNode) -> None:
    topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in TOPICS]
    with logged_in(node) as wire:
        answer = wire.call(CreateTopicsRequest(topics=topics, timeout_ms=20_000), 7)
    assert [each.error_code for each in answer.topics] == [0] * len(TOPICS), answer
    eventually(
        lambda: all(code == 0 for (user, _, _), code in decisions(node).items() if user == "admin"),
        what="the topics are served",
    )
