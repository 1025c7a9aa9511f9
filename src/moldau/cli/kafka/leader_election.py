"""kafka-leader-election: elect preferred leaders, or unclean leaders where no in-sync replica is alive."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.cli.shared.arguments import ToolParser, UsageError, given
from moldau.cli.shared.connection import add_bootstrap_options, admin_from, bootstrap_servers
from moldau.cli.shared.java import java_error
from moldau.cli.shared.json_io import field, parse_object, read_text
from moldau.cli.shared.tool import ToolError, run_tool

if TYPE_CHECKING:
    from moldau.client.admin.reassignments import ElectionType

#: The timeouts of Kafka's Java tool; the config file may override them.
_TIMEOUTS = {"default.api.timeout.ms": "30000", "request.timeout.ms": "15000"}
_TARGETS = ("topic", "all-topic-partitions", "path-to-json-file")


def main(argv: Sequence[str] | None = None) -> int:
    return run_tool(_parser, _execute, argv)


def _parser() -> ToolParser:
    parser = ToolParser("kafka-leader-election")
    add_bootstrap_options(parser)
    parser.hidden("--admin.config", dest="admin_config")
    parser.option(
        "--election-type",
        "TYPE",
        "REQUIRED: preferred elects the preferred replica where another replica is the leader.\n"
        "unclean elects an out-of-sync replica where there is no leader; records may be lost.",
        type=_election_type,
    )
    parser.option("--topic", "TOPIC", "The topic of the partition; requires --partition.")
    parser.option("--partition", "ID", "The partition of --topic.", type=int)
    parser.flag("--all-topic-partitions", "Elect leaders of all eligible partitions.")
    parser.option(
        "--path-to-json-file",
        "FILE",
        'A file that lists partitions: {"partitions": [{"topic": "foo", "partition": 1}]}',
    )
    return parser


def _election_type(text: str) -> ElectionType:
    from moldau.client.admin.reassignments import ElectionType

    try:
        return ElectionType[text.upper()]
    except KeyError:
        raise ValueError(text) from None


def _execute(options: argparse.Namespace) -> None:
    server = bootstrap_servers(options, required=False)
    _check(options, server)
    if options.admin_config:
        print(
            "Option --admin.config has been deprecated and will be removed in a future version. "
            "Use --command-config instead."
        )
    partitions = _partitions(options)
    addresses = {"bootstrap.servers": server or ""}
    with admin_from(
        addresses, options, config=options.admin_config or options.command_config, defaults=_TIMEOUTS
    ) as admin:
        try:
            results = admin.elect_leaders(options.election_type, partitions)
        except KafkaError as error:
            raise _failure(error) from error
    _report(options.election_type, results)


def _check(options: argparse.Namespace, server: str | None) -> None:
    needed = {"bootstrap-server": server, "election-type": options.election_type}
    missing = [name for name, value in needed.items() if value is None]
    if missing:
        raise UsageError(f"Missing required option(s): {', '.join(missing)}")
    if sum(given(options, name) for name in _TARGETS) != 1:
        raise UsageError(f"One and only one of the following options is required: {', '.join(_TARGETS)}")
    if options.topic and options.partition is None:
        raise UsageError("Missing required option(s): partition")
    if not options.topic and options.partition is not None:
        raise UsageError("Option partition is only allowed if topic is used")


def _partitions(options: argparse.Namespace) -> list[TopicPartition] | None:
    if options.topic:
        return [TopicPartition(options.topic, options.partition)]
    return parse_partitions(read_text(options.path_to_json_file)) if options.path_to_json_file else None


def parse_partitions(text: str) -> list[TopicPartition]:
    """Parse the partitions that a file lists."""
    if not text.strip():
        raise ToolError("Replica election data is empty")
    data = parse_object(text)
    if not isinstance(data.get("partitions"), list):
        raise ToolError('Replica election data is missing "partitions" field')
    found = [
        TopicPartition(field(item, "topic", str), field(item, "partition", int))
        for item in data["partitions"]
    ]
    twice = [str(partition) for partition in dict.fromkeys(found) if found.count(partition) > 1]
    if twice:
        raise ToolError(f"Replica election data contains duplicate partitions: [{', '.join(twice)}]")
    return found


def _failure(error: KafkaError) -> Exception:
    messages = {
        ErrorCode.REQUEST_TIMED_OUT: "Timeout waiting for election results",
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Not authorized to perform leader election",
    }
    message = messages.get(error.code)
    if message is None:
        return error
    print(message)
    return ToolError(message)


def _report(kind: ElectionType, results: Mapping[TopicPartition, KafkaError | None]) -> None:
    failed: dict[TopicPartition, KafkaError] = {}
    elected, needless = [], []
    for partition, error in sorted(results.items()):
        if error is None:
            elected.append(str(partition))
        elif error.code is ErrorCode.ELECTION_NOT_NEEDED:
            needless.append(str(partition))
        else:
            failed[partition] = error
    if elected:
        listed = ", ".join(elected)
        print(f"Successfully completed leader election ({kind.name}) for partitions {listed}")
    if needless:
        print(f"Valid replica already elected for partitions {', '.join(needless)}")
    for partition, error in failed.items():
        print(
            f"Error completing leader election ({kind.name}) for partition: {partition}: {java_error(error)}"
        )
    if failed:
        raise ToolError(f"{len(failed)} replica(s) could not be elected")
