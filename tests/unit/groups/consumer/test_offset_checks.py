"""Which offsets a member of a consumer group may commit and fetch, by its member epoch (KIP-848)."""

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
    """One member with epoch 7: partition 0 assigned in epoch 5, partition 1 of epoch 6 pending revocation."""
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
def test_an_older_epoch_commits_partitions_assigned_in_that_epoch(
    epoch: int, partition: int, verdict: ErrorCode | None
) -> None:
    assert committed(group(), epoch, partition) == verdict
    expected = ErrorCode.ILLEGAL_GENERATION if verdict is not None else GOOD
    assert committed(group(classic=True), epoch, partition) == expected


def test_commits_are_validated_by_version_member_and_transaction() -> None:
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
def test_fetches_require_the_current_member_epoch(
    member_id: str | None, epoch: int, verdict: ErrorCode | None
) -> None:
    if verdict is GOOD:
        group().check_offset_fetch(member_id, epoch)
        return
    with pytest.raises(KafkaError) as refused:
        group().check_offset_fetch(member_id, epoch)
    assert refused.value.code == verdict
