"""Entry points: the proxy as a service of `moldau.http.run`, and its settings from properties."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from moldau.rest.service import RestProxy
from moldau.rest.settings import RestSettings

DEFAULT_PORT: Final = 8082


def create_app(properties: Mapping[str, str], version: str) -> RestProxy:
    """Create the proxy from properties by Confluent's names; `ConfigError` names an invalid one."""
    return RestProxy(RestSettings.from_properties(properties), version)
