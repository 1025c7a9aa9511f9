"""What became of partitions, and how it is told."""

from __future__ import annotations

import logging

import pytest

from moldau.base.ids import TopicPartition, Uuid
from moldau.pipelines.source import loss
from moldau.pipelines.source.comparison import Seen, compare, is_suspicious, without_strangers
from moldau.pipelines.source.errors import DataLoss, ForeignCheckpoint
from moldau.pipelines.source.planning import Range
from moldau.pipelines.source.subscription import Subscription

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
OLD, NEW = Uuid(b"o" * 16), Uuid(b"n" * 16)


def seen(*ends: int, topic_id: Uuid = OLD) -> Seen:
    return Seen({TopicPartition("a", number): end for number, end in enumerate(ends)}, {"a": topic_id})


def test_what_grows_is_no_loss() -> None:
    change = compare({A0: 5}, {}, seen(7), seen(9, 3))
    assert change.losses == []
    assert change.recreated == frozenset()
    assert not is_suspicious({A0: 5}, {"a": OLD}, seen(5))
    assert is_suspicious({A0: 5}, {"a": NEW}, seen(5))


def test_a_deleted_topic() -> None:
    gone = Seen({}, {})
    assert is_suspicious({A0: 5}, {}, gone)
    [lost] = compare({A0: 5}, {}, seen(9), gone).losses
    assert str(lost) == "a-0: the partition was deleted, and with it offsets 5 to 8, not read yet (4 records)"
    [lost] = compare({A0: 5}, {}, None, gone).losses
    assert str(lost) == "a-0: the partition was deleted; it was read up to offset 5"


def test_a_topic_made_anew_is_known_by_its_id() -> None:
    change = compare({A0: 5}, {}, seen(9), seen(100, topic_id=NEW))
    assert change.recreated == {"a"}
    assert "read up to offset 5 and now ends at 100" in str(change.losses[0])
    assert "(4 records)" in str(change.losses[0])


def test_after_a_restart_a_shorter_topic_is_a_new_one() -> None:
    assert compare({A0: 5}, {}, None, seen(2)).recreated == {"a"}


def test_after_a_restart_the_id_in_the_checkpoint_tells() -> None:
    """However far the new topic has grown, and although nothing was seen before."""
    change = compare({A0: 5}, {"a": OLD}, None, seen(100, topic_id=NEW))
    assert change.recreated == {"a"}
    assert [each.made_anew for each in change.losses] == [True]
    assert compare({A0: 5}, {"a": OLD}, None, seen(100)).losses == []
    # The checkpoint is right: what was seen meanwhile may be the new topic already.
    assert compare({A0: 5}, {"a": OLD}, seen(90, topic_id=NEW), seen(100, topic_id=NEW)).recreated == {"a"}
    # No ids on one side: nothing can be told.
    assert compare({A0: 5}, {}, None, seen(100)).losses == []
    assert compare({A0: 5}, {"a": OLD}, None, Seen({A0: 100}, {})).losses == []


def test_a_log_that_was_cut() -> None:
    assert compare({A0: 5}, {"a": OLD}, None, seen(2)).recreated == frozenset()
    change = compare({A0: 5}, {}, seen(9), seen(2))
    assert change.recreated == frozenset()
    assert (
        str(change.losses[0])
        == "a-0: offsets 2 to 4, read already, are gone: the log ends at 2 now (3 records)"
    )


def test_what_retention_removed() -> None:
    wanted = [Range(A0, 0, 4), Range(A0, 4, 10), Range(A1, 7, 9), Range(B0, 0, 3)]
    assert [str(each) for each in loss.removed(wanted, {A0: 6, A1: 7})] == [
        "a-0: offsets 0 to 5 were removed, the log begins at 6 now (6 records)",
        "b-0: the partition is gone, and with it offsets 0 to 2 (3 records)",
    ]
    assert [each.records for each in loss.removed([Range(A0, 0, 4)], {A0: 100})] == [4]
    assert [str(each) for each in loss.removed([Range(A0, 2, 4)], {A0: 0}, {"a"})] == [
        "a-0: the topic was deleted, with its offsets 2 to 3, not read yet, and made anew (2 records)"
    ]


def test_a_loss_stops_the_query_or_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    losses = loss.removed([Range(A0, 0, 4), Range(A1, 0, 1)], {A0: 4, A1: 1})
    with pytest.raises(DataLoss) as stopped:
        loss.report(losses, fail=True)
    assert "a-0: offsets 0 to 3" in str(stopped.value)
    assert "a-1: offsets 0 to 0" in str(stopped.value)
    assert "(1 record)" in str(stopped.value)
    assert "Together 5 records" in str(stopped.value)
    assert "failOnDataLoss to false" in str(stopped.value)
    with caplog.at_level(logging.WARNING):
        loss.report(losses, fail=False)
    assert "Together 5 records. Reading goes on" in caplog.text
    loss.report([], fail=True)


def test_what_to_do_about_a_topic_made_anew(caplog: pytest.LogCaptureFixture) -> None:
    anew = loss.recreated(A0, 5, 100, None)
    with pytest.raises(DataLoss) as stopped:
        loss.report([anew], fail=True)
    assert "retention" not in str(stopped.value)
    for advice in ("failOnDataLoss to false", "checkpointLocation", "topicIds to false for one run"):
        assert advice in str(stopped.value)
    with pytest.raises(DataLoss, match=r"retention.*read the new topic"):
        loss.report([anew, *loss.removed([Range(A1, 0, 1)], {A1: 1})], fail=True)
    with caplog.at_level(logging.WARNING):
        loss.report([anew], fail=False)
    assert "Topics made anew are read from their beginning" in caplog.text


def test_a_checkpoint_of_another_query() -> None:
    reads_b = Subscription(topics=frozenset({"b"}))
    with pytest.raises(ForeignCheckpoint, match=r"of a query that reads a; this one reads b\."):
        without_strangers({A0: 1}, reads_b, fail=False)
    with pytest.raises(ForeignCheckpoint, match="set failOnDataLoss to false"):
        without_strangers({A0: 1, B0: 2}, reads_b, fail=True)
    assert without_strangers({A0: 1, B0: 2}, reads_b, fail=False) == {B0: 2}
    assert without_strangers({}, reads_b, fail=True) == {}
