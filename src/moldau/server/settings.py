"""The effective configuration of a node and the settings derived from it.

Dynamic config changes arrive with the metadata image; `update` applies them without a restart.
"""

from __future__ import annotations

import logging
import resource
import socket
from collections.abc import Mapping, Sequence
from functools import cache

from moldau.base.json_log import event
from moldau.config.broker.config import BrokerConfig
from moldau.config.dynamic import apply_dynamic_configs
from moldau.metadata.image import MetadataImage
from moldau.network.connection import java_address
from moldau.network.limits import ConnectionLimits
from moldau.quotas.client_quotas import ClientQuotas
from moldau.quotas.connections import ConnectionSettings, ListenerLimits
from moldau.quotas.rate import QuotaWindows
from moldau.storage.cleaner.job import CleanerSettings
from moldau.storage.log.config import LogConfig, log_config_from
from moldau.storage.manager.manager import LogManagerSettings

logger = logging.getLogger(__name__)

#: The values of `process.roles`; a listener serves one of them.
BROKER = "broker"
CONTROLLER = "controller"

_MAX_OPEN_LOG_FILES = 20_000


def _open_log_files() -> int:
    """Return a third of RLIMIT_NOFILE; the rest is for connections and other files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (
        _MAX_OPEN_LOG_FILES if soft == resource.RLIM_INFINITY else max(4, min(_MAX_OPEN_LOG_FILES, soft // 3))
    )


class NodeSettings:
    def __init__(self, config: BrokerConfig, limits: Sequence[ConnectionLimits]) -> None:
        self.config = config
        self._limits = limits
        self._default_log_config = log_config_from({}, config)

    def update(self, image: MetadataImage) -> None:
        """Apply the dynamic broker configs of an image."""
        applied = apply_dynamic_configs(
            self.config, image.default_broker_config(), image.broker_config(self.config.node_id)
        )
        for problem in applied.problems:
            logger.warning("%s", problem, extra=event("config.refused"))
        self.config = applied.config
        self._default_log_config = log_config_from({}, self.config)
        self._apply_limits()

    def log_config(self, image: MetadataImage, topic: str) -> LogConfig:
        """Return the log config of a topic; topics without overrides share one object."""
        overrides = image.topic_config(topic)
        return log_config_from(overrides, self.config) if overrides else self._default_log_config

    def log_manager_settings(self) -> LogManagerSettings:
        config = self.config
        return LogManagerSettings(
            recovery_threads_per_data_dir=config["num.recovery.threads.per.data.dir"],
            producer_id_expiration_ms=config["producer.id.expiration.ms"],
            delete_delay_ms=config["log.segment.delete.delay.ms"],
            open_files=_open_log_files(),
        )

    def cordoned_directories(self) -> frozenset[str]:
        """Return the log directories that get no new replicas (KIP-1066)."""
        names = self.config.entries("cordoned.log.dirs")
        return frozenset(self.config.log_dirs if names == ("*",) else names)

    def cleaner_settings(self) -> CleanerSettings:
        config = self.config
        return CleanerSettings(
            enable=config["log.cleaner.enable"],
            threads=config["log.cleaner.threads"],
            dedupe_buffer_size=config["log.cleaner.dedupe.buffer.size"],
            io_buffer_load_factor=config["log.cleaner.io.buffer.load.factor"],
            io_max_bytes_per_second=config["log.cleaner.io.max.bytes.per.second"],
            backoff_ms=config["log.cleaner.backoff.ms"],
        )

    def _apply_limits(self) -> None:
        settings = connection_settings(self.config)
        for limits in self._limits:
            limits.max_idle_ms = self.config["connections.max.idle.ms"]
            if limits.settings != settings:
                limits.update(settings)


def quota_windows(config: BrokerConfig, prefix: str = "") -> QuotaWindows:
    return QuotaWindows(
        config.integer(f"{prefix}quota.window.num"),
        config.integer(f"{prefix}quota.window.size.seconds") * 1000,
    )


def client_quotas(config: BrokerConfig) -> ClientQuotas:
    """Return the quotas of a node, none of them set."""
    return ClientQuotas(quota_windows(config), quota_windows(config, "controller."))


def connection_limits(config: BrokerConfig) -> ConnectionLimits:
    """Return the connection limits of a role."""
    return ConnectionLimits(
        connection_settings(config),
        windows=quota_windows(config),
        max_waiting=config.integer("socket.listen.backlog.size"),
        max_idle_ms=config.integer("connections.max.idle.ms"),
    )


def connection_settings(config: BrokerConfig) -> ConnectionSettings:
    inter_broker = config.inter_broker_listener_name
    return ConnectionSettings(
        max_connections=config.integer("max.connections"),
        max_creation_rate=config.integer("max.connection.creation.rate"),
        listeners={
            endpoint.name: ListenerLimits(
                config.for_listener(endpoint.name, "max.connections"),
                config.for_listener(endpoint.name, "max.connection.creation.rate"),
            )
            for endpoint in config.listeners
        },
        max_per_ip=config.integer("max.connections.per.ip"),
        per_ip_overrides=_by_address(config.max_connections_per_ip_overrides),
        protected_listener=inter_broker if len(config.broker_listeners) > 1 else None,
    )


def _by_address(overrides: Mapping[str, int]) -> dict[str, int]:
    return {address: limit for host, limit in overrides.items() for address in _addresses(host)}


@cache
def _addresses(host: str) -> tuple[str, ...]:
    """Return the addresses of a host in `max.connections.per.ip.overrides`."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        logger.warning("max.connections.per.ip.overrides names %s, which cannot be resolved: %s", host, error)
        return ()
    return tuple(dict.fromkeys(java_address(str(address[0])) for *_, address in found))
