"""A replication connection: slots, exported snapshots and the stream of changes.

It speaks the streaming replication protocol over libpq, by psycopg's low-level interface. Errors are
psycopg's.
"""

from __future__ import annotations

import select
import struct
import time
from typing import Any, Final, NamedTuple

from moldau.pipelines.connect.connectors.cdc.pgoutput import POSTGRES_EPOCH_US
from moldau.pipelines.connect.data.errors import ConnectError

#: How the server writes values, for both kinds of connections.
SESSION: Final = {
    "datestyle": "ISO",
    "intervalstyle": "iso_8601",
    "timezone": "UTC",
    "bytea_output": "hex",
    "extra_float_digits": "3",
    "client_encoding": "UTF8",
}
_OPTIONS: Final = " ".join(f"-c {name}={value}" for name, value in SESSION.items())


class Data(NamedTuple):
    """A message of the output plugin, and the position of its change."""

    lsn: int
    payload: bytes


class Progress(NamedTuple):
    """The server has sent everything up to this position."""

    lsn: int


class Slot(NamedTuple):
    """A new slot: transactions that commit after `lsn` are in its stream, all others in the snapshot."""

    lsn: int
    snapshot: str


class ReplicationConnection:
    def __init__(self, settings: dict[str, Any]) -> None:
        import psycopg
        from psycopg import pq

        self._psycopg, self._pq = psycopg, pq
        given = {**settings, "replication": "database", "options": _OPTIONS}
        conninfo = psycopg.conninfo.make_conninfo(**given)
        self._connection = pq.PGconn.connect(conninfo.encode())
        if self._connection.status != pq.ConnStatus.OK:
            message = self._connection.get_error_message()
            self._connection.finish()
            raise psycopg.OperationalError(message)

    def create_slot(self, name: str, *, temporary: bool = False) -> Slot:
        kind = "TEMPORARY " if temporary else ""
        use = "EXPORT_SNAPSHOT" if temporary else "NOEXPORT_SNAPSHOT"
        row = self._row(f"CREATE_REPLICATION_SLOT {_quoted(name)} {kind}LOGICAL pgoutput {use}")
        return Slot(parse_lsn(row[1] or "0/0"), row[2] or "")

    def drop_slot(self, name: str) -> None:
        self._execute(f"DROP_REPLICATION_SLOT {_quoted(name)} WAIT")

    def start(self, slot: str, lsn: int, publication: str) -> None:
        """Begin the stream with the first transaction that commits after `lsn`."""
        names = _quoted(publication).replace("'", "''")
        self._execute(
            f"START_REPLICATION SLOT {_quoted(slot)} LOGICAL {format_lsn(lsn)} "
            f"(proto_version '1', publication_names '{names}')"
        )
        self._connection.nonblocking = 1

    def read(self, timeout_s: float) -> Data | Progress | None:
        """Return the next message; None if none arrives in time."""
        message = self._copy_data()
        if message is None and timeout_s > 0:
            select.select([self._connection.socket], [], [], timeout_s)
            self._connection.consume_input()
            message = self._copy_data()
        if message is None:
            return None
        kind = message[:1]
        if kind == b"w":
            start, end = struct.unpack_from("!qq", message, 1)
            return Data(start or end, message[25:])
        if kind == b"k":
            (end,) = struct.unpack_from("!q", message, 1)
            return Progress(end)
        raise ConnectError(f"Unknown message of the replication protocol: {kind!r}")

    def confirm(self, lsn: int) -> None:
        """Tell the server that the connection lives, and that changes up to `lsn` are not needed again."""
        now = time.time_ns() // 1000 - POSTGRES_EPOCH_US
        self._connection.put_copy_data(struct.pack("!cqqqqB", b"r", lsn, lsn, lsn, now, 0))
        deadline = time.monotonic() + 10
        while self._connection.flush():
            if time.monotonic() > deadline:
                raise self._psycopg.OperationalError("The server does not read the progress")
            select.select([], [self._connection.socket], [], 1)

    def close(self) -> None:
        self._connection.finish()

    def _copy_data(self) -> bytes | None:
        size, data = self._connection.get_copy_data(1)
        if size == 0:
            return None
        if size < 0:
            result = self._connection.get_result()
            message = result.get_error_message() if result is not None else "the stream has ended"
            raise self._psycopg.OperationalError(message)
        return bytes(data)

    def _row(self, command: str) -> list[str | None]:
        result = self._execute(command)
        values = [result.get_value(0, column) for column in range(result.nfields)]
        return [None if value is None else value.decode() for value in values]

    def _execute(self, command: str) -> Any:
        result = self._connection.exec_(command.encode())
        good = (
            self._pq.ExecStatus.TUPLES_OK,
            self._pq.ExecStatus.COMMAND_OK,
            self._pq.ExecStatus.COPY_BOTH,
        )
        if result.status not in good:
            raise self._psycopg.OperationalError(result.get_error_message())
        return result


def parse_lsn(text: str) -> int:
    high, _, low = text.partition("/")
    return int(high, 16) << 32 | int(low, 16)


def format_lsn(lsn: int) -> str:
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
