"""kafka-metadata-quorum: describe the metadata quorum; add and remove controllers."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from moldau.base.ids import ZERO_UUID, format_uuid, parse_uuid
from moldau.cli.shared.arguments import ToolParser, UsageError
from moldau.cli.shared.connection import add_either_bootstrap, load_client_config, open_admin_of_either
from moldau.cli.shared.java import print_columns
from moldau.cli.shared.tool import ToolError, run_tool

if TYPE_CHECKING:
    from moldau.client.admin.client import AdminClient
    from moldau.client.admin.quorum import QuorumReplica

_COLUMNS = (
    "NodeId",
    "DirectoryId",
    "LogEndOffset",
    "Lag",
    "LastFetchTimestamp",
    "LastCaughtUpTimestamp",
    "Status",
)


def main(argv: Sequence[str] | None = None) -> int:
    return run_tool(_parser, _execute, argv)


def _parser() -> ToolParser:
    parser = ToolParser("kafka-metadata-quorum")
    add_either_bootstrap(parser)
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True, parser_class=ToolParser
    )
    text = "Describe the metadata quorum."
    describe = commands.add_parser("describe", description=text, help=text)
    describe.flag("--status", "Show the leader, epoch, high watermark, voters and observers.")
    describe.flag("--replication", "Show the log end offset and lag of each node.")
    describe.flag("--human-readable", "With --replication: show timestamps relative to now.")
    text = "Add a controller to the voters; --command-config is its properties file."
    add = commands.add_parser("add-controller", description=text, help=text)
    add.flag("--dry-run", "Show the change without making it.")
    text = "Remove a controller from the voters."
    remove = commands.add_parser("remove-controller", description=text, help=text)
    remove.add_argument(
        "--controller-id", "-i", metavar="ID", type=int, required=True, help="The node id of the controller."
    )
    remove.add_argument(
        "--controller-directory-id",
        "-d",
        metavar="UUID",
        required=True,
        help="The directory id of its metadata log directory.",
    )
    remove.flag("--dry-run", "Show the change without making it.")
    return parser


def _execute(options: argparse.Namespace) -> None:
    if bool(options.bootstrap_server) == bool(options.bootstrap_controller):
        raise UsageError("one of the arguments --bootstrap-server --bootstrap-controller is required")
    _COMMANDS[options.command](options)


def _describe(options: argparse.Namespace) -> None:
    if options.status and options.replication:
        raise ToolError("Only one of --status or --replication should be specified with describe sub-command")
    if not options.status and not options.replication:
        raise ToolError("One of --status or --replication must be specified with describe sub-command")
    if options.status and options.human_readable:
        raise ToolError("The option --human-readable is only supported along with --replication")
    with open_admin_of_either(options) as admin:
        if options.status:
            _show_status(admin)
        else:
            _show_replication(admin, human_readable=options.human_readable)


def _show_status(admin: AdminClient) -> None:
    cluster_id = admin.describe_cluster().cluster_id
    quorum = admin.describe_metadata_quorum()
    leader = _leader(quorum.leader_id, quorum.voters)
    slowest = min(quorum.voters, key=lambda voter: voter.log_end_offset)
    print(f"ClusterId:              {cluster_id}")
    print(f"LeaderId:               {quorum.leader_id}")
    print(f"LeaderEpoch:            {quorum.leader_epoch}")
    print(f"HighWatermark:          {quorum.high_watermark}")
    print(f"MaxFollowerLag:         {leader.log_end_offset - slowest.log_end_offset}")
    print(f"MaxFollowerLagTimeMs:   {_lag_ms(leader, slowest)}")
    print(f"CurrentVoters:          {_listed(quorum.voters)}")
    print(f"CurrentObservers:       {_listed(quorum.observers)}")


def _lag_ms(leader: QuorumReplica, slowest: QuorumReplica) -> int:
    if leader is slowest:
        return 0
    if leader.last_caught_up_ms < 0 or slowest.last_caught_up_ms < 0:
        return -1
    return leader.last_caught_up_ms - slowest.last_caught_up_ms


def _leader(leader_id: int, voters: Sequence[QuorumReplica]) -> QuorumReplica:
    for voter in voters:
        if voter.id == leader_id:
            return voter
    raise ToolError(f"The leader {leader_id} is not among the voters")


def _listed(replicas: Sequence[QuorumReplica]) -> str:
    return f"[{', '.join(map(_as_text, replicas))}]"


def _as_text(replica: QuorumReplica) -> str:
    parts = [f'"id": {replica.id}']
    if replica.directory_id != ZERO_UUID:
        parts.append(f'"directoryId": "{format_uuid(replica.directory_id)}"')
    if replica.listeners:
        endpoints = ", ".join(f'"{listener}"' for listener in replica.listeners)
        parts.append(f'"endpoints": [{endpoints}]')
    return "{" + ", ".join(parts) + "}"


def _show_replication(admin: AdminClient, *, human_readable: bool) -> None:
    quorum = admin.describe_metadata_quorum()
    leader = _leader(quorum.leader_id, quorum.voters)
    followers = [voter for voter in quorum.voters if voter is not leader]
    groups = (("Leader", [leader]), ("Follower", followers), ("Observer", quorum.observers))
    rows = [
        (
            str(replica.id),
            format_uuid(replica.directory_id),
            str(replica.log_end_offset),
            str(leader.log_end_offset - replica.log_end_offset),
            _time(replica.last_fetch_ms, "last fetch", human_readable=human_readable),
            _time(replica.last_caught_up_ms, "last caught up", human_readable=human_readable),
            status,
        )
        for status, replicas in groups
        for replica in replicas
    ]
    print_columns(_COLUMNS, rows)


def _time(timestamp_ms: int, what: str, *, human_readable: bool) -> str:
    if timestamp_ms < 0 or not human_readable:
        return str(timestamp_ms)
    now_ms = int(time.time() * 1000)
    if not 0 < timestamp_ms <= now_ms:
        raise ToolError(
            "Error while computing relative time, possible drift in system clock.\n"
            f"Current timestamp is {now_ms}, {what} timestamp is {timestamp_ms}"
        )
    return f"{now_ms - timestamp_ms} ms ago"


def _add_controller(options: argparse.Namespace) -> None:
    from moldau.cli.kafka.metadata_quorum.controller_properties import controller_of

    if options.command_config is None:
        raise ToolError(
            "You must supply the configuration file of the controller you are adding when using "
            "add-controller."
        )
    controller = controller_of(load_client_config(options.command_config))
    if not options.dry_run:
        with open_admin_of_either(options) as admin:
            admin.add_raft_voter(controller.id, controller.directory_id, controller.listeners)
    print(
        f"{'DRY RUN of adding' if options.dry_run else 'Added'} controller {controller.id} with directory id "
        f"{format_uuid(controller.directory_id)} and endpoints: {', '.join(map(str, controller.listeners))}"
    )


def _remove_controller(options: argparse.Namespace) -> None:
    if options.controller_id < 0:
        raise ToolError(f"Invalid negative --controller-id: {options.controller_id}")
    try:
        directory_id = parse_uuid(options.controller_directory_id)
    except ValueError as error:
        raise ToolError(f"Failed to parse --controller-directory-id: {error}") from error
    if not options.dry_run:
        with open_admin_of_either(options) as admin:
            admin.remove_raft_voter(options.controller_id, directory_id)
    # Two spaces, like Kafka's Java tool.
    done = "DRY RUN of removing " if options.dry_run else "Removed "
    print(f"{done} KRaft controller {options.controller_id} with directory id {format_uuid(directory_id)}")


_COMMANDS = {
    "describe": _describe,
    "add-controller": _add_controller,
    "remove-controller": _remove_controller,
}
