"""Python processes of a local session, forked from one that has imported already what they all need.

Spark starts a Python process for every step of using a source: to look it up, to make it, to plan it, to read
it, and one more for every streaming query. Each starts Python and imports PySpark and Arrow again, one after
the other, 200 to 400 ms apiece, while nothing else goes on. Here one process, the *fork server*, imports
everything while the JVM is still starting, and the processes are forks of it, ready in a few milliseconds.

    driver ──starts──▶ fork server ──forks──▶ pyspark.daemon …, streaming runners …
       │                     ▲
       └─▶ JVM ──starts──▶ client (one per process: sends its files, environment, arguments; waits)

The client is what Spark believes to be the process: it lives as long as the fork, ends with its exit code,
and the fork ends when the client is killed. Where there is no server, or it was started with other variables
than the process wants, the client becomes the process itself, as if nothing of this existed. When the driver
is gone the server makes no more forks, and it ends with the last of them.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

#: Where a client finds the server: the variable that the JVM hands on to the processes it starts.
SOCKET = "MOLDAU_FORKS"
#: What a server and its forks must have in common: how the names of variables begin that are read only once,
#: when a process starts or loads a library. (Spark's own begin with PYTHON_.)
_READ_ONCE = ("PYTHON", "LD_", "LC_", "LANG", "OPENBLAS_", "MKL_", "ARROW_", "MALLOC_")
_SPARKS = "PYTHON_"
#: The longest folder in which the path of a socket finds room.
_LONGEST = 70

_lifelines: dict[int, tuple[subprocess.Popen[bytes], str]] = {}


def start_server(environ: Mapping[str, str]) -> str | None:
    """The socket of this process's fork server, started if need be; None where forks are no good idea."""
    if sys.platform != "linux":
        return None
    if os.getpid() in _lifelines:
        return _lifelines[os.getpid()][1]
    # Sockets have short paths, other than temporary folders.
    short = len(tempfile.gettempdir()) <= _LONGEST
    folder = tempfile.mkdtemp(prefix="moldau-forks-", dir=None if short else "/tmp")
    socket = os.path.join(folder, "socket")
    process = subprocess.Popen(
        [sys.executable, "-m", f"{__name__}.server", socket],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env=server_environment(environ),
        start_new_session=True,
    )
    _lifelines[os.getpid()] = process, socket
    atexit.register(_end, os.getpid(), process, folder)
    return socket


def client_path() -> Path:
    """The script to run in place of a process."""
    return Path(__file__).with_name("client.py")


def server_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """As Spark's workers have it: prints are not held back, strings hash alike, one thread adds numbers."""
    return {
        **environ,
        "PYTHONUNBUFFERED": "YES",
        "PYTHONHASHSEED": environ.get("PYTHONHASHSEED", "0"),
        "OMP_NUM_THREADS": environ.get("OMP_NUM_THREADS", "1"),
    }


def read_once(environ: Mapping[str, str]) -> dict[str, list[str]]:
    """The variables that a fork has from its server, as the paths that some of them are: Spark names the
    folders of the driver twice."""
    return {
        name: list(dict.fromkeys(filter(None, value.split(":"))))
        for name, value in environ.items()
        if value.strip(":") and name.startswith(_READ_ONCE) and not name.startswith(_SPARKS)
    }


def _end(driver: int, process: subprocess.Popen[bytes], folder: str) -> None:
    """Cut the lifeline. What the JVM has still to do, its Python processes do; a child that the driver has
    forked is not the driver."""
    if os.getpid() == driver and process.stdin is not None:
        process.stdin.close()
        shutil.rmtree(folder, ignore_errors=True)
