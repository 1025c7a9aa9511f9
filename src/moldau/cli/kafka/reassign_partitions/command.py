"""kafka-reassign-partitions: move replicas of partitions to other brokers or log directories."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from moldau.base.errors import KafkaError
from moldau.cli.shared.arguments import ToolParser, UsageError, given, require
from moldau.cli.shared.connection import add_either_bootstrap, open_admin_of_either
from moldau.cli.shared.java import java_error
from moldau.cli.shared.tool import ToolError, run_tool

#: The options that each action requires, and those that it permits.
_REQUIRED = {
    "generate": ("topics-to-move-json-file", "broker-list"),
    "execute": ("reassignment-json-file",),
    "verify": ("reassignment-json-file",),
    "cancel": ("reassignment-json-file",),
    "list": (),
}
_PERMITTED = {
    "generate": ("disable-rack-aware",),
    "execute": (
        "additional",
        "throttle",
        "replica-alter-log-dirs-throttle",
        "timeout",
        "disallow-replication-factor-change",
    ),
    "verify": ("preserve-throttles",),
    "cancel": ("bootstrap-controller", "preserve-throttles", "timeout"),
    "list": ("bootstrap-controller",),
}
_OPTIONS = sorted({name for names in (*_REQUIRED.values(), *_PERMITTED.values()) for name in names})


def main(argv: Sequence[str] | None = None) -> int:
    return run_tool(_parser, _execute, argv, report=print)


def _parser() -> ToolParser:
    parser = ToolParser("kafka-reassign-partitions")
    add_either_bootstrap(parser)
    parser.hidden("--zookeeper")
    parser.flag("--generate", "Print a proposed reassignment of topics without executing it.")
    parser.flag("--execute", "Start the reassignment in --reassignment-json-file.")
    parser.flag("--verify", "Show whether the reassignment has completed; if so, remove its throttles.")
    parser.flag("--cancel", "Cancel the reassignment where it is still in progress.")
    parser.flag("--list", "List all ongoing reassignments.")
    parser.option(
        "--reassignment-json-file",
        "FILE",
        "execute, verify, cancel: the reassignment; log_dirs is optional:\n"
        '{"version": 1, "partitions": [{"topic": "foo", "partition": 1, "replicas": [1,2,3], '
        '"log_dirs": ["any","any","/path"]}]}',
    )
    parser.option(
        "--topics-to-move-json-file",
        "FILE",
        'generate: the topics to move, as {"version": 1, "topics": [{"topic": "foo"}]}',
    )
    parser.option("--broker-list", "IDS", "generate: the brokers to move partitions to, as 0,1,2.")
    parser.flag("--disable-rack-aware", "generate: ignore the racks of brokers.")
    for name, between in (("throttle", "brokers"), ("replica-alter-log-dirs-throttle", "log directories")):
        parser.option(
            f"--{name}",
            "BYTES",
            f"execute: copy at most this many bytes per second between {between}.",
            type=int,
        )
    parser.option(
        "--timeout",
        "MS",
        "execute, cancel: wait at most this many ms for moves between log directories to start "
        "(10000 by default).",
        type=int,
    )
    parser.flag("--additional", "execute: add to the ongoing reassignments, or change their throttle.")
    parser.flag("--preserve-throttles", "verify, cancel: do not remove throttles.")
    parser.flag("--disallow-replication-factor-change", "execute: reject a change of the replication factor.")
    return parser


def _execute(options: argparse.Namespace) -> None:
    from moldau.cli.kafka.reassign_partitions.actions import ACTIONS
    from moldau.client.wire.cluster import BootstrapFailed

    action = _check(options)
    try:
        with open_admin_of_either(options, client_id="reassign-partitions-tool") as admin:
            ACTIONS[action](admin, options)
    except KafkaError as error:
        if isinstance(error, BootstrapFailed):
            raise
        raise ToolError(f"Error: {java_error(error)}") from error


def _check(options: argparse.Namespace) -> str:
    chosen = [action for action in _REQUIRED if given(options, action)]
    if len(chosen) != 1:
        listed = ", ".join(f"--{action}" for action in _REQUIRED)
        raise UsageError(f"Command must include exactly one action: {listed}")
    if options.bootstrap_server and options.bootstrap_controller:
        raise UsageError("Please don't specify both --bootstrap-server and --bootstrap-controller")
    if not options.bootstrap_server and not options.bootstrap_controller:
        raise UsageError("Please specify either --bootstrap-server or --bootstrap-controller")
    action = chosen[0]
    require(options, *_REQUIRED[action])
    for name in ("bootstrap-controller", *_OPTIONS):
        if given(options, name) and name not in (*_REQUIRED[action], *_PERMITTED[action]):
            raise UsageError(f'Option "[{name}]" can\'t be used with action "[{action}]"')
    return action
