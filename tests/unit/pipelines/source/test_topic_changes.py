"""Changes of topics since the last batch, and the messages about lost records."""

from __future__ import annotations

import logging

import pytest

from moldau.base.ids import TopicPartition, Uuid
from moldau.pipelines.source import data_loss
from moldau.pipelines.source.errors import DataLoss, ForeignCheckpoint
from moldau.pipelines.source.planning import Range
from moldau.pipelines.source.subscription import Subscription
from moldau.pipelines.source.topic_changes import Seen, check_subscribed, compare, is_suspicious

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
OLD, NEW = Uuid(b"o" * 16), Uuid(b"n" * 16)


def seen(*ends: int, topic_id: Uuid = OLD) -> Seen:
    return Seen({TopicPartition("a", number): end for number, end in enumerate(ends)}, {"a": topic_id})


def test_growth_is_no_loss() -> None:
    change = compare({A0: 5}, {}, seen(7), seen(9, 3))
    assert change.losses == []
    assert change.recreated == frozenset()
    assert not is_suspicious({A0: 5}, {"a": OLD}, seen(5))
    assert is_suspicious({A0: 5}, {"a": NEW}, seen(5))


def test_deleted_partition_is_a_loss() -> None:
    gone = Seen({}, {})
    assert is_suspicious({A0: 5}, {}, gone)
    [lost] = compare({A0: 5}, {}, seen(9), gone).losses
    assert str(lost) == "a-0: the partition was deleted with offsets 5 to 8 not yet read (4 records)"
    [lost] = compare({A0: 5}, {}, None, gone).losses
    assert str(lost) == "a-0: the partition was deleted; it was read to offset 5"


def test_recreated_topic_is_detected_by_its_id() -> None:
    change = compare({A0: 5}, {}, seen(9), seen(100, topic_id=NEW))
    assert change.recreated == {"a"}
    assert "read to offset 5 and now ends at 100" in str(change.losses[0])
    assert "(4 records)" in str(change.losses[0])


def test_shorter_topic_without_id_counts_as_recreated() -> None:
    assert compare({A0: 5}, {}, None, seen(2)).recreated == {"a"}


def test_id_in_the_checkpoint_detects_a_recreated_topic_after_a_restart() -> None:
    """However large the recreated topic is, and without a previous snapshot."""
    change = compare({A0: 5}, {"a": OLD}, None, seen(100, topic_id=NEW))
    assert change.recreated == {"a"}
    assert [each.is_recreated for each in change.losses] == [True]
    assert compare({A0: 5}, {"a": OLD}, None, seen(100)).losses == []
    # The id of the checkpoint counts: the last snapshot may already be of the recreated topic.
    assert compare({A0: 5}, {"a": OLD}, seen(90, topic_id=NEW), seen(100, topic_id=NEW)).recreated == {"a"}
    # Without an id on one side nothing is detected.
    assert compare({A0: 5}, {}, None, seen(100)).losses == []
    assert compare({A0: 5}, {"a": OLD}, None, Seen({A0: 100}, {})).losses == []


def test_truncated_log_is_a_loss() -> None:
    assert compare({A0: 5}, {"a": OLD}, None, seen(2)).recreated == frozenset()
    change = compare({A0: 5}, {}, seen(9), seen(2))
    assert change.recreated == frozenset()
    assert (
        str(change.losses[0])
        == "a-0: offsets 2 to 4, already read, were truncated: the log now ends at 2 (3 records)"
    )


def test_deleted_offsets_are_a_loss() -> None:
    wanted = [Range(A0, 0, 4), Range(A0, 4, 10), Range(A1, 7, 9), Range(B0, 0, 3)]
    assert [str(each) for each in data_loss.removed(wanted, {A0: 6, A1: 7})] == [
        "a-0: offsets 0 to 5 were deleted; the log start offset is 6 (6 records)",
        "b-0: the partition was deleted with offsets 0 to 2 (3 records)",
    ]
    assert [each.records for each in data_loss.removed([Range(A0, 0, 4)], {A0: 100})] == [4]
    assert [str(each) for each in data_loss.removed([Range(A0, 2, 4)], {A0: 0}, {"a"})] == [
        "a-0: the topic was deleted, with offsets 2 to 3 not yet read, and recreated (2 records)"
    ]


def test_loss_raises_or_warns(caplog: pytest.LogCaptureFixture) -> None:
    losses = data_loss.removed([Range(A0, 0, 4), Range(A1, 0, 1)], {A0: 4, A1: 1})
    with pytest.raises(DataLoss) as stopped:
        data_loss.report(losses, fail=True)
    assert "a-0: offsets 0 to 3" in str(stopped.value)
    assert "a-1: offsets 0 to 0" in str(stopped.value)
    assert "(1 record)" in str(stopped.value)
    assert "5 records in total" in str(stopped.value)
    assert "failOnDataLoss to false" in str(stopped.value)
    with caplog.at_level(logging.WARNING):
        data_loss.report(losses, fail=False)
    assert "5 records in total. The query continues" in caplog.text
    data_loss.report([], fail=True)


def test_message_about_a_recreated_topic(caplog: pytest.LogCaptureFixture) -> None:
    loss = data_loss.recreated(A0, 5, 100, None)
    with pytest.raises(DataLoss) as stopped:
        data_loss.report([loss], fail=True)
    assert "retention" not in str(stopped.value)
    for advice in ("failOnDataLoss to false", "checkpointLocation", "topicIds to false for one run"):
        assert advice in str(stopped.value)
    with pytest.raises(DataLoss, match=r"retention.*read the recreated topic"):
        data_loss.report([loss, *data_loss.removed([Range(A1, 0, 1)], {A1: 1})], fail=True)
    with caplog.at_level(logging.WARNING):
        data_loss.report([loss], fail=False)
    assert "Recreated topics are read from their beginning" in caplog.text


def test_checkpoint_of_another_query_is_refused() -> None:
    reads_b = Subscription(topics=frozenset({"b"}))
    with pytest.raises(ForeignCheckpoint, match=r"belongs to a query that reads a; this query reads b\."):
        check_subscribed({A0: 1}, reads_b, fail=False)
    with pytest.raises(ForeignCheckpoint, match="set failOnDataLoss to false"):
        check_subscribed({A0: 1, B0: 2}, reads_b, fail=True)
    assert check_subscribed({A0: 1, B0: 2}, reads_b, fail=False) == {B0: 2}
    assert check_subscribed({}, reads_b, fail=True) == {}
