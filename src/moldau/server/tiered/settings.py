"""The configs of tiered storage as typed values, and the remote store that they name."""

from __future__ import annotations

from collections.abc import Callable

from moldau.config.broker.config import BrokerConfig
from moldau.config.definition import INT, LONG, SHORT, ConfigKey, table
from moldau.config.validators import at_least
from moldau.quotas.rate import QuotaWindows
from moldau.tiered.stores.interface import RemoteStore
from moldau.tiered.stores.loading import StoreNotLoaded, load_store

_PARTITIONS = "remote.log.metadata.topic.num.partitions"
_REPLICATION_FACTOR = "remote.log.metadata.topic.replication.factor"
_RETENTION_MS = "remote.log.metadata.topic.retention.ms"
_MIN_ISR = "remote.log.metadata.topic.min.isr"
_CONSUME_WAIT_MS = "remote.log.metadata.consume.wait.ms"
#: Kafka's configs of `TopicBasedRemoteLogMetadataManager`, which have the prefix
#: `remote.log.metadata.manager.impl.prefix`.
_METADATA_CONFIGS = table(
    (
        ConfigKey(_PARTITIONS, INT, 50, "How many partitions the topic gets.", at_least(1)),
        ConfigKey(_REPLICATION_FACTOR, SHORT, 3, "How many replicas the topic gets.", at_least(1)),
        ConfigKey(_RETENTION_MS, LONG, -1, "How long the topic keeps its records.", at_least(-1)),
        ConfigKey(_MIN_ISR, SHORT, 2, "`min.insync.replicas` of the topic.", at_least(1)),
        ConfigKey(_CONSUME_WAIT_MS, LONG, 120_000, "How long a record may take.", at_least(0)),
    )
)


class MetadataConfigs:
    """The validated configs of the metadata topic; `ConfigError` names the one that is invalid."""

    def __init__(self, config: BrokerConfig) -> None:
        prefix = config.text("remote.log.metadata.manager.impl.prefix") or ""
        self._values: dict[str, int] = {}
        for name, key in _METADATA_CONFIGS.items():
            full = f"{prefix}{name}"
            text = config.texts.get(full)
            value = key.default if text is None else key._replace(name=full).parse(text)
            self._values[name] = int(str(value))

    def __getitem__(self, name: str) -> int:
        return self._values[name]


class TieredSettings:
    """Reads the present configuration, so that dynamic changes take effect."""

    def __init__(self, config: Callable[[], BrokerConfig]) -> None:
        self._config = config
        # They are read-only, so they are validated once.
        self._metadata = MetadataConfigs(config())

    def integer(self, name: str) -> int:
        return self._config().integer(name)

    # The metadata topic.

    @property
    def metadata_partitions(self) -> int:
        return self._metadata[_PARTITIONS]

    @property
    def metadata_replication_factor(self) -> int:
        return self._metadata[_REPLICATION_FACTOR]

    @property
    def metadata_retention_ms(self) -> int:
        return self._metadata[_RETENTION_MS]

    @property
    def metadata_min_isr(self) -> int:
        return self._metadata[_MIN_ISR]

    @property
    def publish_timeout_ms(self) -> int:
        return self._metadata[_CONSUME_WAIT_MS]

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
