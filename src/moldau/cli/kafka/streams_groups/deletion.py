"""`kafka-streams-groups --delete` and `--delete-offsets`, and the deletion of internal topics."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from moldau.base.errors import ErrorCode, KafkaError
from moldau.cli.kafka.consumer_groups.delete import delete_offsets as delete_consumer_offsets
from moldau.cli.shared.java import java_error
from moldau.cli.shared.tool import print_error
from moldau.client.admin.client import checked
from moldau.client.admin.streams_groups import StreamsGroupDescription, describe_streams_group

if TYPE_CHECKING:
    from moldau.client.admin.client import AdminClient

#: The names that Kafka Streams gives to internal topics, after the application id and a hyphen.
_INTERNAL = re.compile(
    ".*-(changelog|repartition|subscription-registration-topic|subscription-response-topic"
    r"|KTABLE-FK-JOIN-SUBSCRIPTION-(REGISTRATION|RESPONSE)-\d+-topic)"
)


def delete_groups(
    admin: AdminClient, groups: Sequence[str], listed: Mapping[str, str], *, with_topics: bool
) -> None:
    """Delete groups that are listed as empty."""
    failed = _refusals(groups, listed)
    wanted = [group for group in groups if group not in failed]
    topics: dict[str, list[str]] = {}
    if with_topics:
        for group in wanted:
            found = internal_topics(admin.run(describe_streams_group(admin.client.cluster, group)))
            if found:
                topics[group] = found
    deleted = []
    for group, refusal in (admin.delete_groups(wanted) if wanted else {}).items():
        if refusal is None:
            deleted.append(group)
        else:
            failed[group] = java_error(refusal)
    failures = {
        group: failure for group in deleted if (failure := _delete_topics(admin, topics.get(group, ())))
    }
    names = ", ".join(f"'{group}'" for group in deleted)
    if not failed:
        print(f"Deletion of requested streams groups ({names}) was successful.")
    else:
        print_error("Deletion of some streams groups failed:")
        for group, reason in failed.items():
            print(f"* Group '{group}' could not be deleted due to: {reason}")
        if deleted:
            print(f"\nThese streams groups were deleted successfully: {names}.")
    if topics and deleted:
        _report_topics([group for group in deleted if group in topics], failures)


def _refusals(groups: Sequence[str], listed: Mapping[str, str]) -> dict[str, str]:
    failed = {}
    for group in groups:
        if group not in listed:
            reason = f"Group '{group}' does not exist or is not a streams group."
            failed[group] = f"java.lang.IllegalArgumentException: {reason}"
        elif listed[group] != "Empty":
            error = "org.apache.kafka.common.errors.GroupNotEmptyException"
            failed[group] = f"{error}: Streams group '{group}' is not EMPTY."
    return failed


def _report_topics(groups: Sequence[str], failures: Mapping[str, KafkaError]) -> None:
    if not failures:
        names = "', '".join(groups)
        print(f"Deletion of associated internal topics of the streams groups ('{names}') was successful.")
        return
    print("Deletion of some associated internal topics failed:")
    for group, failure in failures.items():
        print(
            f"* Internal topics of the streams group '{group}' could not be deleted due to: "
            f"{java_error(failure)}"
        )


# Internal topics.


def internal_topics(described: StreamsGroupDescription) -> list[str]:
    """Return the internal topics of a group whose names Kafka Streams has made."""
    group = described.group.group_id
    found = []
    for topic in described.internal_topics:
        if topic.startswith(f"{group}-") and _INTERNAL.fullmatch(topic):
            found.append(topic)
        else:
            print_error(
                f"The internal topic '{topic}' is not inferred as internal and thus will not be deleted "
                f"with the group '{group}'."
            )
    return found


def _delete_topics(admin: AdminClient, topics: Sequence[str]) -> KafkaError | None:
    """Delete topics; return the first error."""
    first = None
    for topic, error in (admin.delete_topics(topics) if topics else {}).items():
        if error is not None:
            print(f"Failed to delete internal topic: {topic}")
            first = first or error
    return first


def delete_after_reset(admin: AdminClient, group: str, topics: Sequence[str]) -> None:
    results = admin.delete_topics(topics) if topics else {}
    failure = next((error for error in results.values() if error is not None), None)
    if failure is None:
        return
    if failure.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        print_error(f"Deleting internal topics for group '{group}' failed because the topics do not exist.")
    else:
        print_error(f"Deleting internal topics for group '{group}' failed due to {java_error(failure)}")


# Offsets.


def delete_offsets(admin: AdminClient, group: str, topics: Sequence[str] | None) -> None:
    """Delete the offsets of input topics; of all of the topology if `topics` is None."""
    if topics is None:
        described = admin.run(describe_streams_group(admin.client.cluster, group))
        committed = checked(admin.list_group_offsets(group))
        found = (each for each in committed if each.topic in described.input_topics)
        topics = [f"{each.topic}:{each.partition}" for each in found]
    delete_consumer_offsets(admin, group, topics)
