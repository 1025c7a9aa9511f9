"""The configuration of one node: its properties file, dynamic changes, and values derived from both.

A `BrokerConfig` is immutable. It is built from the properties of a file and raises `ConfigError` if they are
invalid; unknown names become `warnings`. A dynamic change builds a new one (`with_dynamic`) that keeps the
sources apart for DescribeConfigs. `config["num.partitions"]` is the typed value in effect; the Python
properties are derived from several configs.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from moldau.config.broker.definitions import BROKER_CONFIGS, DYNAMIC_BROKER_CONFIGS
from moldau.config.broker.rules import check_rules, connection_overrides
from moldau.config.broker.settings import BrokerSettings
from moldau.config.broker.support import check_supported, doubts
from moldau.config.broker.synonyms import without_listener
from moldau.config.definition import ConfigError
from moldau.config.listeners import (
    PLAINTEXT,
    SECURITY_PROTOCOLS,
    Endpoint,
    check_ports,
    listener_name,
    parse_endpoints,
    parse_protocol_map,
)
from moldau.config.properties import PropertiesError, load_properties
from moldau.config.quorum_voters import HostPort, Voter, parse_servers, parse_voters

_ANY_ADDRESS = ("0.0.0.0", "::")
#: Configs with these prefixes are passed to plugins.
_PLUGIN_PREFIXES = ("config.providers.", "rsm.config.", "rlmm.config.")
#: Configs with these prefixes are passed to the client of the schema registry.
_REGISTRY_PREFIXES = (
    "confluent.schema.registry.",
    "confluent.basic.auth.",
    "confluent.bearer.auth.",
    "confluent.ssl.",
)
#: Configs of the authorizer, which Kafka does not define for the node either.
_AUTHORIZER_CONFIGS = ("super.users", "allow.everyone.if.no.acl.found")
_BEFORE_4_0 = ("zookeeper.", "inter.broker.protocol.version", "log.message.format.version", "control.plane.")


class BrokerConfig(BrokerSettings):
    def __init__(
        self,
        static: Mapping[str, str],
        dynamic_default: Mapping[str, str] | None = None,
        dynamic_broker: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(static, dynamic_default, dynamic_broker)
        check_rules(self)

    @classmethod
    def from_properties(cls, properties: Mapping[str, str], *, supported_only: bool = True) -> BrokerConfig:
        """Read the properties of a node that is about to start.

        `supported_only=False` is for tools: features that Moldau does not support are not refused.
        """
        if "config.providers" in properties:
            from moldau.config.providers import resolved

            properties = resolved(properties, ConfigError, strict=supported_only)
        config = cls(properties)
        if supported_only:
            check_supported(config)
        return config

    @classmethod
    def load(
        cls, path: str, overrides: Mapping[str, str] | None = None, *, supported_only: bool = True
    ) -> BrokerConfig:
        """Read a properties file, with the `overrides` of the command line."""
        try:
            properties = load_properties(path)
        except OSError as error:
            raise ConfigError(f"Cannot read the properties file {path}: {error.strerror}.") from error
        except PropertiesError as error:
            raise ConfigError(f"Cannot read the properties file {path}: {error}.") from error
        return cls.from_properties({**properties, **(overrides or {})}, supported_only=supported_only)

    def with_dynamic(
        self, dynamic_default: Mapping[str, str], dynamic_broker: Mapping[str, str]
    ) -> BrokerConfig:
        """Return a copy with other dynamic configs; `ConfigError` if they are invalid together."""
        return BrokerConfig(self.static, dynamic_default, dynamic_broker)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Messages for the log about unknown names and configs without effect."""
        unknown = sorted(name for name in self.static if not _known(name))
        sentences = tuple(f"Unknown setting {name} is ignored.{_hint(name)}" for name in unknown)
        return sentences + doubts(self)

    @property
    def node_id(self) -> int:
        return self.integer("node.id")

    @cached_property
    def process_roles(self) -> frozenset[str]:
        return frozenset(self.entries("process.roles"))

    @cached_property
    def log_dirs(self) -> tuple[str, ...]:
        return self.entries("log.dirs") or self.entries("log.dir")

    @cached_property
    def metadata_log_dir(self) -> str:
        return self.text("metadata.log.dir") or self.log_dirs[0]

    @cached_property
    def directories(self) -> tuple[str, ...]:
        """All directories of the node, sorted: data directories and the metadata directory."""
        return tuple(sorted({*self.log_dirs, self.metadata_log_dir}))

    @cached_property
    def schema_registry_properties(self) -> dict[str, str]:
        """The properties of the schema registry's client, without the prefix `confluent.`."""
        given = {name: text for name, text in self.static.items() if name.startswith(_REGISTRY_PREFIXES)}
        for name in ("confluent.schema.registry.max.retries", "confluent.schema.registry.retries.wait.ms"):
            given[name] = str(self[name])
        return {name.removeprefix("confluent."): text for name, text in given.items()}

    @cached_property
    def protocol_map(self) -> dict[str, str]:
        """The security protocol of each listener; controller listeners default to PLAINTEXT."""
        setting = "listener.security.protocol.map"
        protocols = parse_protocol_map(setting, self.text(setting) or "")
        secured = SECURITY_PROTOCOLS.keys() - {PLAINTEXT}
        used = {*self.controller_listener_names, *map(listener_name, self.entries("listeners"))}
        if setting in self.texts or used & secured:
            return protocols
        return protocols | dict.fromkeys(self.controller_listener_names, PLAINTEXT)

    @cached_property
    def controller_listener_names(self) -> tuple[str, ...]:
        return self.entries("controller.listener.names")

    @cached_property
    def listeners(self) -> tuple[Endpoint, ...]:
        endpoints = parse_endpoints("listeners", self.entries("listeners"), self.protocol_map)
        check_ports("listeners", endpoints)
        return endpoints

    @cached_property
    def broker_listeners(self) -> tuple[Endpoint, ...]:
        return tuple(each for each in self.listeners if each.name not in self.controller_listener_names)

    @cached_property
    def controller_listeners(self) -> tuple[Endpoint, ...]:
        return tuple(each for each in self.listeners if each.name in self.controller_listener_names)

    @cached_property
    def _advertised(self) -> tuple[Endpoint, ...]:
        setting = "advertised.listeners"
        return parse_endpoints(setting, self.entries(setting), self.protocol_map)

    @cached_property
    def advertised_listeners(self) -> tuple[Endpoint, ...]:
        """The advertised listeners of this broker; an empty host becomes the machine's host name."""
        advertised = self._advertised or self.listeners
        return tuple(each for each in advertised if each.name not in self.controller_listener_names)

    @cached_property
    def advertised_controller_listeners(self) -> tuple[Endpoint, ...]:
        """The advertised listeners of this controller; an empty host becomes the machine's host name."""
        bound = {each.name: _reachable(each) for each in self.controller_listeners}
        known = bound | {each.name: each for each in self._advertised}
        return tuple(known[name] for name in self.controller_listener_names if name in known)

    @cached_property
    def inter_broker_listener_name(self) -> str:
        name = self.text("inter.broker.listener.name")
        return name.upper() if name is not None else str(self["security.inter.broker.protocol"])

    @cached_property
    def max_connections_per_ip_overrides(self) -> dict[str, int]:
        return connection_overrides(self)

    @cached_property
    def quorum_voters(self) -> tuple[Voter, ...]:
        """The voters of a static quorum; empty for a dynamic quorum."""
        return parse_voters("controller.quorum.voters", self.entries("controller.quorum.voters"))

    @cached_property
    def quorum_bootstrap_servers(self) -> tuple[HostPort, ...]:
        setting = "controller.quorum.bootstrap.servers"
        return parse_servers(setting, self.entries(setting))


def _reachable(endpoint: Endpoint) -> Endpoint:
    return endpoint._replace(host="") if endpoint.host in _ANY_ADDRESS else endpoint


def _known(name: str) -> bool:
    if name in BROKER_CONFIGS or name in DYNAMIC_BROKER_CONFIGS or name in _AUTHORIZER_CONFIGS:
        return True
    return without_listener(name) is not None or name.startswith(_PLUGIN_PREFIXES + _REGISTRY_PREFIXES)


def _hint(name: str) -> str:
    if name.startswith(_BEFORE_4_0):
        return " It belongs to Kafka before 4.0."
    # Imported only for unknown names, because the import takes time.
    from difflib import get_close_matches

    close = get_close_matches(name, BROKER_CONFIGS, n=1, cutoff=0.85)
    return f" Did you mean {close[0]}?" if close else ""
