"""What a client asks for, and how a fork becomes it. (`client.py` says what is sent.)"""

from __future__ import annotations

import os
import runpy
import socket
import struct
import sys
import time
from typing import NamedTuple

from pyspark.errors import PySparkException

from moldau.pipelines.spark.forks import read_once

#: Spark asks for its own daemon where it takes no setting.
_QUIETER = {"pyspark.daemon": "moldau.pipelines.spark.worker_daemon"}
#: Exit code of a process that nobody waits for any more.
_NOT_AWAITED = 1


class Request(NamedTuple):
    """A process that a client stands for."""

    folder: bytes
    arguments: list[str]
    environment: dict[str, str]
    files: list[int]


class Refused(ValueError):
    """A client that cannot be served."""


def close(files: list[int]) -> None:
    for file in files:
        os.close(file)


def receive(connection: socket.socket) -> Request:
    """What a client sends, or `Refused` if a fork of this process would not be what it wants."""
    head, files, _, _ = socket.recv_fds(connection, 4, 3)
    try:
        if len(head) != 4 or len(files) != 3:
            raise Refused
        return _parsed(_exactly(connection, struct.unpack("I", head)[0]), files)
    except (OSError, ValueError):
        close(files)
        raise


def _parsed(text: bytes, files: list[int]) -> Request:
    folder, count, *words = text.split(b"\0")
    arguments = [os.fsdecode(word) for word in words[: int(count)]]
    environment = dict(os.fsdecode(word).split("=", 1) for word in words[int(count) :])
    if read_once(environment) != read_once(os.environ) or arguments[:1] != ["-m"] or len(arguments) < 2:
        raise Refused
    return Request(folder, arguments[1:], environment, files)


def _exactly(connection: socket.socket, count: int) -> bytes:
    received = bytearray()
    while len(received) < count:
        part = connection.recv(count - len(received))
        if not part:
            raise Refused
        received += part
    return bytes(received)


def become(request: Request) -> None:
    """Be the process that was asked for, to its end."""
    for number, file in enumerate(request.files):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(request.environment)
    time.tzset()
    os.chdir(request.folder)
    if not sys.flags.safe_path:
        sys.path[0] = os.fsdecode(request.folder)
    sys.argv = request.arguments
    module = _QUIETER.get(request.arguments[0], request.arguments[0])
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except PySparkException as error:
        # A query that is stopped takes the socket along to which its process was to come.
        if error.getCondition() != "CANNOT_OPEN_SOCKET":
            raise
        sys.exit(_NOT_AWAITED)
