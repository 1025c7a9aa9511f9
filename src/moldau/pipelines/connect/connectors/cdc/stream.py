"""The stream of changes: from the replication protocol to records with offsets.

A transaction arrives when it has committed. The stream begins after the last complete transaction; of the one
that was read in part, the changes that were read are skipped. The slot follows the stored offsets only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from moldau.pipelines.connect.connectors.cdc.envelope import Origin
from moldau.pipelines.connect.connectors.cdc.events import KINDS, Events
from moldau.pipelines.connect.connectors.cdc.offsets import StreamPosition
from moldau.pipelines.connect.connectors.cdc.pgoutput import Begin, Change, Commit, Relation, decode
from moldau.pipelines.connect.connectors.cdc.replication import Data, Progress, ReplicationConnection
from moldau.pipelines.connect.data.records import SourceRecord


class Stream:
    def __init__(self, connection: ReplicationConnection, events: Events, position: StreamPosition) -> None:
        self._connection = connection
        self._events = events
        #: After the last change that was read; between transactions, after everything that was sent.
        self.position = position
        #: What was read before this stream began.
        self._resumed = position
        self._begin: Begin | None = None
        self._change_lsn = 0
        self._event = 0
        #: The end of the last complete transaction, as events report it.
        self._committed_lsn = position.commit_lsn

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction was read in part."""
        return self._begin is not None

    def read(self, limit: int, timeout_s: float) -> list[SourceRecord]:
        """Return the records of the changes that are there, waiting for the first message only."""
        found: list[SourceRecord] = []
        wait_s = timeout_s
        while len(found) < limit:
            message = self._connection.read(wait_s)
            if message is None:
                break
            wait_s = 0.0
            if isinstance(message, Data):
                found += self._decoded(message)
            elif isinstance(message, Progress) and self._begin is None:
                self._completed(message.lsn)
        return found

    def _decoded(self, data: Data) -> list[SourceRecord]:
        message = decode(data.payload)
        if isinstance(message, Begin):
            self._begin, self._change_lsn = message, 0
        elif isinstance(message, Commit):
            self._begin = None
            self._committed_lsn = message.end_lsn
            self._completed(message.end_lsn)
        elif isinstance(message, Relation):
            self._events.relation(message)
        elif message is not None and self._begin is not None:
            return self._changed(message, data.lsn, self._begin)
        return []

    def _completed(self, lsn: int) -> None:
        """Move past everything up to a position; no transaction is open there."""
        if lsn > self.position.commit_lsn:
            self.position = replace(self.position, commit_lsn=lsn, xid=None, lsn=None, event=0)

    def _changed(self, change: Change, lsn: int, begin: Begin) -> list[SourceRecord]:
        self._event = self._event + 1 if lsn == self._change_lsn else 0
        self._change_lsn = lsn
        if self._resumed.is_after(begin.xid, lsn, self._event):
            return []
        before, kind = self.position, KINDS[type(change)]
        self.position = StreamPosition(
            before.commit_lsn, begin.xid, lsn, self._event, begin.commit_time_us, kind
        )
        origin = Origin(begin.commit_time_us, lsn, begin.xid, self._committed_lsn)
        records = list(self._events.change(change, origin, self.position.to_connect()))
        # Only the last record of a change completes it: the offset of the others repeats the change.
        earlier = before.to_connect()
        return [each.replace(source_offset=earlier) for each in records[:-1]] + records[-1:]

    def confirm(self, stored: Mapping[str, Any] | None) -> None:
        """Report to the server that changes up to the stored offset are not needed again."""
        self._connection.confirm((stored or {}).get("lsn_commit") or 0)
