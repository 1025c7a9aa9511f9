"""kafka-reassign-partitions: move partitions to other brokers and log directories."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from moldau.base.errors import KafkaError
from moldau.cli.shared.arguments import ToolParser, UsageError, given, require
from moldau.cli.shared.java import java_error
from moldau.cli.shared.tool import ToolError, add_either_bootstrap, open_admin_of_either, run_tool

#: What each action needs, and what it may have besides.
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
    parser = ToolParser("kafka-reassign-partitions", "Move partitions to other brokers and directories.")
    add_either_bootstrap(parser)
    parser.hidden("--zookeeper")
    parser.flag("--generate", "Propose a plan for the topics of a file; nothing is moved.")
    parser.flag("--execute", "Start what --reassignment-json-file says.")
    parser.flag("--verify", "Tell whether it is done; throttles are removed then.")
    parser.flag("--cancel", "Cancel what is under way of it.")
    parser.flag("--list", "List all reassignments under way.")
    parser.option(
        "--reassignment-json-file",
        "FILE",
        'The plan: {"version": 1, "partitions": [{"topic": "foo", "partition": 1, "replicas": [1,2,3],\n'
        '"log_dirs": ["any","any","/path"]}]}; "log_dirs" may be left out.',
    )
    parser.option(
        "--topics-to-move-json-file",
        "FILE",
        'generate: topics, as {"version": 1, "topics": [{"topic": "foo"}]}',
    )
    parser.option("--broker-list", "IDS", "generate: the brokers to move them to, as 0,1,2.")
    parser.flag("--disable-rack-aware", "generate: do not look at racks.")
    for name, between in (("throttle", "brokers"), ("replica-alter-log-dirs-throttle", "log directories")):
        parser.option(f"--{name}", "BYTES", f"execute: bytes per second to copy between {between}.", type=int)
    parser.option("--timeout", "MS", "How long replicas are awaited that change directories.", type=int)
    parser.flag("--additional", "execute: besides what is under way, or to change its throttle.")
    parser.flag("--preserve-throttles", "verify, cancel: leave throttles as they are.")
    parser.flag("--disallow-replication-factor-change", "execute: refuse another number of replicas.")
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
