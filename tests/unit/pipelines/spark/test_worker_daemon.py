"""A worker exits without a traceback when Spark closes its connection, and with one after an error."""

from __future__ import annotations

import gc
import socket

import pytest

from moldau.pipelines.spark.worker_daemon import freeze_modules, ignore_closed_connection


def test_worker_exits_when_its_connection_is_closed() -> None:
    def worker(connection: socket.socket) -> int:
        connection.sendall(b"an answer")
        return 0

    mine, other = socket.socketpair()
    with mine, other:
        assert ignore_closed_connection(worker)(mine) == 0
        other.close()
        assert ignore_closed_connection(worker)(mine) == 1


def test_other_errors_are_raised() -> None:
    def worker() -> int:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ignore_closed_connection(worker)()


def test_objects_of_modules_are_frozen_once() -> None:
    try:
        run = freeze_modules(lambda code: code)
        assert run(0) == 0
        kept = gc.get_freeze_count()
        assert kept > 1000
        assert run(3) == 3
        # Frozen objects may be freed meanwhile; none is added.
        assert gc.get_freeze_count() <= kept, "no module was imported since"
    finally:
        gc.unfreeze()
