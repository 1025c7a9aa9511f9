"""`kafka-storage`: make the folders of a node ready, look at them, and make up cluster ids."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from moldau.cli.shared.arguments import ToolParser
from moldau.cli.shared.tool import ToolError, run_tool

if TYPE_CHECKING:
    from moldau.config.broker.config import BrokerConfig

_VERSIONS = "The oldest is 3.3-IV3, the default 4.3-IV0."


def main(argv: Sequence[str] | None = None) -> int:
    return run_tool(_parser, _execute, argv)


def _parser() -> ToolParser:
    parser = ToolParser(
        "kafka-storage", "Make the folders of a node ready for its first start, and look at them."
    )
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
        "--feature", "-f", action="append", required=True, metavar="NAME=LEVEL", help="May be repeated."
    )
    commands.add_parser("random-uuid", description=_RANDOM, help=_RANDOM)
    return parser


_INFO = "Tell what is in the folders of a node."
_FORMAT = "Make the folders of a node ready for its first start."
_MAPPING = "List the feature levels that belong to a release."
_DEPENDENCIES = "List what a feature level needs from other features."
_RANDOM = "Make up an id for a new cluster."


def _add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config", "-c", required=True, metavar="FILE", help="The properties file of the node."
    )


def _add_format(commands: argparse._SubParsersAction[ToolParser]) -> None:
    parser = commands.add_parser("format", description=_FORMAT, help=_FORMAT)
    _add_config(parser)
    parser.add_argument("--cluster-id", "-t", required=True, metavar="ID", help="The id of the cluster.")
    parser.add_argument(
        "--add-scram", "-S", action="append", metavar="CREDENTIAL", help="Not supported yet: users for SCRAM."
    )
    parser.add_argument(
        "--ignore-formatted", "-g", action="store_true", help="Pass over folders that are formatted already."
    )
    parser.add_argument(
        "--release-version",
        "-r",
        metavar="VERSION",
        help=f"The release whose features to begin with. {_VERSIONS}",
    )
    parser.add_argument(
        "--feature",
        "-f",
        action="append",
        default=[],
        metavar="NAME=LEVEL",
        help="Begin with another level of a feature; may be repeated.",
    )
    quorum = parser.add_mutually_exclusive_group()
    quorum.add_argument(
        "--standalone", "-s", action="store_true", help="Begin a dynamic quorum with this controller alone."
    )
    quorum.add_argument(
        "--no-initial-controllers",
        "-N",
        action="store_true",
        help="This node will join a dynamic quorum that exists.",
    )
    quorum.add_argument(
        "--initial-controllers",
        "-I",
        metavar="VOTERS",
        help="Begin a dynamic quorum with these voters, as id@host:port:directory separated by commas.",
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
    from moldau.server.startup.format import FormatError, FormatOptions, format_storage
    from moldau.storage.disk.disk import PosixDisk

    config = _load(options.config)
    if options.add_scram:
        raise ToolError("--add-scram is not supported yet: Moldau does not authenticate clients.")
    chosen = FormatOptions(
        cluster_id=options.cluster_id,
        standalone=options.standalone,
        initial_controllers=options.initial_controllers,
        no_initial_controllers=options.no_initial_controllers,
        ignore_formatted=options.ignore_formatted,
        release_version=options.release_version,
        features=dict(_feature(text) for text in options.feature),
    )
    try:
        format_storage(PosixDisk(), SystemClock(), random.SystemRandom(), config, chosen, print)
    except FormatError as error:
        raise ToolError(str(error)) from error
    return 0


def _feature(text: str) -> tuple[str, int]:
    name, equals, level = text.partition("=")
    if not equals:
        raise ToolError(f"Can't parse feature=level string {text}: equals sign not found.")
    try:
        return name.strip(), int(level)
    except ValueError as error:
        raise ToolError(
            f"Can't parse feature=level string {text}: unable to parse {level} as a short."
        ) from error


def _info(options: argparse.Namespace) -> int:
    from moldau.server.startup.storage_info import storage_info
    from moldau.storage.disk.disk import PosixDisk

    info = storage_info(PosixDisk(), _load(options.config))
    sys.stdout.write(info.text)
    return 1 if info.problems else 0


def _version_mapping(options: argparse.Namespace) -> int:
    from moldau.metadata.features import (
        FEATURES,
        MAX_METADATA_VERSION,
        METADATA_VERSION,
        metadata_version_name,
        parse_metadata_version,
    )

    release = options.release_version or metadata_version_name(MAX_METADATA_VERSION)
    try:
        version = parse_metadata_version(release)
    except ValueError as error:
        raise ToolError(str(error)) from error
    print(f"{METADATA_VERSION}={version} ({release})")
    for name in _LISTED:
        print(
            f"{name}={max(level for level, since in enumerate(FEATURES[name].bootstrap) if since <= version)}"
        )
    return 0


#: The order in which Kafka's tool lists features.
_LISTED = (
    "kraft.version",
    "transaction.version",
    "group.version",
    "eligible.leader.replicas.version",
    "share.version",
    "streams.version",
)


def _feature_dependencies(options: argparse.Namespace) -> int:
    from moldau.metadata.features import METADATA_VERSION

    for text in options.feature:
        name, level = _feature(text)
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
