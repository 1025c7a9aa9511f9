"""A private PostgreSQL server with logical decoding."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

from tests.harness.databases.process import ServerProcess, find_program

_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "fsync": "off",
    "wal_level": "logical",
    "max_replication_slots": "10",
    "max_wal_senders": "10",
    "max_prepared_transactions": "4",
    "max_connections": "40",
    "shared_buffers": "16MB",
}


class PostgreSql:
    """A server with the superuser `tests` (password `secret`) and a database per call of `database`."""

    def __init__(self, primary: PostgreSql | None = None) -> None:
        """Start an empty server, or a hot standby of another."""
        folders = [str(each) for each in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
        self._postgres = find_program("postgres", "postgresql", folders)
        initdb = find_program("initdb", "postgresql", folders)
        # An immediate shutdown: it waits for no client, and the next start recovers.
        self._server = ServerProcess(signal.SIGQUIT)
        self._data = self._server.folder / "data"
        self._databases = 0
        if primary is None:
            self._initialise(initdb)
        else:
            address = f"host=127.0.0.1 port={primary.port} user=tests password=secret"
            backup = find_program("pg_basebackup", "postgresql", folders)
            self._server.run(
                [
                    backup,
                    "-d",
                    address,
                    "-D",
                    str(self._data),
                    "-R",
                    "-X",
                    "stream",
                    "-c",
                    "fast",
                    "--no-sync",
                ]
            )
        self.start()

    def _initialise(self, initdb: str) -> None:
        password = self._server.folder / "password"
        password.write_text("secret")
        password.chmod(0o644)
        self._server.run(
            [
                *(initdb, "--pgdata", str(self._data), "--username", "tests", "--pwfile", str(password)),
                *("--auth", "scram-sha-256", "--encoding", "UTF8", "--no-sync", "--locale", "C.UTF-8"),
            ]
        )

    @property
    def port(self) -> int:
        return self._server.port

    def start(self) -> None:
        settings = [part for name, value in _SETTINGS.items() for part in ("-c", f"{name}={value}")]
        command = [self._postgres, "-D", str(self._data), "-p", str(self.port), *settings]
        command += ["-c", f"unix_socket_directories={self._server.folder}"]
        self._server.start(command, self._is_ready)

    def stop(self) -> None:
        self._server.stop()

    def close(self) -> None:
        self._server.close()

    def database(self) -> str:
        """Create an empty database and return its name."""
        self._databases += 1
        name = f"test{self._databases}"
        with self.connect("postgres") as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return name

    def url(self, database: str) -> str:
        return f"jdbc:postgresql://127.0.0.1:{self.port}/{database}"

    def connect(self, database: str, *, autocommit: bool = True) -> Any:
        import psycopg

        return psycopg.connect(
            host="127.0.0.1",
            port=self.port,
            dbname=database,
            user="tests",
            password="secret",
            autocommit=autocommit,
        )

    def _is_ready(self) -> bool:
        import psycopg

        try:
            self.connect("postgres").close()
        except psycopg.OperationalError:
            return False
        return True
