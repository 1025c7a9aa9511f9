"""The actions of kafka-reassign-partitions: generate, execute, verify, cancel and list."""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterable, Mapping, Sequence

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.cli.kafka.reassign_partitions.moves import cancel_moves, start_moves, verify_moves
from moldau.cli.kafka.reassign_partitions.plan import (
    format_plan,
    moves,
    parse_brokers,
    parse_plan,
    parse_topics,
)
from moldau.cli.kafka.reassign_partitions.throttle import clear_throttles, throttle_log_dirs, throttle_moves
from moldau.cli.shared.json_io import read_text
from moldau.cli.shared.tool import ToolError
from moldau.client.admin.client import AdminClient
from moldau.client.admin.nodes import NodeDescription
from moldau.client.admin.reassignments import Replica
from moldau.client.admin.topic_types import Reassignment, TopicDescription
from moldau.controller.topics.placement import UsableBroker, place

_EXISTING = (
    "Cannot execute because there is an existing partition assignment.  Use --additional to override this "
    "and create a new partition assignment in addition to the existing one. The --additional flag can also "
    "be used to change the throttle by resubmitting the current reassignment."
)
_VERIFY_LATER = (
    "Warning: You must run --verify periodically, until the reassignment completes, to ensure the throttle "
    "is removed."
)
_DEFAULT_TIMEOUT_MS = 10_000


def _list(admin: AdminClient, options: argparse.Namespace) -> None:
    ongoing = admin.list_partition_reassignments()
    if not ongoing:
        print("No partition reassignments found.")
        return
    print("Current partition reassignments:")
    for partition, each in sorted(ongoing.items()):
        line = f"{partition}: replicas: {_joined(each.replicas)}."
        line += f" adding: {_joined(each.adding)}." if each.adding else ""
        line += f" removing: {_joined(each.removing)}." if each.removing else ""
        print(line)


def _generate(admin: AdminClient, options: argparse.Namespace) -> None:
    brokers = parse_brokers(options.broker_list)
    topics = _topics(admin, parse_topics(read_text(options.topics_to_move_json_file)))
    nodes = admin.describe_cluster().nodes
    current = _replicas(topics)
    proposed = _proposed(topics, [node for node in nodes if node.id in brokers], options)
    print("Current partition replica assignment")
    print(format_plan(current, _log_dirs(admin, current, nodes)) + "\n")
    print("Proposed partition reassignment configuration")
    print(format_plan(proposed))


def _proposed(
    topics: Mapping[str, TopicDescription], nodes: Sequence[NodeDescription], options: argparse.Namespace
) -> dict[TopicPartition, list[int]]:
    rack_aware = not options.disable_rack_aware
    rackless = sum(node.rack is None for node in nodes)
    if rack_aware and rackless not in (0, len(nodes)):
        raise ToolError(
            "Error: Not all brokers have rack information. Add --disable-rack-aware in command line to make "
            "replica assignment without rack information."
        )
    usable = [UsableBroker(node.id, node.rack if rack_aware else None, node.host, False) for node in nodes]
    proposed = {}
    for name, topic in topics.items():
        start = random.randrange(len(usable)) if usable else 0
        try:
            placed = place(usable, len(topic.partitions), len(topic.partitions[0].replicas), start)
        except KafkaError as error:
            raise ToolError(f"Error: {error}") from error
        proposed.update({TopicPartition(name, index): replicas for index, replicas in enumerate(placed)})
    return proposed


def _run(admin: AdminClient, options: argparse.Namespace) -> None:
    plan = parse_plan(read_text(options.reassignment_json_file))
    proposed = plan.checked()
    ongoing = admin.list_partition_reassignments()
    if ongoing and not options.additional:
        raise ToolError(_EXISTING)
    nodes = admin.describe_cluster().nodes
    _check_brokers(proposed.values(), nodes)
    current = _current(admin, proposed)
    print(
        f"Current partition replica assignment\n\n{format_plan(current, _log_dirs(admin, current, nodes))}\n"
    )
    print("Save this to use as the --reassignment-json-file option during rollback")
    _throttle(admin, options, ongoing, proposed, current, plan.log_dirs)
    results = admin.alter_partition_reassignments(
        proposed, allow_replication_factor_change=not options.disallow_replication_factor_change
    )
    _raise_errors("Error reassigning partition(s):", results)
    plural = "" if len(proposed) == 1 else "s"
    print(f"Successfully started partition reassignment{plural} for {_joined(sorted(proposed))}")
    if plan.log_dirs:
        start_moves(admin, plan.log_dirs, _timeout(options))


def _throttle(
    admin: AdminClient,
    options: argparse.Namespace,
    ongoing: Mapping[TopicPartition, Reassignment],
    proposed: Mapping[TopicPartition, Sequence[int]],
    current: Mapping[TopicPartition, Sequence[int]],
    log_dirs: Mapping[Replica, str],
) -> None:
    between_brokers, between_dirs = (
        -1 if rate is None else rate for rate in (options.throttle, options.replica_alter_log_dirs_throttle)
    )
    if between_brokers < 0 and between_dirs < 0:
        return
    print(_VERIFY_LATER)
    if between_brokers >= 0:
        throttle_moves(admin, moves(ongoing, proposed, current), between_brokers)
    if between_dirs >= 0:
        throttle_log_dirs(admin, (replica.broker for replica in log_dirs), between_dirs)


def _verify(admin: AdminClient, options: argparse.Namespace) -> None:
    plan = parse_plan(read_text(options.reassignment_json_file))
    ongoing = admin.list_partition_reassignments()
    described = admin.describe_topics(p.topic for p, _ in plan.partitions if p not in ongoing)
    print("Status of partition reassignment:")
    for partition, wanted in sorted(dict(plan.partitions).items()):
        print(_status(partition, wanted, partition in ongoing, described.get(partition.topic)))
    moving = verify_moves(admin, plan.log_dirs)
    if not ongoing and not moving and not options.preserve_throttles:
        clear_throttles(admin, plan.partitions)


def _status(
    partition: TopicPartition, wanted: list[int], ongoing: bool, topic: TopicDescription | KafkaError | None
) -> str:
    if ongoing:
        return f"Reassignment of partition {partition} is still in progress."
    if isinstance(topic, KafkaError) and topic.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise topic
    known = {} if topic is None or isinstance(topic, KafkaError) else _replicas({topic.name: topic})
    current = known.get(partition, [])
    if current == wanted:
        return f"Reassignment of partition {partition} is completed."
    return (
        f"There is no active reassignment of partition {partition}, but replica set is {_joined(current)} "
        f"rather than {_joined(wanted)}."
    )


def _cancel(admin: AdminClient, options: argparse.Namespace) -> None:
    plan = parse_plan(read_text(options.reassignment_json_file))
    named = dict(plan.partitions)
    ongoing = [
        p for p, each in admin.list_partition_reassignments(named).items() if each.adding or each.removing
    ]
    plural = "" if len(ongoing) == 1 else "s"
    if ongoing:
        results = admin.alter_partition_reassignments(dict.fromkeys(ongoing))
        _raise_errors(f"Error cancelling partition reassignment{plural} for:", results)
        print(f"Successfully cancelled partition reassignment{plural} for: {_joined(sorted(ongoing))}")
    else:
        print("None of the specified partition reassignments are active.")
    cancel_moves(admin, plan.log_dirs, _timeout(options))
    if not options.preserve_throttles:
        clear_throttles(admin, plan.partitions)


def _topics(admin: AdminClient, names: Iterable[str]) -> dict[str, TopicDescription]:
    found = {}
    for name, topic in admin.describe_topics(names).items():
        if isinstance(topic, TopicDescription):
            found[name] = topic
        elif topic.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise KafkaError(topic.code, f"Topic {name} not found.")
        else:
            raise topic
    return found


def _replicas(topics: Mapping[str, TopicDescription]) -> dict[TopicPartition, list[int]]:
    return {
        TopicPartition(name, partition.partition): partition.replicas
        for name, topic in topics.items()
        for partition in topic.partitions
    }


def _current(admin: AdminClient, wanted: Iterable[TopicPartition]) -> dict[TopicPartition, list[int]]:
    """Return the current replicas of partitions; raise an error if one does not exist."""
    partitions = list(wanted)
    known = _replicas(_topics(admin, (partition.topic for partition in partitions)))
    missing = [str(partition) for partition in partitions if partition not in known]
    if missing:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition: {', '.join(missing)}"
        )
    return {partition: known[partition] for partition in partitions}


def _log_dirs(
    admin: AdminClient, assignment: Mapping[TopicPartition, Sequence[int]], nodes: Sequence[NodeDescription]
) -> dict[Replica, str]:
    """Return the log directories of the replicas whose brokers are alive."""
    live = {node.id for node in nodes}
    replicas = [
        Replica(broker, *partition)
        for partition, brokers in assignment.items()
        for broker in brokers
        if broker in live
    ]
    found = admin.describe_replica_log_dirs(replicas)
    return {replica: where.current for replica, where in found.items() if where.current is not None}


def _check_brokers(assignments: Iterable[Sequence[int]], nodes: Sequence[NodeDescription]) -> None:
    live = {node.id for node in nodes}
    for broker in sorted({broker for replicas in assignments for broker in replicas}):
        if broker not in live:
            raise ToolError(f"Error: Unknown broker id {broker}")


def _raise_errors(title: str, results: Mapping[TopicPartition, KafkaError | None]) -> None:
    errors = [f"{partition}: {error}" for partition, error in sorted(results.items()) if error is not None]
    if errors:
        raise ToolError("\n".join([title, *errors]))


def _joined(items: Iterable[object]) -> str:
    return ",".join(map(str, items))


def _timeout(options: argparse.Namespace) -> int:
    return _DEFAULT_TIMEOUT_MS if options.timeout is None else int(options.timeout)


ACTIONS = {"generate": _generate, "execute": _run, "verify": _verify, "cancel": _cancel, "list": _list}
