"""Entry points: the proxy as a service of `moldau.http.run`, and its settings from properties."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from moldau.http.without_effect import warn_of_settings
from moldau.rest.service import RestProxy
from moldau.rest.settings import RestSettings

DEFAULT_PORT: Final = 8082
_QUOTAS: Final = "limit the requests of users with Kafka's quotas"
_WITHOUT_EFFECT: Final = {
    "kafka.rest.resource.extension.class": "classes of Java are not loaded; see authentication.*",
    "rate.limit.enable": _QUOTAS,
    "api.v3.produce.rate.limit.enabled": _QUOTAS,
    "api.v3.produce.request.size.limit.max.bytes": "http.request.max.bytes limits bodies and records",
}


def create_app(properties: Mapping[str, str], version: str) -> RestProxy:
    """Create the proxy from properties by Confluent's names; `ConfigError` names an invalid one."""
    warn_of_settings(properties, _WITHOUT_EFFECT)
    return RestProxy(RestSettings.from_properties(properties), version)
