"""kafka-delete-records: delete the records of partitions before given offsets."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from moldau.base.errors import KafkaError
from moldau.base.ids import TopicPartition
from moldau.cli.shared.arguments import ToolParser, require
from moldau.cli.shared.connection import add_bootstrap_options, open_admin
from moldau.cli.shared.json_io import check_version, field, parse_object, read_text
from moldau.cli.shared.tool import ToolError, run_tool


def main(argv: Sequence[str] | None = None) -> int:
    return run_tool(_parser, _execute, argv)


def _parser() -> ToolParser:
    parser = ToolParser("kafka-delete-records")
    add_bootstrap_options(parser)
    parser.option(
        "--offset-json-file",
        "FILE",
        "REQUIRED: a file with the offsets before which to delete; -1 is the high watermark:\n"
        '{"partitions": [{"topic": "foo", "partition": 1, "offset": 1}], "version": 1}',
    )
    return parser


def _execute(options: argparse.Namespace) -> None:
    require(options, "offset-json-file")
    with open_admin(options) as admin:
        before = parse_offsets(read_text(options.offset_json_file))
        print("Executing records delete operation")
        results = admin.delete_records(before)
        print("Records delete operation completed:")
        for partition in before:
            result = results[partition]
            if isinstance(result, KafkaError):
                print(f"partition: {partition}\terror: {result}")
            else:
                print(f"partition: {partition}\tlow_watermark: {result}")


def parse_offsets(text: str) -> dict[TopicPartition, int]:
    """Parse the offsets of a JSON file; raise `ToolError` if it is invalid."""
    data = parse_object(text)
    if not isinstance(data.get("partitions"), list):
        raise ToolError("Missing partitions field")
    check_version(data)
    offsets: dict[TopicPartition, int] = {}
    twice: list[TopicPartition] = []
    for item in data["partitions"]:
        partition = TopicPartition(field(item, "topic", str), field(item, "partition", int))
        if partition in offsets:
            twice.append(partition)
        offsets[partition] = field(item, "offset", int)
    if twice:
        listed = ",".join(str(partition) for partition in dict.fromkeys(twice))
        raise ToolError(f"Offset json file contains duplicate topic partitions: {listed}")
    return offsets
