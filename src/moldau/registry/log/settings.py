"""Settings of the topic and of the election, with Confluent's names.

| setting | default | meaning |
|---|---|---|
| `kafkastore.bootstrap.servers` | | brokers of the cluster that stores the schemas |
| `kafkastore.topic` | `_schemas` | topic with all schemas and settings |
| `kafkastore.topic.replication.factor` | 3 | replicas of a new topic, at most the number of brokers |
| `kafkastore.topic.skip.validation` | false | use the topic as it is |
| `kafkastore.skip.damaged.records` | false | log and skip records that cannot be read, instead of stopping |
| `kafkastore.timeout.ms` | 5000 | time for a write to be acknowledged |
| `kafkastore.init.timeout.ms` | 60000 | time for Kafka to be reached and the topic to be read at the start |
| `kafkastore.security.protocol`, `.ssl.*`, `.sasl.*` | | security of the connections, as for clients |
| `schema.registry.group.id` | `schema-registry` | group of the instances, one of which leads |
| `leader.eligibility` | true | whether this instance may lead |
| `leader.election.sticky` | true | whether a leader keeps leading when instances join |
| `leader.connect.timeout.ms`, `leader.read.timeout.ms` | 60000 | timeouts of requests to the leader |
| `kafkagroup.session.timeout.ms` | 10000 | an instance without heartbeats leaves the group after this time |
| `kafkagroup.heartbeat.interval.ms` | 1000 | interval of heartbeats |
| `kafkagroup.rebalance.timeout.ms` | 300000 | time for the instances to join again |
| `host.name` | of the listener | host that other instances forward to; that of this machine for 0.0.0.0 |
| `host.port` | of the listener | port that other instances forward to |
| `inter.instance.protocol` | http | scheme of that address; its listener is the first with this scheme |
| `inter.instance.headers.whitelist` | | further request headers to forward |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from moldau.base.ids import TopicPartition
from moldau.client.wire.settings import ClientSettings
from moldau.config.definition import ConfigError
from moldau.http.settings import boolean, integer

_PREFIX = "kafkastore."
_SERVERS = "kafkastore.bootstrap.servers"


@dataclass(frozen=True, slots=True)
class LogSettings:
    client: ClientSettings
    topic: str = "_schemas"
    replication_factor: int = 3
    skip_validation: bool = False
    skip_damaged: bool = False
    timeout_ms: int = 5000
    init_timeout_ms: int = 60_000
    group: str = "schema-registry"

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> LogSettings:
        """Read the settings; `ConfigError` or `KafkaError` names an invalid one."""
        if not properties.get(_SERVERS, "").strip():
            raise ConfigError(f"{_SERVERS} is not set: it names the brokers that store the schemas.")
        init_timeout_ms = integer(properties, "kafkastore.init.timeout.ms", 60_000)
        return cls(
            client=_client(properties, init_timeout_ms),
            topic=properties.get("kafkastore.topic", "").strip() or "_schemas",
            replication_factor=integer(properties, "kafkastore.topic.replication.factor", 3),
            skip_validation=boolean(properties, "kafkastore.topic.skip.validation", False),
            skip_damaged=boolean(properties, "kafkastore.skip.damaged.records", False),
            timeout_ms=integer(properties, "kafkastore.timeout.ms", 5000),
            init_timeout_ms=init_timeout_ms,
            group=properties.get("schema.registry.group.id", "").strip() or "schema-registry",
        )

    @property
    def partition(self) -> TopicPartition:
        return TopicPartition(self.topic, 0)


@dataclass(frozen=True, slots=True)
class ElectionSettings:
    group: str = "schema-registry"
    sticky: bool = True
    session_timeout_ms: int = 10_000
    heartbeat_interval_ms: int = 1000
    rebalance_timeout_ms: int = 300_000

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> ElectionSettings:
        session_ms = integer(properties, "kafkagroup.session.timeout.ms", 10_000)
        return cls(
            group=properties.get("schema.registry.group.id", "").strip() or "schema-registry",
            sticky=boolean(properties, "leader.election.sticky", True),
            session_timeout_ms=session_ms,
            heartbeat_interval_ms=integer(
                properties, "kafkagroup.heartbeat.interval.ms", min(1000, session_ms // 3)
            ),
            rebalance_timeout_ms=integer(properties, "kafkagroup.rebalance.timeout.ms", 300_000),
        )


def _client(properties: Mapping[str, str], init_timeout_ms: int) -> ClientSettings:
    own = {
        name.removeprefix(_PREFIX): value for name, value in properties.items() if name.startswith(_PREFIX)
    }
    own.setdefault("client.id", "schema-registry")
    settings = ClientSettings.from_properties(own)
    # Brokers and registry are often started together: the brokers may become ready later.
    return replace(settings, bootstrap_timeout_ms=init_timeout_ms)
