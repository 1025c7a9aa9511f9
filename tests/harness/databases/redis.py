"""A private Redis server with a password."""

from __future__ import annotations

from typing import Any

from tests.harness.databases.process import ServerProcess, find_program


class RedisServer:
    """A server that keeps its data over `stop` and `start`."""

    def __init__(self) -> None:
        self._program = find_program("redis-server", "redis-server")
        self._server = ServerProcess()
        self.start()

    @property
    def uri(self) -> str:
        return f"redis://127.0.0.1:{self._server.port}/0"

    def client(self) -> Any:
        import redis

        return redis.Redis.from_url(self.uri, password="secret", decode_responses=True)

    def start(self) -> None:
        command = [self._program, "--port", str(self._server.port), "--bind", "127.0.0.1"]
        command += ["--requirepass", "secret", "--appendonly", "yes", "--dir", str(self._server.folder)]
        self._server.start(command, self._is_ready)

    def stop(self) -> None:
        self._server.stop()

    def close(self) -> None:
        self._server.close()

    def _is_ready(self) -> bool:
        import redis

        try:
            return bool(self.client().ping())
        except redis.exceptions.RedisError:
            return False
