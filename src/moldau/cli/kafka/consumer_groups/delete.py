"""`kafka-consumer-groups --delete` and `--delete-offsets`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.cli.kafka.consumer_groups.scope import parse_partitions
from moldau.cli.shared.java import java_error
from moldau.cli.shared.tool import print_error

if TYPE_CHECKING:
    from moldau.client.admin.client import AdminClient

#: Errors of a group are printed once; those of partitions are printed in the table.
GROUP_ERRORS = frozenset(
    {
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.NON_EMPTY_GROUP,
    }
)
PARTITION_ERRORS = frozenset(
    {
        ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
#: The partition number in the result of a topic that could not be described.
NO_PARTITION = -1


def delete_groups(admin: AdminClient, groups: Sequence[str]) -> None:
    results = admin.delete_groups(groups)
    deleted = ", ".join(f"'{group}'" for group, error in results.items() if error is None)
    failed = {group: error for group, error in results.items() if error is not None}
    if not failed:
        print(f"Deletion of requested consumer groups ({deleted}) was successful.")
        return
    print_error("Deletion of some consumer groups failed:")
    for group, error in failed.items():
        print(f"* Group '{group}' could not be deleted due to: {java_error(error)}")
    if deleted:
        print(f"\nThese consumer groups were deleted successfully: {deleted}")


def delete_offsets(admin: AdminClient, group: str, topics: Sequence[str]) -> None:
    results: dict[TopicPartition, KafkaError | None] = {}
    partitions = _partitions(admin, topics, results)
    failure: KafkaError | None = None
    try:
        deleted = admin.delete_group_offsets(group, partitions)
    except KafkaError as error:
        failure = error
        results.update(dict.fromkeys(partitions, error))
    else:
        failure = next((error for error in deleted.values() if error is not None), None)
        results.update(deleted)
    _print_outcome(group, failure)
    width = max([15, *(len(partition.topic) for partition in results)])
    rows = [("TOPIC", "PARTITION", "STATUS")]
    for partition in sorted(results, key=lambda each: f"{each.topic}{each.partition}"):
        number = "-" if partition.partition == NO_PARTITION else str(partition.partition)
        found = results[partition]
        rows.append(
            (partition.topic, number, "Successful" if found is None else f"Error: {java_error(found)}")
        )
    for topic, number, status in rows:
        print(f"\n{topic:<{width}} {number:<10} {status:<15}", end="")
    print()


def _partitions(
    admin: AdminClient, topics: Sequence[str], results: dict[TopicPartition, KafkaError | None]
) -> list[TopicPartition]:
    """Return the partitions to delete offsets of; record the error of a topic that cannot be described."""
    partitions = [partition for topic in topics if ":" in topic for partition in parse_partitions(topic)]
    whole = [topic for topic in topics if ":" not in topic]
    for name, found in (admin.describe_topics(whole) if whole else {}).items():
        if isinstance(found, KafkaError):
            results[TopicPartition(name, NO_PARTITION)] = found
        else:
            partitions += [TopicPartition(name, each.partition) for each in found.partitions]
    return list(dict.fromkeys(partitions))


def _print_outcome(group: str, failure: KafkaError | None) -> None:
    if failure is None:
        print(f"Request succeeded for deleting offsets from group {group}.")
    elif failure.code in GROUP_ERRORS:
        print_error(failure.message or str(failure))
    elif failure.code in PARTITION_ERRORS:
        print_error("Encountered some partition-level error, see the follow-up details.")
    else:
        print_error(f"Encountered some unknown error: {failure.code.name}")
