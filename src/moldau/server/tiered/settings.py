"""The configs of tiered storage as typed values, and the remote store that they name."""

from __future__ import annotations

from collections.abc import Callable

from moldau.config.broker.config import BrokerConfig
from moldau.quotas.rate import QuotaWindows
from moldau.tiered.stores.interface import RemoteStore
from moldau.tiered.stores.loading import StoreNotLoaded, load_store

_METADATA_PREFIX = "remote.log.metadata.topic."


class TieredSettings:
    """Reads the present configuration, so that dynamic changes take effect."""

    def __init__(self, config: Callable[[], BrokerConfig]) -> None:
        self._config = config

    def integer(self, name: str) -> int:
        return self._config().integer(name)

    # The metadata topic.

    @property
    def metadata_partitions(self) -> int:
        return self._metadata("num.partitions", 50)

    @property
    def metadata_replication_factor(self) -> int:
        return self._metadata("replication.factor", 3)

    @property
    def metadata_retention_ms(self) -> int:
        return self._metadata("retention.ms", -1)

    @property
    def publish_timeout_ms(self) -> int:
        config = self._config()
        prefix = config.text("remote.log.metadata.manager.impl.prefix")
        return int(config.texts.get(f"{prefix}remote.log.metadata.consume.wait.ms", 120_000))

    def _metadata(self, name: str, default: int) -> int:
        config = self._config()
        prefix = config.text("remote.log.metadata.manager.impl.prefix")
        return int(config.texts.get(f"{prefix}{_METADATA_PREFIX}{name}", default))

    # Quotas.

    def copy_windows(self) -> QuotaWindows:
        return self._windows("copy")

    def fetch_windows(self) -> QuotaWindows:
        return self._windows("fetch")

    def _windows(self, kind: str) -> QuotaWindows:
        prefix = f"remote.log.manager.{kind}.quota.window"
        return QuotaWindows(self.integer(f"{prefix}.num"), self.integer(f"{prefix}.size.seconds") * 1000)

    # The store.

    def load_store(self) -> RemoteStore:
        """Create the remote store. Blocking."""
        config = self._config()
        class_name = config.text("remote.log.storage.manager.class.name")
        if not class_name:
            raise StoreNotLoaded("remote.log.storage.manager.class.name is not set")
        prefix = config.text("remote.log.storage.manager.impl.prefix") or ""
        configs = {
            name.removeprefix(prefix): text
            for name, text in config.texts.items()
            if prefix and name.startswith(prefix)
        }
        configs["broker.id"] = str(config.node_id)
        return load_store(class_name, config.text("remote.log.storage.manager.class.path"), configs)
