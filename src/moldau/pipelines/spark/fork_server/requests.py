"""Requests of clients for a process, and how a fork becomes that process. (`client.py` is the sender.)"""

from __future__ import annotations

import os
import runpy
import socket
import struct
import sys
import time
from typing import NamedTuple

from pyspark.errors import PySparkException

from moldau.pipelines.spark.fork_server.start import read_once

#: Spark starts its own daemon module for data sources, whatever `spark.python.daemon.module` says.
_REPLACED = {"pyspark.daemon": "moldau.pipelines.spark.worker_daemon"}
#: The exit code of a process whose query was stopped before it connected.
_NOT_NEEDED = 1


class Request(NamedTuple):
    """The process that a client requests."""

    folder: bytes
    arguments: list[str]
    environment: dict[str, str]
    files: list[int]


class Refused(ValueError):
    """A request that the server cannot serve."""


def close(files: list[int]) -> None:
    for file in files:
        os.close(file)


def receive(connection: socket.socket) -> Request:
    """Read a request; raise `Refused` if a fork of this process would differ from the requested process."""
    head, files, _, _ = socket.recv_fds(connection, 4, 3)
    try:
        if len(head) != 4 or len(files) != 3:
            raise Refused
        return _parse(_read_exactly(connection, struct.unpack("I", head)[0]), files)
    except (OSError, ValueError):
        close(files)
        raise


def _parse(text: bytes, files: list[int]) -> Request:
    folder, count, *words = text.split(b"\0")
    arguments = [os.fsdecode(word) for word in words[: int(count)]]
    environment = dict(os.fsdecode(word).split("=", 1) for word in words[int(count) :])
    if read_once(environment) != read_once(os.environ) or arguments[:1] != ["-m"] or len(arguments) < 2:
        raise Refused
    return Request(folder, arguments[1:], environment, files)


def _read_exactly(connection: socket.socket, count: int) -> bytes:
    received = bytearray()
    while len(received) < count:
        part = connection.recv(count - len(received))
        if not part:
            raise Refused
        received += part
    return bytes(received)


def become(request: Request) -> None:
    """Run the requested program in this process."""
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
    module = _REPLACED.get(request.arguments[0], request.arguments[0])
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except PySparkException as error:
        # A query that is stopped closes the socket to which its process connects.
        if error.getCondition() != "CANNOT_OPEN_SOCKET":
            raise
        sys.exit(_NOT_NEEDED)
