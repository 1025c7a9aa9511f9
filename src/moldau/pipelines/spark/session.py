"""Start a Spark session for pipelines, and register the format `moldau` in any session.

A session runs in this process (`local[*,4]`, the default), on a cluster (`spark://…`, `k8s://…`, `yarn`) or
on a Spark Connect server (`sc://…`). A process has one session: if one is active, it is used, the settings
that can change at run time are applied, and a warning names the others.

`quick_start` is for development and tests on one machine: Spark's Python processes are forks of a fork server
(`fork_server`), the JVM uses the C1 compiler only, and the session records a class archive for later ones.
Every other session starts its processes as Spark does.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
import warnings
from collections.abc import Mapping
from typing import Any, Literal

import pyspark
from pyspark.sql import SparkSession

from moldau.pipelines.data_source import MoldauDataSource
from moldau.pipelines.queries import CONNECTOR
from moldau.pipelines.sink.query_listener import pin_tasks
from moldau.pipelines.spark.class_archive import archive_options, load_classes, records
from moldau.pipelines.spark.executables import (
    PYTHON,
    changed_environment,
    java_home,
    python_script,
    spark_home,
    worker_python,
)
from moldau.pipelines.spark.fork_server.start import SOCKET, start_server
from moldau.pipelines.spark.java import find_java
from moldau.pipelines.spark.kafka_connector import connector_settings
from moldau.pipelines.spark.settings import (
    REDACTED,
    REDACTED_OPTIONS,
    TRACES_ENDPOINT,
    common_settings,
    is_local,
    java_options,
    local_cores,
    local_settings,
    memory_bytes,
    merged,
    worker_variables,
)
from moldau.pipelines.spark.user_folders import cache_folder

#: Up to four attempts per task; the default of local mode is one.
LOCAL_MASTER = "local[*,4]"

#: The imports of the Spark Connect client and the packages that contain them.
_CONNECT_PACKAGES = {
    "grpc": "grpcio",
    "grpc_status": "grpcio-status",
    "google.rpc": "googleapis-common-protos",
    "zstandard": "zstandard",
}

#: Spark's default of `REDACTED`.
_SPARKS_REDACTION = "(?i)url"

Connector = Literal["moldau", "official"]

#: Starting a session changes environment variables, so only one thread may do it at a time.
_starting = threading.Lock()


class SettingsIgnored(UserWarning):
    """Some settings were ignored because the active session cannot change them."""


def session(
    name: str = "moldau",
    *,
    master: str = LOCAL_MASTER,
    connector: Connector = "moldau",
    quick_start: bool = False,
    config: Mapping[str, str] | None = None,
) -> SparkSession:
    """Return a session with the settings for pipelines; `config` overrides them.

    `quick_start` halves the time to the first row and lowers the throughput of long jobs. Use it for
    development and tests; it has no effect on the workers of a cluster.
    """
    wanted = dict(config or {})
    if connector == "official":
        wanted.update(connector_settings(wanted, os.environ, pyspark.__version__))
    with _starting:
        active = active_session()
        if active is not None:
            return _reconfigured(active, {CONNECTOR: connector, "spark.master": master, **wanted})
        settings = {**common_settings(), CONNECTOR: connector}
        if master.startswith("sc://"):
            spark = _connect(name, master, {**settings, **wanted})
        else:
            spark = _start(name, master, settings, quick_start, wanted)
        register(spark)
        return spark


def register(spark: SparkSession) -> None:
    """Register the format `moldau` in a session, hide its secret options in plans, and trace its queries if
    an endpoint is set."""
    spark.dataSource.register(MoldauDataSource)
    if spark.conf.get(REDACTED, _SPARKS_REDACTION) == _SPARKS_REDACTION:
        spark.conf.set(REDACTED, REDACTED_OPTIONS)
    pin_tasks(spark)
    endpoint = spark.conf.get(TRACES_ENDPOINT, "")
    if endpoint:
        _trace_queries(spark, endpoint)


def _trace_queries(spark: SparkSession, endpoint: str) -> None:
    from moldau.tracing.extra import needs_opentelemetry

    with needs_opentelemetry(TRACES_ENDPOINT):
        from moldau.pipelines.tracing import trace_queries
    trace_queries(spark, endpoint)


def _start(
    name: str, master: str, settings: dict[str, str], quick_start: bool, wanted: Mapping[str, str]
) -> SparkSession:
    """Start a session whose driver is this process."""
    installed = spark_home()
    cache = cache_folder()
    java = find_java(os.environ)
    archive = archive_options(java, cache, installed, record=quick_start)
    variables = {"JAVA_HOME": str(java_home(java, cache))}
    if is_local(master):
        settings |= local_settings(local_cores(master), memory_bytes())
    python = worker_python(os.environ, str(python_script(installed, cache)), master, local=is_local(master))
    if python is not None:
        variables[PYTHON] = python
        if quick_start and is_local(master):
            variables[SOCKET] = start_server({**os.environ, **worker_variables(wanted)}) or ""
    settings = {"spark.app.name": name, "spark.master": master, **settings}
    settings = merged(settings, java_options(quick_start, archive), wanted)
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    with changed_environment(variables):
        spark = builder.getOrCreate()
    _ignore_closed_accumulators(spark)
    if records(archive):
        load_classes(spark)
    return spark


def _ignore_closed_accumulators(spark: SparkSession) -> None:
    """Print no traceback when Spark closes the accumulators' connection at the end of a session."""
    server = getattr(spark.sparkContext, "_accumulatorServer", None)
    if server is None:
        return
    report = server.handle_error

    def handle_error(request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), EOFError | ConnectionError):
            report(request, client_address)

    server.handle_error = handle_error


def _connect(name: str, url: str, settings: Mapping[str, str]) -> SparkSession:
    """Return a session of a Spark Connect server, which has its own Java and static settings."""
    missing = [package for module, package in _CONNECT_PACKAGES.items() if not _is_installed(module)]
    if missing:
        raise ModuleNotFoundError(
            f"Spark Connect ({url}) needs {', '.join(missing)}: pip install {' '.join(missing)}"
        )
    spark = SparkSession.builder.appName(name).remote(url).getOrCreate()
    for key, value in settings.items():
        if spark.conf.isModifiable(key):
            spark.conf.set(key, value)
    return spark


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def active_session() -> SparkSession | None:
    """Return the session of this process, which Spark itself does not find from every thread."""
    spark = SparkSession.getActiveSession()
    if spark is None and not os.environ.get("SPARK_CONNECT_MODE_ENABLED"):
        spark = SparkSession._instantiatedSession
    return spark


def _reconfigured(spark: SparkSession, wanted: Mapping[str, str]) -> SparkSession:
    """Apply the settings that can change at run time to the active session; warn about the others."""
    ignored = []
    for key, value in wanted.items():
        if spark.conf.get(key, None) == value:
            continue
        if spark.conf.isModifiable(key) or key == CONNECTOR:
            spark.conf.set(key, value)
        elif key != "spark.master" or value != LOCAL_MASTER:
            ignored.append(f"{key}={value} (it is {spark.conf.get(key, 'not set')})")
    if ignored:
        warnings.warn(
            "A Spark session is already active in this process; stop it first to change "
            + ", ".join(ignored),
            SettingsIgnored,
            stacklevel=3,
        )
    register(spark)
    return spark
