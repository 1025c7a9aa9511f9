"""The driver process: it has the Spark session and hosts the pipelines of one run.

    python -m moldau.pipelines.runtime.driver '{"files": ["orders.yaml"], ...}'

`supervisor` starts and restarts it, with its settings as JSON. It exits when all pipelines have ended, at
SIGTERM, and when its standard input is closed, which happens when the supervisor dies. A new driver does not
restart pipelines that have ended in the same run (stopped by the user, or failed).
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moldau.base.json_log import TEXT, configure_logging
from moldau.config.definition import ConfigError
from moldau.config.properties import PropertiesError, load_properties
from moldau.pipelines.runtime.definition import BadDefinition
from moldau.pipelines.runtime.progress_line import ProgressLine
from moldau.pipelines.runtime.restarts import TRIES, Policy
from moldau.pipelines.runtime.state import ENDED, AlreadyRunning, StateFolder, Status
from moldau.pipelines.runtime.yaml.definitions import trigger_of
from moldau.pipelines.spark.java import JavaMissing
from moldau.pipelines.spark.kafka_connector import ConnectorMissing

if TYPE_CHECKING:
    from moldau.pipelines.runtime.host import Host
    from moldau.pipelines.runtime.pipeline_files import Loaded
    from moldau.pipelines.runtime.python_pipeline import Runnable

#: Exit codes of a driver that must not be restarted.
DONE, BAD_DEFINITION, SOME_FAILED = 0, 2, 3
_TICK_S = 0.3
#: Errors that a new driver would raise again.
_REFUSALS = (
    BadDefinition,
    AlreadyRunning,
    ConfigError,
    ConnectorMissing,
    JavaMissing,
    ModuleNotFoundError,
)


@dataclass(frozen=True, slots=True)
class RunSettings:
    """The arguments of `moldau pipeline run`."""

    files: list[str]
    run: str
    supervisor: int
    state_dir: str
    bootstrap_servers: str = "localhost:9092"
    #: None for a local session.
    master: str | None = None
    connector: str = "moldau"
    quick_start: bool = False
    trigger: str | None = None
    metrics_port: int | None = None
    config: dict[str, str] = field(default_factory=dict)
    tries: int = TRIES
    #: The properties file of the client. Its content may be secret: only its name is passed on.
    command_config: str | None = None
    log_format: str = TEXT


def main(argv: list[str]) -> int:
    settings = RunSettings(**json.loads(argv[1]))
    configure_logging(settings.log_format, logging.INFO)
    # Py4J logs every call that an exiting JVM did not answer.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_watch_supervisor, args=(stopping,), daemon=True).start()
    folder = StateFolder(Path(settings.state_dir))
    try:
        loaded = _load(settings)
        with folder.running(loaded.pipelines):
            return _run(settings, loaded, folder, stopping)
    except _REFUSALS as wrong:
        print(wrong, flush=True)
        return BAD_DEFINITION


def _watch_supervisor(stopping: threading.Event) -> None:
    # Not through `sys.stdin`, whose lock would be held when the interpreter exits.
    while os.read(0, 4096):
        pass
    stopping.set()


def _load(settings: RunSettings) -> Loaded:
    from moldau.pipelines.runtime.pipeline_files import load

    trigger = trigger_of(settings.trigger) if settings.trigger else None
    return load([Path(file) for file in settings.files], trigger=trigger)


def _run(settings: RunSettings, loaded: Loaded, folder: StateFolder, stopping: threading.Event) -> int:
    from moldau.pipelines import session
    from moldau.pipelines.runtime.host import Host
    from moldau.pipelines.runtime.metrics import serve_metrics

    client = _client_properties(settings.command_config)
    line = ProgressLine(sys.stdout)
    line.begin(_announce_start(settings, loaded, folder))
    config = {"spark.scheduler.mode": "FAIR", **loaded.config, **settings.config}
    optional: dict[str, Any] = {} if settings.master is None else {"master": settings.master}
    spark = session(
        "moldau-pipelines",
        connector=settings.connector,  # type: ignore[arg-type]
        quick_start=settings.quick_start,
        config=config,
        **optional,
    )
    host = Host(spark, folder, _now_ms)
    _add_all(host, settings, loaded, folder, client)
    if settings.metrics_port is not None:
        port = serve_metrics(host.hosted, settings.metrics_port)
        line.close()
        print(f"Metrics are served on http://localhost:{port}/metrics", flush=True)
    try:
        while not stopping.is_set() and not host.has_ended:
            host.tick(time.monotonic())
            line.show([each.status for each in host.hosted], time.monotonic())
            stopping.wait(_TICK_S)
        host.stop()
        line.show([each.status for each in host.hosted], time.monotonic())
    finally:
        line.end([each.status for each in host.hosted])
    spark.stop()
    return SOME_FAILED if any(each.status.state == "failed" for each in host.hosted) else DONE


def _announce_start(settings: RunSettings, loaded: Loaded, folder: StateFolder) -> list[Status]:
    """Write the status of the pipelines that are starting, and clear earlier stop requests."""
    statuses = []
    for name, runnable in loaded.pipelines.items():
        status = folder.read(name)
        if status is None or status.run != settings.run:
            folder.clear_stop(name)
            status = _new_status(settings, runnable, loaded.files)
            folder.write(status)
        statuses.append(status)
    return statuses


def _new_status(settings: RunSettings, runnable: Runnable, files: Mapping[str, Path]) -> Status:
    return Status(
        runnable.name,
        file=str(files[runnable.name]),
        run=settings.run,
        supervisor=settings.supervisor,
        driver=os.getpid(),
        since_ms=_now_ms(),
        updated_ms=_now_ms(),
        sinks=_written(runnable),
    )


def _written(runnable: Runnable) -> list[dict[str, str]]:
    """Return what a pipeline writes; nothing if only its code knows."""
    from moldau.pipelines.runtime.python_pipeline import Pipeline

    if runnable.definition is not None:
        return runnable.definition.written
    if isinstance(runnable, Pipeline) and runnable.topic is not None:
        return [{"topic": runnable.topic, "role": "sink"}]
    return []


def _client_properties(path: str | None) -> dict[str, str]:
    """Read the properties of the client; the addresses are those of the command line and the pipelines."""
    if path is None:
        return {}
    try:
        properties = load_properties(path)
    except OSError as error:
        raise BadDefinition(f"Unable to read file {path}: {error.strerror}") from error
    except PropertiesError as error:
        raise BadDefinition(f"{path}, {error}") from error
    properties.pop("bootstrap.servers", None)
    return properties


def _add_all(
    host: Host, settings: RunSettings, loaded: Loaded, folder: StateFolder, client: Mapping[str, str]
) -> None:
    from moldau.pipelines.runtime.host import Hosted
    from moldau.pipelines.runtime.python_pipeline import Context

    for name, runnable in loaded.pipelines.items():
        status = folder.read(name) or _new_status(settings, runnable, loaded.files)
        if status.state not in ENDED:
            status.state = "starting"
        checkpoints = str((folder.of(name) / "checkpoint").absolute())
        context = Context(settings.bootstrap_servers, checkpoints, client)
        host.add(Hosted(runnable, status, context, Policy(tries=settings.tries)))


def _now_ms() -> int:
    return int(time.time() * 1000)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
