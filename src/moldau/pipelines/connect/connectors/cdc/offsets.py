"""Positions of the source in Debezium's form.

The partition is `{"server": topic.prefix}`. While a snapshot is read, an offset has `snapshot`; a start
repeats a snapshot that was not finished. Later, `lsn_commit` is the end of the last complete transaction,
where the stream begins again; `lsn` and `event` (the number of the change at that position: a statement that
copies many rows gives all of them one position) say how far the transaction `txId` was read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moldau.pipelines.connect.data.errors import ConnectError


@dataclass(frozen=True, slots=True)
class StreamPosition:
    #: The end of the last complete transaction.
    commit_lsn: int
    #: The last event of the transaction after it; None if there was none yet.
    xid: int | None = None
    lsn: int | None = None
    event: int = 0
    time_us: int | None = None
    kind: str | None = None

    def to_connect(self) -> dict[str, Any]:
        found = {
            "lsn_proc": self.lsn or self.commit_lsn,
            "lsn_commit": self.commit_lsn,
            "lsn": self.lsn or self.commit_lsn,
            "txId": self.xid,
            "event": self.event or None,
            "ts_usec": self.time_us,
            "messageType": self.kind,
        }
        return {name: value for name, value in found.items() if value is not None}

    def is_after(self, xid: int, lsn: int, event: int) -> bool:
        """Return whether a change was read already: it is in the same transaction, and not later."""
        return xid == self.xid and self.lsn is not None and (lsn, event) <= (self.lsn, self.event)


def snapshot_offset(lsn: int, time_us: int, *, last: bool) -> dict[str, Any]:
    """Return the offset of a row of a snapshot; with the last one, the snapshot is complete."""
    return {
        "snapshot": True,
        "last_snapshot_record": last,
        "lsn": lsn,
        "lsn_commit": lsn,
        "ts_usec": time_us,
    }


def partition_of(prefix: str) -> dict[str, str]:
    return {"server": prefix}


def is_unfinished_snapshot(offset: Mapping[str, Any]) -> bool:
    done = offset.get("last_snapshot_record") or offset.get("snapshot_completed")
    return bool(offset.get("snapshot")) and not done


def position_of(offset: Mapping[str, Any]) -> StreamPosition:
    """Return the position of an offset after the snapshot, ours or Debezium's."""
    commit = _number(offset, "lsn_commit") or _number(offset, "lsn_proc") or _number(offset, "lsn")
    if commit is None:
        raise ConnectError("The stored offset has no position (lsn)")
    if offset.get("snapshot"):
        return StreamPosition(commit)
    return StreamPosition(
        commit, _number(offset, "txId"), _number(offset, "lsn"), _number(offset, "event") or 0
    )


def check_offset(partition: Mapping[str, Any], offset: Mapping[str, Any] | None) -> None:
    if "server" not in partition:
        raise ConnectError("A partition of the PostgreSQL source has the key 'server'")
    if offset is not None and not is_unfinished_snapshot(offset):
        position_of(offset)


def _number(offset: Mapping[str, Any], name: str) -> int | None:
    value = offset.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise ConnectError(f"The value of '{name}' in the offset must be a number")
    return value
