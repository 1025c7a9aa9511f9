"""What failover does to each group, and the status of partitions."""

from __future__ import annotations

import pytest

from moldau.base.ids import TopicPartition, Uuid, format_uuid
from moldau.client.records import OffsetAndMetadata
from moldau.pipelines.mirror.copy.assignment import KnownTopic
from moldau.pipelines.mirror.failover.plan import MovePlan, Translation, UncopiedRecords, planned_moves
from moldau.pipelines.mirror.failover.status import (
    NO_TARGET,
    NOT_STARTED,
    OK,
    OVERTAKEN,
    RECREATED,
    TRUNCATED,
    partition_status,
)
from moldau.pipelines.mirror.records.source_offset import SourceOffset

SOURCE, REMOTE = TopicPartition("t", 0), TopicPartition("us.t", 0)


def translation(offset: int | None, repeated: int = 0) -> Translation:
    return Translation("g", SOURCE, 70, REMOTE, offset, repeated)


@pytest.mark.parametrize(
    ("offset", "state", "current", "end", "expected"),
    [
        (50, "Empty", None, 60, ("commit", 10, 3)),
        (50, "Dead", 40, 60, ("commit", 10, 3)),
        (50, "Empty", 50, 60, ("keep", 10, 0)),
        (50, "Empty", 55, 60, ("keep", 5, 0)),
        (50, "Stable", 40, 60, ("active", 20, 0)),
        (50, "", 40, 60, ("active", 20, 0)),
        (None, "Empty", None, 60, ("unknown", None, 0)),
        (61, "Empty", 40, 60, ("unknown", 20, 0)),
        (50, "Empty", None, None, ("unknown", None, 0)),
    ],
)
def test_moves(
    offset: int | None,
    state: str,
    current: int | None,
    end: int | None,
    expected: tuple[str, int | None, int],
) -> None:
    (move,) = planned_moves(
        [translation(offset, repeated=3)],
        {"g": state},
        {} if current is None else {"g": {REMOTE: OffsetAndMetadata(current)}},
        {} if end is None else {REMOTE: end},
    )
    assert (move.action, move.unread, move.repeated) == expected


def test_only_commits_are_executed() -> None:
    moves = planned_moves([translation(50)], {"g": "Empty"}, {}, {REMOTE: 60})
    plan = MovePlan(moves, (UncopiedRecords(SOURCE, 4),), ("note",))
    assert plan.commits == {"g": {REMOTE: OffsetAndMetadata(50, "")}}
    document = plan.document()
    assert document["moves"][0]["partition"] == "us.t-0"
    assert document["uncopied"] == [{"partition": "t-0", "records": 4}]
    active = planned_moves([translation(50)], {"g": "Stable"}, {}, {REMOTE: 60})
    assert MovePlan(active, ()).commits == {}


ID = Uuid(bytes(15) + b"\x07")
TOPIC = KnownTopic(ID, 1)


@pytest.mark.parametrize(
    ("stored", "log", "state", "lag"),
    [
        (None, (0, 0), OK, 0),
        (None, (0, 5), NOT_STARTED, 5),
        (SourceOffset(SOURCE, 4, format_uuid(ID)), (0, 5), OK, 0),
        (SourceOffset(SOURCE, 2), (0, 5), OK, 2),
        (SourceOffset(SOURCE, 2), (4, 9), OVERTAKEN, 5),
        (SourceOffset(SOURCE, 8), (0, 5), TRUNCATED, 0),
        (SourceOffset(SOURCE, 8, "another"), (0, 5), RECREATED, 5),
    ],
)
def test_status_of_a_partition(
    stored: SourceOffset | None, log: tuple[int, int], state: str, lag: int
) -> None:
    found = partition_status(SOURCE, TOPIC, TOPIC, stored, log)
    assert (found.state, found.lag) == (state, lag)


def test_a_partition_without_target_is_named() -> None:
    assert partition_status(SOURCE, TOPIC, None, None, (0, 5)).state == NO_TARGET
    assert partition_status(TopicPartition("t", 1), TOPIC, TOPIC, None, (0, 5)).state == NO_TARGET
