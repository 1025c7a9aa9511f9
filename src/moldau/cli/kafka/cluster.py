"""kafka-cluster: show the cluster id, list endpoints, unregister a broker."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from moldau.base.errors import ErrorCode, KafkaError
from moldau.cli.shared.arguments import ToolParser, UsageError
from moldau.cli.shared.connection import COMMAND_CONFIG, admin_from
from moldau.cli.shared.tool import ToolError, run_tool, warn

if TYPE_CHECKING:
    from moldau.client.admin.client import AdminClient

COMMANDS = ("cluster-id", "unregister", "list-endpoints")


def main(argv: Sequence[str] | None = None) -> int:
    return run_tool(_parser, _execute, argv)


def _parser() -> ToolParser:
    parser = ToolParser("kafka-cluster")
    parser.add_argument(
        "command",
        choices=COMMANDS,
        metavar="{" + ",".join(COMMANDS) + "}",
        help="cluster-id: show the id of the cluster.\n"
        "unregister: remove the registration of a broker that will not return.\n"
        "list-endpoints: list the endpoints of brokers or controllers.",
    )
    parser.add_argument(
        "--bootstrap-server", "-b", metavar="HOST:PORT", help="The broker(s) to connect to first."
    )
    parser.add_argument(
        "--bootstrap-controller",
        "-C",
        metavar="HOST:PORT",
        help="The controller(s) to connect to instead of brokers (KIP-919).",
    )
    parser.add_argument("--command-config", "-c", metavar="FILE", help=COMMAND_CONFIG)
    parser.hidden("--config")
    parser.add_argument("--id", "-i", metavar="ID", type=int, help="unregister: the id of the broker.")
    parser.flag("--include-fenced-brokers", "list-endpoints: also list fenced brokers.")
    return parser


def _execute(options: argparse.Namespace) -> None:
    if bool(options.bootstrap_server) == bool(options.bootstrap_controller):
        raise UsageError("one of the arguments --bootstrap-server/-b --bootstrap-controller/-C is required")
    if options.command == "unregister" and options.id is None:
        raise UsageError("argument --id/-i is required")
    if options.include_fenced_brokers and options.bootstrap_controller:
        raise UsageError("--include-fenced-brokers is only supported with --bootstrap-server")
    if options.config:
        warn("Warning: --config is deprecated; use --command-config.")
    addresses = (
        {"bootstrap.servers": options.bootstrap_server}
        if options.bootstrap_server
        else {"bootstrap.controllers": options.bootstrap_controller}
    )
    with admin_from(addresses, options, config=options.command_config or options.config) as admin:
        if options.command == "cluster-id":
            print(f"Cluster ID: {admin.describe_cluster().cluster_id}")
        elif options.command == "unregister":
            _unregister(admin, options.id)
        else:
            _list_endpoints(admin, include_fenced=options.include_fenced_brokers)


def _unregister(admin: AdminClient, broker: int) -> None:
    try:
        admin.unregister_broker(broker)
    except KafkaError as error:
        if error.code is ErrorCode.UNSUPPORTED_VERSION:
            raise ToolError("The target cluster does not support the broker unregistration API.") from error
        raise
    print(f"Broker {broker} is no longer registered.")


def _list_endpoints(admin: AdminClient, *, include_fenced: bool) -> None:
    from moldau.client.admin.nodes import BROKERS

    described = admin.describe_cluster(include_fenced=include_fenced)
    of_brokers = described.endpoint_type == BROKERS
    columns = ["ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE"]
    rows = [
        [
            str(node.id),
            node.host,
            str(node.port),
            node.rack or "null",
            "fenced" if node.fenced else "unfenced",
            "broker" if of_brokers else "controller",
        ]
        for node in described.nodes
    ]
    if not of_brokers:
        for row in (columns, *rows):
            del row[4]
    host_width = max((len(node.host) for node in described.nodes), default=10)
    widths = [15 if name == "ENDPOINT_TYPE" else host_width if name == "HOST" else 10 for name in columns]
    for row in (columns, *rows):
        print(" ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)))
