"""Config providers: secrets that configurations name but do not contain.

A value may contain `${provider:path:key}`. Worker settings declare providers:

    config.providers=env,file
    config.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider
    config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider
    config.providers.file.param.allowed.paths=/etc/secrets

| provider | variable | value |
|---|---|---|
| `EnvVarConfigProvider` | `${env:NAME}` | environment variable; only names that match `allowlist.pattern` |
| `FileConfigProvider` | `${file:PATH:KEY}` | a key of a properties file |
| `DirectoryConfigProvider` | `${dir:FOLDER:FILE}` | the content of a file in a folder |

Only the resolved copy that a connector or task receives contains secrets; topics, REST answers and logs keep
the variables.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Protocol

from moldau.config.properties import PropertiesError, load_properties
from moldau.pipelines.connect.data.errors import ConfigError

_VARIABLE: Final = re.compile(r"\$\{([^}]*?):(([^}]*?):)?([^}]*?)\}")
_PREFIX: Final = "config.providers"
_HIDDEN: Final = "[hidden]"
_MOST_SECRETS: Final = 1000
#: A shorter text would hide parts of other words.
_SHORTEST_SECRET: Final = 3
_KAFKA: Final = "org.apache.kafka.common.config.provider."


class Provider(Protocol):
    def get(self, path: str, key: str) -> str | None:
        """Return a value; None if there is none, which leaves the variable as it is."""
        ...


class EnvironmentProvider:
    def __init__(self, settings: Mapping[str, str]) -> None:
        pattern = settings.get("allowlist.pattern")
        self._allowed = re.compile(pattern) if pattern else None

    def get(self, path: str, key: str) -> str | None:
        if path:
            raise ConfigError(f"Environment variables have no path, but got {path}.")
        if self._allowed is not None and not self._allowed.fullmatch(key):
            return None
        return os.environ.get(key)


class _AllowedPaths:
    """The folders and files that may be read (`allowed.paths`); any if it is not set."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        texts = [each.strip() for each in settings.get("allowed.paths", "").split(",")]
        self._paths = [Path(each).resolve() for each in texts if each]

    def checked(self, path: str) -> Path | None:
        resolved = Path(path).resolve()
        if self._paths and not any(resolved.is_relative_to(each) for each in self._paths):
            return None
        return resolved


class FileProvider:
    def __init__(self, settings: Mapping[str, str]) -> None:
        self._allowed = _AllowedPaths(settings)

    def get(self, path: str, key: str) -> str | None:
        allowed = self._allowed.checked(path) if path else None
        if allowed is None:
            return None
        try:
            return load_properties(allowed).get(key)
        except (OSError, PropertiesError) as error:
            raise ConfigError(f"Could not read properties from file {path}: {error}") from None


class DirectoryProvider:
    def __init__(self, settings: Mapping[str, str]) -> None:
        self._allowed = _AllowedPaths(settings)

    def get(self, path: str, key: str) -> str | None:
        allowed = self._allowed.checked(path) if path else None
        if allowed is None or Path(key).name != key:
            return None
        try:
            return (allowed / key).read_text()
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"Could not read file {key} of {path}: {error}") from None


_PROVIDERS: Final[Mapping[str, Callable[[Mapping[str, str]], Provider]]] = {
    f"{_KAFKA}EnvVarConfigProvider": EnvironmentProvider,
    f"{_KAFKA}FileConfigProvider": FileProvider,
    f"{_KAFKA}DirectoryConfigProvider": DirectoryProvider,
}


class ConfigProviders:
    """The providers of a worker."""

    def __init__(self, worker: Mapping[str, str]) -> None:
        """Create the providers that the worker's settings declare; `ConfigError` names a wrong one."""
        names = [each.strip() for each in worker.get(_PREFIX, "").split(",") if each.strip()]
        self._providers: dict[str, Provider] = {name: _create(name, worker) for name in names}
        #: The values that were read, so that they can be hidden.
        self._secrets: dict[str, None] = {}

    def resolve(self, config: Mapping[str, str]) -> dict[str, str]:
        """Return a copy of which all variables are replaced; `ConfigError` if one cannot be read."""
        return {name: self._resolve(value) for name, value in config.items()}

    def _resolve(self, value: str) -> str:
        if not self._providers or not isinstance(value, str) or "${" not in value:
            return value
        return _VARIABLE.sub(self._replacement, value)

    def _replacement(self, match: re.Match[str]) -> str:
        provider = self._providers.get(match[1])
        found = None if provider is None else provider.get(match[3] or "", match[4])
        if found is None:
            return match[0]
        self._secrets.pop(found, None)
        self._secrets[found] = None
        if len(self._secrets) > _MOST_SECRETS:
            del self._secrets[next(iter(self._secrets))]
        return found

    def hide(self, text: str) -> str:
        """Return a text, such as a trace, without the secrets that were read."""
        for secret in sorted(self._secrets, key=len, reverse=True):
            if len(secret) >= _SHORTEST_SECRET:
                text = text.replace(secret, _HIDDEN)
        return text


def has_variable(value: str | None) -> bool:
    return value is not None and _VARIABLE.search(value) is not None


def with_variables(raw: Mapping[str, str], resolved: Mapping[str, str]) -> dict[str, str]:
    """Return task settings with the variables of the connector's settings instead of their values."""
    return {name: raw[name] if has_variable(raw.get(name)) else value for name, value in resolved.items()}


def _create(name: str, worker: Mapping[str, str]) -> Provider:
    setting = f"{_PREFIX}.{name}.class"
    class_name = worker.get(setting, "").strip()
    provider = _PROVIDERS.get(class_name) or _PROVIDERS.get(f"{_KAFKA}{class_name}")
    if provider is None:
        known = ", ".join(_PROVIDERS)
        raise ConfigError.invalid(
            setting, class_name or None, f"Class could not be found. Known are: {known}"
        )
    prefix = f"{_PREFIX}.{name}.param."
    settings = {each.removeprefix(prefix): value for each, value in worker.items() if each.startswith(prefix)}
    return provider(settings)
