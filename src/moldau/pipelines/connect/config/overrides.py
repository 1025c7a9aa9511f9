"""Which client settings connectors may override: `connector.client.config.override.policy` of a worker.

| policy | connectors may override |
|---|---|
| `All` (default) | all settings |
| `None` | none |
| `Principal` | `sasl.jaas.config`, `sasl.mechanism` and `security.protocol` |
| `Allowlist` | the settings in `connector.client.config.override.allowlist` |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from moldau.pipelines.connect.data.errors import ConfigError, ConnectError

POLICY: Final = "connector.client.config.override.policy"
ALLOWLIST: Final = "connector.client.config.override.allowlist"
_PRODUCER, _CONSUMER, _ADMIN = "producer.override.", "consumer.override.", "admin.override."
_PACKAGE: Final = "org.apache.kafka.connect.connector.policy."
_CLASS: Final = "ConnectorClientConfigOverridePolicy"
_PRINCIPAL: Final = frozenset({"sasl.jaas.config", "sasl.mechanism", "security.protocol"})


@dataclass(frozen=True, slots=True)
class OverridePolicy:
    name: str = "All"
    #: The settings that connectors may override; None: all.
    allowed: frozenset[str] | None = None

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> OverridePolicy:
        """Read the policy of a worker; `ConfigError` if it is unknown."""
        given = properties.get(POLICY, "").strip() or "All"
        name = given.removeprefix(_PACKAGE).removesuffix(_CLASS)
        listed = frozenset(each.strip() for each in properties.get(ALLOWLIST, "").split(",") if each.strip())
        policies = {"All": None, "None": frozenset[str](), "Principal": _PRINCIPAL, "Allowlist": listed}
        if name not in policies:
            raise ConfigError.invalid(POLICY, given, f"Known policies are {', '.join(policies)}.")
        return cls(name, policies[name])

    def errors(self, config: Mapping[str, Any], *, is_source: bool) -> dict[str, str]:
        """Return the messages for overrides of clients that a connector uses, by their names."""
        if self.allowed is None:
            return {}
        prefixes = _used_prefixes(config, is_source)
        given = {
            name: name.removeprefix(prefix)
            for prefix in prefixes
            for name in config
            if name.startswith(prefix)
        }
        return {
            name: f"The '{self.name}' policy does not allow '{setting}' to be overridden in the connector "
            "configuration."
            for name, setting in given.items()
            if setting not in self.allowed
        }

    def check(self, config: Mapping[str, Any], *, is_source: bool) -> None:
        """Raise `ConnectError` if a connector that exists overrides what it may not."""
        errors = self.errors(config, is_source=is_source)
        if errors:
            raise ConnectError(f"Client Config Overrides not allowed {' '.join(errors.values())}")


def _used_prefixes(config: Mapping[str, Any], is_source: bool) -> list[str]:
    if is_source:
        creates = any(name.startswith("topic.creation.") for name in config)
        return [_PRODUCER, *([_ADMIN] if creates else [])]
    letters = str(config.get("errors.deadletterqueue.topic.name") or "").strip()
    return [_CONSUMER, *([_PRODUCER, _ADMIN] if letters else [])]
