"""Which offsets members of a consumer group may commit and read, by the epoch they know."""

from __future__ import annotations

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.member import ClassicMetadata, ConsumerMember
from moldau.groups.group import CommitTarget
from tests.harness.worlds.coordination import topic_id_of

ORDERS = topic_id_of("orders")
GOOD = None


def group(classic: bool = False) -> ConsumerGroup:
    """One member of epoch 7 that has partition 0 since epoch 5, and gives up partition 1 it had since 6."""
    found = ConsumerGroup("g")
    found.update_member(
        ConsumerMember(
            "m",
            member_epoch=7,
            assigned={ORDERS: {0: 5}},
            pending_revocation={ORDERS: {1: 6}},
            classic=ClassicMetadata(10_000, ()) if classic else None,
        )
    )
    return found


def committed(found: ConsumerGroup, epoch: int, partition: int = 0, **changes: object) -> ErrorCode | None:
    fields = {"member_id": "m", "version": 9, "transactional": False, **changes}
    try:
        check = found.check_offset_commit(
            str(fields["member_id"]),
            None,
            epoch,
            int(str(fields["version"])),
            transactional=bool(fields["transactional"]),
        )
        if check is not None:
            check(CommitTarget("orders", ORDERS, partition))
    except KafkaError as error:
        return error.code
    return GOOD


@pytest.mark.parametrize(
    ("epoch", "partition", "verdict"),
    [
        (7, 0, GOOD),
        (7, 3, GOOD),
        (8, 0, ErrorCode.STALE_MEMBER_EPOCH),
        (5, 0, GOOD),
        (4, 0, ErrorCode.STALE_MEMBER_EPOCH),
        (6, 1, GOOD),
        (5, 1, ErrorCode.STALE_MEMBER_EPOCH),
        (6, 3, ErrorCode.STALE_MEMBER_EPOCH),
    ],
)
def test_an_older_epoch_is_good_for_what_the_member_had_then(
    epoch: int, partition: int, verdict: ErrorCode | None
) -> None:
    assert committed(group(), epoch, partition) == verdict
    expected = ErrorCode.ILLEGAL_GENERATION if verdict is not None else GOOD
    assert committed(group(classic=True), epoch, partition) == expected


def test_who_may_commit_at_all() -> None:
    assert committed(group(), 7, member_id="nobody") == ErrorCode.UNKNOWN_MEMBER_ID
    assert committed(group(), 7, version=8) == ErrorCode.UNSUPPORTED_VERSION
    assert committed(group(classic=True), 7, version=8) == GOOD
    assert committed(group(), -1, member_id="") == ErrorCode.UNKNOWN_MEMBER_ID
    assert committed(group(), -1, member_id="", transactional=True) == GOOD
    assert committed(ConsumerGroup("empty"), -1, member_id="") == GOOD


@pytest.mark.parametrize(
    ("member_id", "epoch", "verdict"),
    [
        (None, -1, GOOD),
        ("m", 7, GOOD),
        ("m", 6, ErrorCode.STALE_MEMBER_EPOCH),
        ("m", 8, ErrorCode.STALE_MEMBER_EPOCH),
        ("nobody", 7, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_who_may_read(member_id: str | None, epoch: int, verdict: ErrorCode | None) -> None:
    if verdict is GOOD:
        group().check_offset_fetch(member_id, epoch)
        return
    with pytest.raises(KafkaError) as refused:
        group().check_offset_fetch(member_id, epoch)
    assert refused.value.code == verdict
