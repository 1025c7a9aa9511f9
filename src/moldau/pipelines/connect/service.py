"""What workers of both kinds need to start: settings, the host of tasks, the cluster, and the address."""

from __future__ import annotations

import importlib.util
import logging
import os
import socket
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from moldau.base.json_log import hide_in_logs
from moldau.client.wire.cluster import Cluster
from moldau.client.wire.settings import ClientSettings
from moldau.config.definition import ConfigError as PropertyError
from moldau.config.providers import ConfigProviders
from moldau.pipelines.connect.config.providers import worker_providers
from moldau.pipelines.connect.config.worker import WorkerSettings
from moldau.pipelines.connect.data.errors import ConfigError
from moldau.pipelines.connect.plugin_path import jars
from moldau.pipelines.connect.plugins import Plugins
from moldau.pipelines.connect.worker.hosting.host import TaskHost
from moldau.pipelines.connect.worker.hosting.spark import SparkHost
from moldau.pipelines.connect.worker.hosting.threads import ThreadHost
from moldau.pipelines.connect.worker.task.clients import shared_properties
from moldau.pipelines.spark.java import JavaMissing, find_java

if TYPE_CHECKING:
    from ssl import SSLContext

logger = logging.getLogger(__name__)

_HTTPS: Final = "listeners.https."
_WILDCARDS: Final = ("0.0.0.0", "::")


def worker_settings(
    properties: Mapping[str, str], *, standalone: bool
) -> tuple[WorkerSettings, ConfigProviders]:
    """Read the settings of a worker; `moldau.config`'s error, which commands print, names an invalid one.

    The providers have read the secrets of the settings, and logs do not show them from now on.
    """
    try:
        providers = worker_providers(properties)
        hide_in_logs(providers.hide)
        read = WorkerSettings.standalone if standalone else WorkerSettings.distributed
        return read(providers.resolve(properties)), providers
    except ConfigError as error:
        raise PropertyError(str(error)) from None


def client_settings(settings: WorkerSettings) -> ClientSettings:
    """Return how the worker itself connects to the cluster."""
    return ClientSettings.from_properties(shared_properties(settings.properties))


async def cluster_id(client: ClientSettings) -> str | None:
    """Return the id of the cluster; `KafkaError` if it cannot be reached."""
    cluster = Cluster(client)
    try:
        await cluster.retry(lambda: cluster.metadata([]))
        return cluster.cluster_id
    finally:
        cluster.close()


def create_host(settings: WorkerSettings, plugins: Plugins) -> TaskHost:
    """Return where tasks run (`tasks.host`)."""
    missing = _missing_for_spark() if settings.tasks_host == "auto" else ""
    if settings.tasks_host == "threads" or missing:
        if missing:
            logger.warning("Tasks run in threads of this process, without Spark: %s", missing)
        return ThreadHost(plugins)
    return SparkHost(settings.spark_master, jars(settings.properties))


def _missing_for_spark() -> str:
    """Return what Spark needs and is not installed; nothing if it can start."""
    if importlib.util.find_spec("pyspark") is None:
        return 'PySpark is not installed (pip install "moldau[spark]").'
    try:
        find_java(os.environ)
    except JavaMissing as error:
        return str(error).partition("\n")[0]
    return ""


def worker_id(url: str) -> str:
    """Return the worker's name in statuses: the address that it advertises."""
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port}"


def advertised_url(urls: Sequence[str], properties: Mapping[str, str]) -> str:
    """Return the URL for other workers: `rest.advertised.*`, or that of the first listener."""
    scheme = properties.get("rest.advertised.listener", "").strip().lower()
    chosen = urlsplit(next((each for each in urls if urlsplit(each).scheme == scheme), urls[0]))
    host = properties.get("rest.advertised.host.name", "").strip() or chosen.hostname or "localhost"
    if host in _WILDCARDS:
        host = socket.gethostname()
    port = properties.get("rest.advertised.port", "").strip() or chosen.port
    shown = f"[{host}]" if ":" in host else host
    return f"{chosen.scheme}://{shown}:{port}/"


def listener_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of the REST API: with one `listeners.https.ssl.…`, no other `ssl.…` counts."""
    own = {
        name.removeprefix(_HTTPS): each
        for name, each in properties.items()
        if name.startswith(f"{_HTTPS}ssl.")
    }
    others = {name: each for name, each in properties.items() if not name.startswith((_HTTPS, "ssl."))}
    return {**others, **own} if own else dict(properties)


def forwarding_context(properties: Mapping[str, str]) -> SSLContext | None:
    """Return how a worker connects to another with TLS: with the stores of its own listeners."""
    stores = listener_properties(properties)
    if not any(name.startswith("ssl.") for name in stores):
        return None
    from moldau.security.tls.context import client_context
    from moldau.security.tls.settings import TlsSettings

    return client_context(TlsSettings.of(stores.get))
