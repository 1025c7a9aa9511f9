"""Config providers: secrets that configurations name but do not contain, as in Apache Kafka.

A value may contain `${provider:path:key}`. The configuration declares the providers:

    config.providers=env,file
    config.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider
    config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider
    config.providers.file.param.allowed.paths=/etc/secrets

| provider | variable | value |
|---|---|---|
| `EnvVarConfigProvider` | `${env:NAME}` | environment variable; only names that match `allowlist.pattern` |
| `FileConfigProvider` | `${file:PATH:KEY}` | a key of a properties file |
| `DirectoryConfigProvider` | `${dir:FOLDER:FILE}` | the content of a file in a folder |

Used by nodes, command-line tools, Connect and mirrors. Resolved values stay in memory.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import quote, quote_plus

from moldau.config.properties import PropertiesError, load_properties

PREFIX: Final = "config.providers"
_VARIABLE: Final = re.compile(r"\$\{([^}]*?):(([^}]*?):)?([^}]*?)\}")
_HIDDEN: Final = "[hidden]"
_MAX_SECRETS: Final = 1000
#: A shorter text would hide parts of other words.
_MIN_SECRET_LENGTH: Final = 3
_KAFKA: Final = "org.apache.kafka.common.config.provider."


class Provider(Protocol):
    def get(self, path: str, key: str) -> str | None:
        """Return a value, or None if there is none; `ValueError` if it cannot be read."""
        ...


class EnvironmentProvider:
    def __init__(self, settings: Mapping[str, str]) -> None:
        pattern = settings.get("allowlist.pattern")
        self._allowed = re.compile(pattern) if pattern else None

    def get(self, path: str, key: str) -> str | None:
        if path:
            raise ValueError(f"Environment variables have no path, but got {path}.")
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
            raise ValueError(f"Could not read properties from file {path}: {error}") from None


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
            raise ValueError(f"Could not read file {key} of {path}: {error}") from None


_PROVIDERS: Final[Mapping[str, Callable[[Mapping[str, str]], Provider]]] = {
    f"{_KAFKA}EnvVarConfigProvider": EnvironmentProvider,
    f"{_KAFKA}FileConfigProvider": FileProvider,
    f"{_KAFKA}DirectoryConfigProvider": DirectoryProvider,
}


class ConfigProviders:
    """The providers that a configuration declares, and the secrets that were read."""

    def __init__(
        self, declared: Mapping[str, str], error: Callable[[str], Exception], *, strict: bool = False
    ) -> None:
        """Create the providers; a wrong one raises `error`.

        Kafka leaves a variable without a value as it is; `strict` raises `error` instead.
        """
        self._error = error
        self._strict = strict
        self._providers = {name: self._create(name, declared) for name in _names(declared)}
        self._secrets: dict[str, None] = {}

    def resolve(self, config: Mapping[str, str]) -> dict[str, str]:
        """Return a copy with the values of all variables; raise `error` if one cannot be read."""
        return {
            name: value if is_provider_setting(name) else self._resolve(value)
            for name, value in config.items()
        }

    def hide(self, text: str) -> str:
        """Return a text, such as a trace, without the secrets that were read."""
        return hide(text, self._secrets)

    def secrets_in(self, config: Mapping[str, str]) -> list[str]:
        """Return the secrets that were read and that values of a resolved configuration contain."""
        return [each for each in self._secrets if any(each in value for value in config.values())]

    def _resolve(self, value: str) -> str:
        if not self._providers or not isinstance(value, str) or "${" not in value:
            return value
        return _VARIABLE.sub(self._replacement, value)

    def _replacement(self, match: re.Match[str]) -> str:
        provider = self._providers.get(match[1])
        if provider is None:
            return match[0]
        try:
            found = provider.get(match[3] or "", match[4])
        except ValueError as reason:
            raise self._error(str(reason)) from None
        if found is None:
            if self._strict:
                raise self._error(f"{match[0]} has no value: config provider {match[1]} does not find it.")
            return match[0]
        self._remember(found)
        return found

    def _remember(self, secret: str) -> None:
        self._secrets.pop(secret, None)
        self._secrets[secret] = None
        if len(self._secrets) > _MAX_SECRETS:
            del self._secrets[next(iter(self._secrets))]

    def _create(self, name: str, declared: Mapping[str, str]) -> Provider:
        setting = f"{PREFIX}.{name}.class"
        class_name = declared.get(setting, "").strip()
        provider = _PROVIDERS.get(class_name) or _PROVIDERS.get(f"{_KAFKA}{class_name}")
        if provider is None:
            raise self._error(
                f"Invalid value {class_name or 'null'} for configuration {setting}: "
                f"Class could not be found. Known are: {', '.join(_PROVIDERS)}"
            )
        prefix = f"{PREFIX}.{name}.param."
        given = {key.removeprefix(prefix): value for key, value in declared.items() if key.startswith(prefix)}
        try:
            return provider(given)
        except re.error as reason:
            message = f"Invalid value for configuration {prefix}allowlist.pattern: {reason}"
            raise self._error(message) from None


def resolved(
    config: Mapping[str, str], error: Callable[[str], Exception], *, strict: bool = False
) -> dict[str, str]:
    """Return the configuration with the values of its own providers."""
    if PREFIX not in config:
        return dict(config)
    return ConfigProviders(config, error, strict=strict).resolve(config)


def hide(text: str, secrets: Iterable[str]) -> str:
    """Return a text without secrets, as they are and as URLs and JSON contain them."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _MIN_SECRET_LENGTH:
            for form in _forms(secret):
                text = text.replace(form, _HIDDEN)
    return text


@lru_cache(_MAX_SECRETS)
def _forms(secret: str) -> tuple[str, ...]:
    quoted = (quote(secret, safe=""), quote(secret), quote_plus(secret))
    return tuple(dict.fromkeys((secret, json.dumps(secret, ensure_ascii=False)[1:-1], *quoted)))


def is_provider_setting(name: str) -> bool:
    return name == PREFIX or name.startswith(f"{PREFIX}.")


def has_variable(value: str | None) -> bool:
    return value is not None and _VARIABLE.search(value) is not None


def _names(declared: Mapping[str, str]) -> list[str]:
    return [name.strip() for name in declared.get(PREFIX, "").split(",") if name.strip()]
