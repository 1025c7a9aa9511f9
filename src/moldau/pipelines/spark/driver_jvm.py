"""The driver's JVM, started without detours once it is known how.

PySpark starts a shell script that starts a JVM that works out the command of the JVM that is wanted, and then
looks ten times a second whether that is ready: 0.4 s in all. What is worked out depends on little: the
installation, Spark's own variables, and the few settings that are options of a JVM. So the first start goes
the long way, the command is read off the running process and kept, and later ones use it at once. A kept
command that does not lead to a JVM is thrown away, and the long way is taken, with all it has to say.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pyspark import SparkContext

from moldau.pipelines.spark.class_archive import records
from moldau.pipelines.spark.launching import changed_environment

_MAIN = "org.apache.spark.deploy.SparkSubmit"
#: Settings that become options of the JVM; all others are arguments of its program.
_JVM_SETTINGS = ("spark.driver.", "spark.submit.")
#: What Spark's scripts read and set. (The setting for the driver's native libraries becomes a variable.)
_SPARK_VARIABLES = ("SPARK_", "HADOOP_", "YARN_", "PYTHONHASHSEED", "CLASSPATH", "LD_LIBRARY_PATH")
#: Somebody wants to start Spark in a way of his own.
_OWN_WAYS = ("PYSPARK_GATEWAY_PORT", "PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR", "SPARK_TESTING")
_KEPT = 16
#: Before a JVM answers it may fetch packages.
_START_SECONDS = 600.0


class Launch(NamedTuple):
    """How a JVM is started: the command up to its main class, and the variables Spark's scripts set."""

    command: list[str]
    variables: dict[str, str]


@contextlib.contextmanager
def driver_jvm(installed: Path, cache: Path, settings: Mapping[str, str]) -> Iterator[None]:
    """While this lasts, PySpark that wants a JVM finds one, or starts one and it is noted how."""
    if not _is_ours(installed):
        yield
        return
    kept = cache / f"launch-{_fingerprint(installed, settings)}.json"
    launch = read_launch(kept)
    started = launch and start_jvm(launch, settings)
    if started:
        process, port, secret = started
        try:
            with changed_environment({"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}):
                yield
        finally:
            # The JVM lives as long as somebody holds its process.
            gateway: Any = SparkContext._gateway
            if gateway is not None:
                gateway.proc = process
    else:
        with contextlib.suppress(OSError):
            kept.unlink()
        yield
        _keep(kept)


def _is_ours(installed: Path) -> bool:
    """Whether a JVM is wanted, of this installation as it came."""
    return (
        sys.platform == "linux"
        and SparkContext._gateway is None
        and not any(name in os.environ for name in _OWN_WAYS)
        and os.environ.get("SPARK_HOME") in (None, str(installed))
        and not (installed / "conf").exists()
    )


def _fingerprint(installed: Path, settings: Mapping[str, str]) -> str:
    about = [
        str(installed),
        str((installed / "jars").stat().st_mtime_ns),
        os.environ["JAVA_HOME"],
        *(f"{key}={value}" for key, value in sorted(settings.items()) if key.startswith(_JVM_SETTINGS)),
        *(f"{key}={value}" for key, value in sorted(os.environ.items()) if key.startswith(_SPARK_VARIABLES)),
    ]
    return hashlib.sha256(os.fsencode("\0".join(about))).hexdigest()[:16]


def read_launch(kept: Path) -> Launch | None:
    try:
        return Launch(**json.loads(kept.read_text()))
    except (OSError, ValueError, TypeError):
        return None


def start_jvm(launch: Launch, settings: Mapping[str, str]) -> tuple[subprocess.Popen[bytes], int, str] | None:
    """The JVM, its port and what to say there; None if it does not come."""
    arguments = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder, "gateway")
        try:
            process = subprocess.Popen(
                [*launch.command, *arguments, "pyspark-shell"],
                # The JVM ends when this pipe breaks.
                stdin=subprocess.PIPE,
                env={**os.environ, **launch.variables, "_PYSPARK_DRIVER_CONN_INFO_PATH": str(answer)},
                preexec_fn=_ignore_interrupts,
            )
        except OSError:
            return None
        deadline = time.monotonic() + _START_SECONDS
        while not answer.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                process.communicate()
                return None
            time.sleep(0.01)
        port, length = struct.unpack_from(">ii", said := answer.read_bytes())
        return process, port, said[8 : 8 + length].decode()


def _ignore_interrupts() -> None:
    """Ctrl-C is for the driver, which then ends the JVM in its own way."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _keep(kept: Path) -> None:
    """Note how the JVM that runs now was started."""
    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return
    try:
        command = _words(process.pid, "cmdline")
        environment = dict(word.split("=", 1) for word in _words(process.pid, "environ") if "=" in word)
    except OSError:
        return
    if _MAIN not in command or records(command):
        return
    changed = {
        key: value
        for key, value in environment.items()
        if key.startswith(_SPARK_VARIABLES) and os.environ.get(key) != value
    }
    launch = Launch(command[: command.index(_MAIN) + 1], changed)
    with contextlib.suppress(OSError):
        # Options of a JVM may hold secrets.
        written = kept.with_suffix(f".{os.getpid()}")
        written.touch(mode=0o600)
        written.write_text(json.dumps(launch._asdict()))
        written.replace(kept)
        for old in sorted(kept.parent.glob("launch-*.json"), key=lambda path: path.stat().st_mtime)[:-_KEPT]:
            old.unlink()


def _words(process: int, name: str) -> list[str]:
    """Any bytes are allowed there, and come back as Python writes them into other commands."""
    return os.fsdecode(Path(f"/proc/{process}/{name}").read_bytes()).rstrip("\0").split("\0")
