"""A worker ends without a traceback when Spark hangs up, and with one when something is wrong."""

from __future__ import annotations

import gc
import socket

import pytest

from moldau.pipelines.spark.worker_daemon import with_frozen_modules, without_complaint


def test_a_worker_nobody_listens_to_ends() -> None:
    def worker(connection: socket.socket) -> int:
        connection.sendall(b"an answer")
        return 0

    mine, other = socket.socketpair()
    with mine, other:
        assert without_complaint(worker)(mine) == 0
        other.close()
        assert without_complaint(worker)(mine) == 1


def test_what_is_wrong_is_told() -> None:
    def worker() -> int:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        without_complaint(worker)()


def test_what_modules_brought_is_not_looked_at_again() -> None:
    try:
        run = with_frozen_modules(lambda code: code)
        assert run(0) == 0
        kept = gc.get_freeze_count()
        assert kept > 1000
        assert run(3) == 3
        assert gc.get_freeze_count() == kept, "nothing was imported since"
    finally:
        gc.unfreeze()
