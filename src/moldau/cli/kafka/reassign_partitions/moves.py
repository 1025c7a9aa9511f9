"""Moves of replicas between log directories: start, verify and cancel them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from moldau.base.errors import ErrorCode
from moldau.cli.shared.tool import ToolError

if TYPE_CHECKING:
    from moldau.client.admin.client import AdminClient
    from moldau.client.admin.reassignments import Replica, ReplicaLogDirs

#: Delay before a move of a replica that does not exist yet is retried.
_RETRY_SECONDS = 0.1


def verify_moves(admin: AdminClient, wanted: Mapping[Replica, str]) -> bool:
    """Print the status of moves; return whether some are in progress or their status is unknown."""
    found = admin.describe_replica_log_dirs(wanted)
    print("\n".join(_status(replica, wanted[replica], found[replica]) for replica in sorted(wanted)))
    return any(where.current is None or where.future is not None for where in found.values())


def _status(replica: Replica, wanted: str, found: ReplicaLogDirs) -> str:
    partition = f"Partition {replica.topic_partition}"
    if found.current is None:
        return (
            f"{partition} is not found in any live log dir on broker {replica.broker}. There is likely an "
            "offline log directory on the broker."
        )
    if found.future == wanted:
        return f"Reassignment of replica {replica} is still in progress."
    if found.future is not None:
        return (
            f"{partition} on broker {replica.broker} is being moved to log dir {found.future} instead of "
            f"{wanted}."
        )
    if found.current == wanted:
        return f"Reassignment of replica {replica} completed successfully."
    return (
        f"{partition} on broker {replica.broker} is not being moved from log dir {found.current} to {wanted}."
    )


def cancel_moves(admin: AdminClient, wanted: Mapping[Replica, str], timeout_ms: int) -> None:
    """Cancel ongoing moves by moving the replicas to their current log directories."""
    found = admin.describe_replica_log_dirs(wanted)
    ongoing = {
        replica: where.current
        for replica, where in found.items()
        if where.current is not None and where.future is not None
    }
    if ongoing:
        start_moves(admin, ongoing, timeout_ms)
    else:
        # Without a line ending, like Kafka's Java tool.
        print("None of the specified partition moves are active.", end="")


def start_moves(admin: AdminClient, wanted: Mapping[Replica, str], timeout_ms: int) -> None:
    """Start moves; wait for replicas that their brokers have not created yet."""
    pending = dict(wanted)
    deadline = time.monotonic() + timeout_ms / 1000
    while True:
        for replica in _started(admin, pending):
            path = pending.pop(replica)
            print(
                f"Successfully started moving log directory to {path} for replica "
                f"{replica.topic_partition} with broker {replica.broker} "
            )
        if not pending:
            return
        if time.monotonic() >= deadline:
            plural = "" if len(pending) == 1 else "s"
            listed = ",".join(map(str, sorted(pending)))
            raise ToolError(f"Timed out before log directory move{plural} could be started for: {listed}")
        time.sleep(_RETRY_SECONDS)


def _started(admin: AdminClient, wanted: Mapping[Replica, str]) -> list[Replica]:
    started = []
    for replica, error in sorted(admin.alter_replica_log_dirs(wanted).items()):
        if error is None:
            started.append(replica)
        elif error.code is not ErrorCode.REPLICA_NOT_AVAILABLE:
            raise ToolError(f"Error: Failed to alter dir for {replica}: {error}") from error
    return started
