"""kafka-storage: format and inspect the log directories of a node, and generate cluster ids."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from moldau.cli.shared.arguments import ToolParser
from moldau.cli.shared.tool import ToolError, run_tool

if TYPE_CHECKING:
    from moldau.config.broker.config import BrokerConfig

_VERSIONS = "The minimum is 3.3-IV3, the default is 4.3-IV0."


def main(argv: Sequence[str] | None = None) -> int:
    return run_tool(_parser, _execute, argv)


def _parser() -> ToolParser:
    parser = ToolParser("kafka-storage")
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True, parser_class=ToolParser
    )
    info = commands.add_parser("info", description=_INFO, help=_INFO)
    _add_config(info)
    _add_format(commands)
    mapping = commands.add_parser("version-mapping", description=_MAPPING, help=_MAPPING)
    mapping.add_argument("--release-version", "-r", metavar="VERSION", help=f"The release. {_VERSIONS}")
    dependencies = commands.add_parser("feature-dependencies", description=_DEPENDENCIES, help=_DEPENDENCIES)
    dependencies.add_argument(
        "--feature",
        "-f",
        action="append",
        required=True,
        metavar="NAME=LEVEL",
        help="A feature level. May be repeated.",
    )
    commands.add_parser("random-uuid", description=_RANDOM, help=_RANDOM)
    return parser


_INFO = "Show the state of the log directories of a node."
_FORMAT = "Format the log directories of a node before its first start."
_MAPPING = "Show the feature levels of a release."
_DEPENDENCIES = "Show the dependencies of feature levels."
_RANDOM = "Print a random UUID, for the id of a new cluster."


def _add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", "-c", required=True, metavar="FILE", help="Properties file of the node.")


def _add_format(commands: argparse._SubParsersAction[ToolParser]) -> None:
    parser = commands.add_parser("format", description=_FORMAT, help=_FORMAT)
    _add_config(parser)
    parser.add_argument("--cluster-id", "-t", required=True, metavar="ID", help="The id of the cluster.")
    parser.add_argument(
        "--add-scram",
        "-S",
        action="append",
        default=[],
        metavar="CREDENTIAL",
        help="A SCRAM credential of the cluster's metadata. May be repeated. For example "
        "'SCRAM-SHA-256=[name=alice,password=alice-secret]' or "
        "'SCRAM-SHA-512=[name=alice,iterations=8192,salt=N3E=,saltedpassword=YCE=]'.",
    )
    parser.add_argument(
        "--ignore-formatted",
        "-g",
        action="store_true",
        help="Skip log directories that are formatted already.",
    )
    parser.add_argument(
        "--release-version",
        "-r",
        metavar="VERSION",
        help=f"The release whose feature levels to use. {_VERSIONS}",
    )
    parser.add_argument(
        "--feature",
        "-f",
        action="append",
        default=[],
        metavar="NAME=LEVEL",
        help="A feature level that differs from that of the release. May be repeated.",
    )
    quorum = parser.add_mutually_exclusive_group()
    quorum.add_argument(
        "--standalone",
        "-s",
        action="store_true",
        help="Start a dynamic quorum with this controller as its only voter (KIP-853).",
    )
    quorum.add_argument(
        "--no-initial-controllers",
        "-N",
        action="store_true",
        help="Format without voters: the node will join an existing dynamic quorum.",
    )
    quorum.add_argument(
        "--initial-controllers",
        "-I",
        metavar="VOTERS",
        help="Start a dynamic quorum with these voters, as id@host:port:directory separated by commas.",
    )


def _execute(options: argparse.Namespace) -> int:
    match options.command:
        case "info":
            return _info(options)
        case "format":
            return _format(options)
        case "version-mapping":
            return _version_mapping(options)
        case "feature-dependencies":
            return _feature_dependencies(options)
        case _:
            return _random_uuid()


def _load(path: str) -> BrokerConfig:
    from moldau.config.broker.config import BrokerConfig
    from moldau.config.definition import ConfigError

    try:
        return BrokerConfig.load(path, supported_only=False)
    except ConfigError as error:
        raise ToolError(error.sentence) from error


def _random_uuid() -> int:
    import random

    from moldau.base.ids import format_uuid, random_uuid

    print(format_uuid(random_uuid(random.SystemRandom())))
    return 0


def _format(options: argparse.Namespace) -> int:
    import random

    from moldau.base.clock import SystemClock
    from moldau.cli.kafka.features.levels import parse_level
    from moldau.server.startup.format import FormatError, FormatOptions, format_storage
    from moldau.storage.disk.disk import PosixDisk

    config = _load(options.config)
    chosen = FormatOptions(
        cluster_id=options.cluster_id,
        standalone=options.standalone,
        initial_controllers=options.initial_controllers,
        no_initial_controllers=options.no_initial_controllers,
        ignore_formatted=options.ignore_formatted,
        release_version=options.release_version,
        features=dict(map(parse_level, options.feature)),
        scram_credentials=options.add_scram,
    )
    try:
        format_storage(PosixDisk(), SystemClock(), random.SystemRandom(), config, chosen, print)
    except FormatError as error:
        raise ToolError(str(error)) from error
    return 0


def _info(options: argparse.Namespace) -> int:
    from moldau.server.startup.storage_info import storage_info
    from moldau.storage.disk.disk import PosixDisk

    info = storage_info(PosixDisk(), _load(options.config))
    sys.stdout.write(info.text)
    return 1 if info.problems else 0


def _version_mapping(options: argparse.Namespace) -> int:
    from moldau.cli.kafka.features.levels import show_mapping

    show_mapping(options.release_version)
    return 0


def _feature_dependencies(options: argparse.Namespace) -> int:
    from moldau.cli.kafka.features.levels import parse_level
    from moldau.metadata.features import METADATA_VERSION

    for text in options.feature:
        name, level = parse_level(text)
        if name == METADATA_VERSION:
            print(f"{name}={level} ({_version_name(level)}) has no dependencies.")
        else:
            _print_dependencies(name, level)
    return 0


def _print_dependencies(name: str, level: int) -> None:
    from moldau.metadata.features import FEATURES, METADATA_VERSION, MIN_METADATA_VERSION

    feature = FEATURES.get(name)
    if feature is None:
        raise ToolError(f"Unknown feature: {name}")
    if not 0 <= level < len(feature.requires):
        raise ToolError(f"Feature level {level} is not supported for feature {name}")
    required = feature.requires[level]
    if required <= MIN_METADATA_VERSION:
        print(f"{name}={level} has no dependencies.")
        return
    print(f"{name}={level} requires:")
    print(f"    {METADATA_VERSION}={required} ({_version_name(required)})")


def _version_name(level: int) -> str:
    from moldau.metadata.features import METADATA_VERSION, metadata_version_name

    try:
        return metadata_version_name(level)
    except ValueError as error:
        raise ToolError(f"Unknown {METADATA_VERSION} {level}") from error
