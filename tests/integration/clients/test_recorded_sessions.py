"""Replays of recorded sessions of real clients (`tests.harness.sessions.record`).

Every response must decode in the requested version and have the errors and records that it
had in the recording.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from moldau.base.errors import ErrorCode
from moldau.testing import Cluster
from tests.harness.sessions.replay import FETCH, Exchange, error_codes, fetched, replay, topic_ids
from tests.harness.sessions.sessions import FOLDER, REQUEST, SUFFIX, Session

PATHS = sorted(FOLDER.glob(f"*{SUFFIX}"))
#: Transient errors of Apache Kafka after a change; a faster broker need not return them.
NOT_YET = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_ID,
}


@pytest.fixture
def kafka_cluster_config() -> dict[str, str | int | bool]:
    """Accept the timestamps of the recording."""
    return {"log.message.timestamp.after.max.ms": 2**63 - 1, "log.retention.ms": -1}


def test_sessions_of_the_main_clients_are_recorded() -> None:
    clients = " ".join(Session.read(path).about["client"] for path in PATHS)
    for name in ("kcat", "Java", "franz-go"):
        assert name in clients


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name.removesuffix(SUFFIX))
def test_a_recorded_session_is_answered_as_recorded(path: Path, kafka_cluster: Cluster) -> None:
    session = Session.read(path)
    recorded, found = Records(), Records()
    count = 0
    for count, exchange in enumerate(replay(session, kafka_cluster.bootstrap_servers), 1):  # noqa: B007
        compare_errors(exchange)
        recorded.take(exchange, exchange.recorded)
        found.take(exchange, exchange.found)
    assert 0 < count <= len([event for event in session.events if event.kind == REQUEST])
    assert recorded.by_partition
    assert found.by_partition == recorded.by_partition


def compare_errors(exchange: Exchange) -> None:
    recorded, found = sorted(error_codes(exchange.recorded)), sorted(error_codes(exchange.found))
    if recorded != found and not quicker(recorded, found):
        raise AssertionError(f"{exchange.header}: {found}, recorded: {recorded}")


def quicker(recorded: list[tuple[str, int]], found: list[tuple[str, int]]) -> bool:
    """Whether the responses differ only in transient errors and in the fields these leave empty."""
    then, now = dict(recorded), dict(found)
    early = tuple(place for place, code in then.items() if code in NOT_YET)
    return all(
        now.get(place) == code or (place in early and now.get(place) == 0) for place, code in then.items()
    ) and all(code == 0 and place.startswith(early) for place, code in now.items() if place not in then)


class Records:
    """All distinct records that one broker served in a session."""

    def __init__(self) -> None:
        self.by_partition: dict[tuple[str, int], dict[int, Any]] = defaultdict(dict)
        self._names: dict[bytes, str] = {}

    def take(self, exchange: Exchange, answer: Any) -> None:
        self._names |= {identity: name for name, identity in topic_ids(answer)}
        if exchange.header.api_key == FETCH:
            for name, partition, records in fetched(answer, self._names):
                for offset, *content in records:
                    self.by_partition[name, partition][offset] = content
