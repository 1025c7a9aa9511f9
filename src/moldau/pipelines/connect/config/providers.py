"""Variables of config providers in the settings of connectors (`moldau.config.providers`).

Only the resolved copy that a connector or task receives contains secrets; topics, REST answers and logs keep
the variables.
"""

from __future__ import annotations

from collections.abc import Mapping

from moldau.config.providers import ConfigProviders, has_variable
from moldau.pipelines.connect.data.errors import ConfigError


def worker_providers(worker: Mapping[str, str]) -> ConfigProviders:
    """Create the providers that the worker's settings declare; `ConfigError` names a wrong one."""
    return ConfigProviders(worker, ConfigError)


def with_variables(raw: Mapping[str, str], resolved: Mapping[str, str]) -> dict[str, str]:
    """Return task settings with the variables of the connector's settings instead of their values."""
    return {name: raw[name] if has_variable(raw.get(name)) else value for name, value in resolved.items()}
