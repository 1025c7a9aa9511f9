"""kafka-topics: create, delete, describe, list and alter topics."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import INTERNAL_TOPICS, ZERO_UUID, TopicPartition, Uuid, parse_uuid
from moldau.cli.kafka.topics.report import REPORTS, TopicReport, joined
from moldau.cli.shared.arguments import ToolParser, TopicPattern, UsageError, given, refuse_together, require
from moldau.cli.shared.connection import add_bootstrap_options, open_admin
from moldau.cli.shared.tiers import tier_offsets
from moldau.cli.shared.tool import ToolError, run_tool, warn

if TYPE_CHECKING:
    from moldau.client.admin.client import AdminClient
    from moldau.client.admin.topic_types import Reassignment, TopicDescription

ACTIONS = ("create", "list", "alter", "describe", "delete")
CONFIGS_HINT = " (To alter topic configurations, the kafka-configs tool can be used.)"
COLLISION_WARNING = (
    "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could "
    "collide. To avoid issues it is best to use either, but not both."
)


def main(argv: Sequence[str] | None = None) -> int:
    return run_tool(
        _parser, _execute, argv, report=lambda text: print(f"Error while executing topic command : {text}")
    )


def _parser() -> ToolParser:
    parser = ToolParser("kafka-topics", notes=_config_names)
    add_bootstrap_options(parser)
    parser.flag("--list", "List topics.")
    parser.flag("--create", "Create a topic.")
    parser.flag("--delete", "Delete topics.")
    parser.flag("--alter", "Add partitions to topics. Use kafka-configs to alter configurations.")
    parser.flag("--describe", "Show the partitions, leaders, replicas and configurations of topics.")
    parser.option("--topic", "TOPIC", "The topic; except with --create, a regular expression for topics.")
    parser.option("--topic-id", "ID", "Describe: the id of the topic.")
    parser.option(
        "--config",
        "NAME=VALUE",
        "Create: a configuration of the new topic (see below). May be repeated.",
        action="append",
    )
    parser.hidden("--delete-config", action="append")
    parser.option(
        "--partitions",
        "COUNT",
        "Create, alter: the new number of partitions. WARNING: if partitions are added to a topic with "
        "keys, later records of a key may go to another partition.",
        type=int,
    )
    parser.option(
        "--replication-factor", "COUNT", "Create: the number of replicas of each partition.", type=int
    )
    parser.option(
        "--replica-assignment",
        "LIST",
        "Create, alter: the brokers of each partition's replicas. 1:2,2:3 assigns partition 0 to brokers "
        "1 and 2, and partition 1 to brokers 2 and 3.",
    )
    parser.flag("--under-replicated-partitions", "Describe: only partitions with replicas out of sync.")
    parser.flag("--unavailable-partitions", "Describe: only partitions whose leader is not available.")
    parser.flag("--under-min-isr-partitions", "Describe: only partitions below min.insync.replicas.")
    parser.flag("--at-min-isr-partitions", "Describe: only partitions exactly at min.insync.replicas.")
    parser.flag("--topics-with-overrides", "Describe: only topics with overridden configurations.")
    parser.flag("--if-exists", "Alter, delete, describe: succeed if the topic does not exist.")
    parser.flag("--if-not-exists", "Create: succeed if the topic exists already.")
    parser.flag("--exclude-internal", "List, describe: exclude internal topics.")
    parser.option(
        "--partition-size-limit-per-response",
        "COUNT",
        "Describe: the maximum number of partitions per request (2000 by default).",
        type=int,
    )
    return parser


def _config_names() -> str:
    from moldau.config.topic import TOPIC_CONFIGS

    return "topic configurations:\n" + "\n".join(
        f"  {name}" for name, key in TOPIC_CONFIGS.items() if not key.internal
    )


def _execute(options: argparse.Namespace) -> None:
    _check(options)
    with open_admin(options) as admin:
        if options.create:
            _create(admin, options)
        elif options.alter:
            _alter(admin, options)
        elif options.list:
            print("\n".join(_matching(admin, options)))
        elif options.describe:
            _describe(admin, options)
        else:
            _delete(admin, options)


def _check(options: argparse.Namespace) -> None:
    if sum(given(options, action) for action in ACTIONS) != 1:
        raise UsageError(
            "Command must include exactly one action: --list, --describe, --create, --alter or --delete"
        )
    if options.delete_config:
        warn("--delete-config no longer has an effect: use kafka-configs.")
    if not (options.list or options.describe):
        require(options, "topic")
    if options.describe and options.if_exists and not (options.topic or options.topic_id):
        raise UsageError("--topic or --topic-id is required to describe a topic")
    if options.alter:
        if given(options, "config"):
            raise UsageError(f'Option "[config]" can\'t be used with option "[alter]"{CONFIGS_HINT}')
        require(options, "partitions")
    for name, actions in (
        ("config", ("create",)),
        ("partitions", ("alter", "create")),
        ("replication-factor", ("create",)),
        ("replica-assignment", ("alter", "create")),
        *((report, ("describe",)) for report in REPORTS),
        ("topics-with-overrides", ("describe",)),
        ("if-exists", ("alter", "delete", "describe")),
        ("if-not-exists", ("create",)),
        ("exclude-internal", ("list", "describe")),
    ):
        refuse_together(options, name, [action for action in ACTIONS if action not in actions])
    if options.create:
        refuse_together(options, "replica-assignment", ["partitions", "replication-factor"])
    for report in REPORTS:
        refuse_together(options, report, ["topics-with-overrides"])


def _create(admin: AdminClient, options: argparse.Namespace) -> None:
    from moldau.client.admin.topic_types import NewTopic

    factor, partitions = options.replication_factor, options.partitions
    assignment = _parse_assignment(options.replica_assignment)
    configs = _parse_configs(options.config or [])
    if "." in options.topic or "_" in options.topic:
        print(COLLISION_WARNING)
    if factor is not None and not 1 <= factor <= 32767:
        raise ToolError("The replication factor must be between 1 and 32767 inclusive")
    if partitions is not None and partitions < 1:
        raise ToolError("The partitions must be greater than 0")
    topic = NewTopic(
        options.topic,
        -1 if partitions is None else partitions,
        -1 if factor is None else factor,
        assignment,
        configs,
    )
    error = admin.create_topics([topic]).get(topic.name)
    if error is not None and not (error.code is ErrorCode.TOPIC_ALREADY_EXISTS and options.if_not_exists):
        raise error
    if error is None:
        print(f"Created topic {topic.name}.")


def _alter(admin: AdminClient, options: argparse.Namespace) -> None:
    from moldau.client.admin.client import checked

    topics = _existing(admin, options)
    if not topics:
        return
    assignments: dict[str, list[list[int]]] | None = None
    wanted = _parse_assignment(options.replica_assignment)
    if wanted:
        described = checked(admin.describe_topics(topics))
        assignments = {
            name: list(wanted.values())[len(description.partitions) :]
            for name, description in described.items()
        }
    _raise_first(admin.create_partitions(dict.fromkeys(topics, options.partitions), assignments).values())


def _delete(admin: AdminClient, options: argparse.Namespace) -> None:
    _raise_first(admin.delete_topics(_existing(admin, options)).values())


def _raise_first(errors: Iterable[KafkaError | None]) -> None:
    for error in errors:
        if error is not None:
            raise error


def _matching(admin: AdminClient, options: argparse.Namespace) -> list[str]:
    names = admin.list_topics()
    if options.topic is None:
        return [name for name in names if not (options.exclude_internal and name in INTERNAL_TOPICS)]
    pattern = TopicPattern(options.topic)
    return [name for name in names if pattern.allows(name, exclude_internal=options.exclude_internal)]


def _existing(admin: AdminClient, options: argparse.Namespace) -> list[str]:
    topics = _matching(admin, options)
    if options.topic and not topics and not options.if_exists:
        raise ToolError(f"Topic '{options.topic}' does not exist as expected")
    return topics


def _describe(admin: AdminClient, options: argparse.Namespace) -> None:
    from moldau.client.admin.client import checked
    from moldau.client.admin.configs import ConfigResource, ResourceType

    topics = _descriptions(admin, options)
    if not topics:
        return
    resources = [ConfigResource(ResourceType.TOPIC, topic.name) for topic in topics]
    configs = checked(admin.describe_configs(resources))
    live_brokers = {node.id for node in admin.describe_cluster().nodes}
    report = TopicReport(options, _reassignments(admin), live_brokers, partial(tier_offsets, admin))
    for topic, resource in zip(topics, resources, strict=True):
        report.show(topic, configs[resource])


def _descriptions(admin: AdminClient, options: argparse.Namespace) -> list[TopicDescription]:
    from moldau.client.admin.client import checked

    topic_id = _parse_topic_id(options.topic_id)
    if topic_id is not None and topic_id != ZERO_UUID:
        if topic_id in {listing.id for listing in admin.list_topics().values()}:
            return list(checked(admin.describe_topic_ids([topic_id])).values())
        if not options.if_exists:
            raise ToolError(f"TopicId '{options.topic_id}' does not exist as expected")
        return []
    names = _existing(admin, options)
    limit = options.partition_size_limit_per_response or 2000
    return list(checked(admin.describe_topics(names, partitions_per_response=limit)).values())


def _reassignments(admin: AdminClient) -> dict[TopicPartition, Reassignment]:
    """Return the ongoing reassignments; none if the broker does not support or allow listing them."""
    try:
        return admin.list_partition_reassignments()
    except KafkaError as error:
        if error.code in (ErrorCode.UNSUPPORTED_VERSION, ErrorCode.CLUSTER_AUTHORIZATION_FAILED):
            return {}
        raise


def _parse_configs(items: Sequence[str]) -> dict[str, str]:
    pairs = [re.split(r"\s*=\s*", item) for item in items]
    if any(len(pair) != 2 for pair in pairs):
        raise ToolError('Invalid topic config: all configs to be added must be in the format "key=val".')
    return {name.strip(): value.strip() for name, value in pairs}


def _parse_assignment(text: str | None) -> dict[int, list[int]]:
    assignment: dict[int, list[int]] = {}
    for partition, brokers in enumerate(text.split(",") if text else []):
        try:
            replicas = [int(broker) for broker in brokers.split(":")]
        except ValueError:
            raise ToolError(
                f"{brokers!r} in --replica-assignment is not a list of broker ids like 1:2"
            ) from None
        twice = sorted({broker for broker in replicas if replicas.count(broker) > 1})
        if twice:
            raise ToolError(f"Partition replica lists may not contain duplicate entries: {joined(twice)}")
        assignment[partition] = replicas
        if len(replicas) != len(assignment[0]):
            raise ToolError(f"Partition {partition} has different replication factor: {replicas}")
    return assignment


def _parse_topic_id(text: str | None) -> Uuid | None:
    try:
        return None if text is None else parse_uuid(text)
    except ValueError as error:
        raise ToolError(f"--topic-id: {error}") from error
