"""A private MariaDB server."""

from __future__ import annotations

import getpass
import os
from typing import Any

from tests.harness.databases.process import ServerProcess, find_program


class MariaDb:
    """A server with the user `tests` (password `secret`) and a database per call of `database`."""

    def __init__(self) -> None:
        self._program = find_program("mariadbd", "mariadb-server")
        install = find_program("mariadb-install-db", "mariadb-server")
        self._server = ServerProcess()
        self._data = self._server.folder / "data"
        user = "nobody" if os.geteuid() == 0 else getpass.getuser()
        self._server.run(
            [
                *(install, "--no-defaults", f"--datadir={self._data}", "--skip-test-db"),
                *("--auth-root-authentication-method=normal", f"--user={user}"),
            ]
        )
        self._databases = 0
        self.start()
        with self.connect("", root=True) as connection, connection.cursor() as cursor:
            cursor.execute("CREATE USER 'tests'@'%' IDENTIFIED BY 'secret'")
            cursor.execute("GRANT ALL ON *.* TO 'tests'@'%'")
            connection.commit()

    @property
    def port(self) -> int:
        return self._server.port

    def start(self) -> None:
        command = [self._program, "--no-defaults", f"--datadir={self._data}", f"--port={self.port}"]
        command += [f"--socket={self._server.folder / 'socket'}", "--bind-address=127.0.0.1"]
        command += ["--innodb-buffer-pool-size=16M", "--innodb-flush-log-at-trx-commit=0"]
        command += ["--innodb-log-file-size=8M", "--skip-log-bin"]
        self._server.start(command, self._is_ready)

    def stop(self) -> None:
        self._server.stop()

    def close(self) -> None:
        self._server.close()

    def database(self) -> str:
        """Create an empty database and return its name."""
        self._databases += 1
        name = f"test{self._databases}"
        with self.connect("") as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
        return name

    def url(self, database: str) -> str:
        return f"jdbc:mariadb://127.0.0.1:{self.port}/{database}"

    def connect(self, database: str, *, root: bool = False, autocommit: bool = True) -> Any:
        import pymysql

        return pymysql.connect(
            host="127.0.0.1",
            port=self.port,
            user="root" if root else "tests",
            password="" if root else "secret",
            database=database or None,
            autocommit=autocommit,
        )

    def _is_ready(self) -> bool:
        import pymysql

        try:
            self.connect("", root=True).close()
        except pymysql.OperationalError:
            return False
        return True
