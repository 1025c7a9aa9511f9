"""The driver's side of the fork server: start it with the session, stop it with the driver process."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

#: The environment variable with the socket of the fork server; the JVM passes it on to Python processes.
SOCKET = "MOLDAU_FORK_SERVER"
#: Prefixes of variables that are read only once, when a process starts or loads a library: server and fork
#: must agree on them. (Those of Spark itself begin with PYTHON_ and may differ.)
_READ_ONCE = ("PYTHON", "LD_", "LC_", "LANG", "OPENBLAS_", "MKL_", "ARROW_", "MALLOC_", "NUMBA_")
_SPARKS = "PYTHON_"
#: The path of a Unix socket is limited to about 100 bytes.
_MAX_FOLDER_LENGTH = 70

_servers: dict[int, tuple[subprocess.Popen[bytes], str]] = {}


def start_server(environ: Mapping[str, str]) -> str | None:
    """Start this process's fork server unless it runs; return its socket (None if this is not Linux).

    `environ` are the environment variables of Spark's Python processes.
    """
    if sys.platform != "linux":
        return None
    if os.getpid() in _servers:
        return _servers[os.getpid()][1]
    short = len(tempfile.gettempdir()) <= _MAX_FOLDER_LENGTH
    folder = tempfile.mkdtemp(prefix="moldau-fork-server-", dir=None if short else "/tmp")
    socket = os.path.join(folder, "socket")
    process = subprocess.Popen(
        [sys.executable, "-m", "moldau.pipelines.spark.fork_server.server", socket],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env=server_environment(environ),
        start_new_session=True,
    )
    _servers[os.getpid()] = process, socket
    atexit.register(_stop, os.getpid(), process, folder)
    return socket


def client_path() -> Path:
    """Return the script that Spark runs in place of a Python process."""
    return Path(__file__).with_name("client.py")


def server_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Add the variables that Spark sets for its Python workers."""
    return {
        **environ,
        "PYTHONUNBUFFERED": "YES",
        "PYTHONHASHSEED": environ.get("PYTHONHASHSEED", "0"),
        "OMP_NUM_THREADS": environ.get("OMP_NUM_THREADS", "1"),
    }


def read_once(environ: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the variables that a fork inherits from its server, split at colons without repetitions: Spark
    adds the driver's PYTHONPATH a second time."""
    return {
        name: list(dict.fromkeys(filter(None, value.split(":"))))
        for name, value in environ.items()
        if value.strip(":") and name.startswith(_READ_ONCE) and not name.startswith(_SPARKS)
    }


def _stop(driver: int, process: subprocess.Popen[bytes], folder: str) -> None:
    """Close the server's standard input, unless this is a process that the driver has forked."""
    if os.getpid() == driver and process.stdin is not None:
        process.stdin.close()
        shutil.rmtree(folder, ignore_errors=True)
