"""The configuration in force, and the settings of the parts that follow from it.

Dynamic changes arrive with the metadata image; `follow` puts them into force without a restart.
"""

from __future__ import annotations

import logging
import resource

from moldau.config.broker.config import BrokerConfig
from moldau.config.dynamic import apply_dynamic_configs
from moldau.metadata.image import MetadataImage
from moldau.network.listener import ConnectionLimits
from moldau.storage.cleaner.job import CleanerSettings
from moldau.storage.log.config import LogConfig, log_config_from
from moldau.storage.log_manager import LogManagerSettings

log = logging.getLogger(__name__)

_MANY_FILES = 20_000


def _files_for_logs() -> int:
    """A third of the descriptors this process may have; the rest is for connections and everything else."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MANY_FILES if soft == resource.RLIM_INFINITY else max(4, min(_MANY_FILES, soft // 3))


class NodeSettings:
    def __init__(self, config: BrokerConfig, limits: ConnectionLimits) -> None:
        self.config = config
        self._limits = limits
        self._default_log_config = log_config_from({}, config)
        self._apply_limits()

    def follow(self, image: MetadataImage) -> None:
        """Adopt the dynamic broker configs of an image."""
        applied = apply_dynamic_configs(
            self.config, image.default_broker_config(), image.broker_config(self.config.node_id)
        )
        for problem in applied.problems:
            log.warning("%s", problem)
        self.config = applied.config
        self._default_log_config = log_config_from({}, self.config)
        self._apply_limits()

    def log_config(self, image: MetadataImage, topic: str) -> LogConfig:
        """How the logs of a topic work; topics without settings of their own share one."""
        overrides = image.topic_config(topic)
        return log_config_from(overrides, self.config) if overrides else self._default_log_config

    def log_manager_settings(self) -> LogManagerSettings:
        config = self.config
        return LogManagerSettings(
            recovery_threads_per_data_dir=config["num.recovery.threads.per.data.dir"],
            producer_id_expiration_ms=config["producer.id.expiration.ms"],
            delete_delay_ms=config["log.segment.delete.delay.ms"],
            open_files=_files_for_logs(),
        )

    def cordoned_directories(self) -> frozenset[str]:
        """Those that get no new replicas."""
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
        config, limits = self.config, self._limits
        limits.max_connections = config["max.connections"]
        limits.max_per_ip = config["max.connections.per.ip"]
        limits.per_ip_overrides = config.max_connections_per_ip_overrides
        limits.max_idle_ms = config["connections.max.idle.ms"]
        limits.let_in()
