"""A Spark session made for pipelines, and the format `moldau` in any session.

A session runs in this process (`local[*,4]`, the default), on a cluster (`spark://…`, `k8s://…`, `yarn`) or
behind Spark Connect (`sc://…`); pipelines are the same everywhere. There is one session in a process: where
one is active already it is used, gets the settings that can still change, and what could not be applied is
said. (The module is not called `session` because that name in the package is the function.)
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
from moldau.pipelines.sink.pinning import keep_tasks
from moldau.pipelines.spark.class_archive import archive_options, load_classes, records
from moldau.pipelines.spark.driver_jvm import driver_jvm
from moldau.pipelines.spark.forks import SOCKET, start_server
from moldau.pipelines.spark.java import find_java
from moldau.pipelines.spark.launching import (
    PYTHON,
    changed_environment,
    chosen_python,
    quick_python,
    quiet_java,
    spark_home,
)
from moldau.pipelines.spark.official_connector import connector_settings
from moldau.pipelines.spark.settings import (
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

#: A failed task is tried again, which Spark does not do in local mode unless told.
LOCAL_MASTER = "local[*,4]"

#: What the client of Spark Connect imports, and how it is installed.
_CONNECT_PACKAGES = {
    "grpc": "grpcio",
    "grpc_status": "grpcio-status",
    "google.rpc": "googleapis-common-protos",
    "zstandard": "zstandard",
}

Connector = Literal["moldau", "official"]

#: Of threads that want a session at once, one starts it: the environment it changes is everybody's.
_starting = threading.Lock()


class SettingsIgnored(UserWarning):
    """A session was active already, and some of what was asked for cannot be changed any more."""


def session(
    name: str = "moldau",
    *,
    master: str = LOCAL_MASTER,
    connector: Connector = "moldau",
    quick_start: bool = False,
    config: Mapping[str, str] | None = None,
) -> SparkSession:
    """A session with the settings that pipelines want; `config` comes last and wins.

    `quick_start` halves the time to the first row and costs speed in the long run: for tests and development.
    """
    wanted = dict(config or {})
    if connector == "official":
        wanted.update(connector_settings(wanted, os.environ, pyspark.__version__))
    with _starting:
        active = active_session()
        if active is not None:
            return _adapted(active, {CONNECTOR: connector, "spark.master": master, **wanted})
        settings = {**common_settings(), CONNECTOR: connector}
        if master.startswith("sc://"):
            spark = _connect(name, master, {**settings, **wanted})
        else:
            spark = _start(name, master, settings, quick_start, wanted)
        register(spark)
        return spark


def register(spark: SparkSession) -> None:
    """Make the format `moldau` known to a session."""
    spark.dataSource.register(MoldauDataSource)
    keep_tasks(spark)


def _start(
    name: str, master: str, settings: dict[str, str], quick_start: bool, wanted: Mapping[str, str]
) -> SparkSession:
    """A session whose driver is this process."""
    installed = spark_home()
    cache = cache_folder(os.environ)
    java = find_java(os.environ)
    archive = archive_options(java, cache, installed, record=quick_start)
    own = {"JAVA_HOME": str(quiet_java(java, cache))}
    if is_local(master):
        settings |= local_settings(local_cores(master), memory_bytes())
    python = chosen_python(os.environ, str(quick_python(installed, cache)), master, local=is_local(master))
    if python is not None:
        own[PYTHON] = python
        if is_local(master):
            own[SOCKET] = start_server({**os.environ, **worker_variables(wanted)}) or ""
    settings = {"spark.app.name": name, "spark.master": master, **settings}
    settings = merged(settings, java_options(quick_start, archive), wanted)
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    with changed_environment(own), driver_jvm(installed, cache, settings):
        spark = builder.getOrCreate()
    _let_accumulators_end(spark)
    if records(archive):
        load_classes(spark)
    return spark


def _let_accumulators_end(spark: SparkSession) -> None:
    """When a session ends, Spark closes the connection over which it adds up: no reason for a traceback."""
    server = getattr(spark.sparkContext, "_accumulatorServer", None)
    if server is None:
        return
    complain = server.handle_error

    def handle_error(request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), EOFError | ConnectionError):
            complain(request, client_address)

    server.handle_error = handle_error


def _connect(name: str, url: str, settings: Mapping[str, str]) -> SparkSession:
    """A session of a Spark Connect server, which has its own Java and its own static settings."""
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
    """The session of this process, which Spark itself does not know in every thread."""
    spark = SparkSession.getActiveSession()
    if spark is None and not os.environ.get("SPARK_CONNECT_MODE_ENABLED"):
        spark = SparkSession._instantiatedSession
    return spark


def _adapted(spark: SparkSession, wanted: Mapping[str, str]) -> SparkSession:
    """The active session with the wanted settings, as far as they can be changed."""
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
            "A Spark session is active in this process and is used as it is; stop it first to change "
            + ", ".join(ignored),
            SettingsIgnored,
            stacklevel=3,
        )
    register(spark)
    return spark
