"""Config providers: `${env:NAME}`, `${file:path:key}` and `${dir:path:file}` in values.

`config.providers` names those in use, and `config.providers.NAME.class` their classes, as in Kafka. Resolved
values are kept in memory only.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from moldau.config.properties import PropertiesError, load_properties
from moldau.pipelines.mirror.config.definitions import MirrorConfigError

_REFERENCE = re.compile(r"\$\{([^}:]*):(?:([^}:]*):)?([^}]*)\}")
_PREFIX = "config.providers"


def is_provider_setting(name: str) -> bool:
    return name == _PREFIX or name.startswith(f"{_PREFIX}.")


def resolve(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties with the references of their config providers replaced."""
    providers = {name: _provider(name, properties) for name in _names(properties)}

    def replace(match: re.Match[str]) -> str:
        provider = providers.get(match[1])
        return match[0] if provider is None else provider(match[2] or "", match[3])

    return {
        name: value if is_provider_setting(name) else _REFERENCE.sub(replace, value)
        for name, value in properties.items()
    }


def _names(properties: Mapping[str, str]) -> list[str]:
    return [name.strip() for name in properties.get(_PREFIX, "").split(",") if name.strip()]


def _provider(name: str, properties: Mapping[str, str]) -> Callable[[str, str], str]:
    setting = f"{_PREFIX}.{name}.class"
    class_name = properties.get(setting, "").rpartition(".")[2]
    if class_name not in _PROVIDERS:
        known = ", ".join(_PROVIDERS)
        raise MirrorConfigError(f"{setting} must be one of {known}, not {class_name or 'missing'}")
    return _PROVIDERS[class_name]


def _environment(path: str, key: str) -> str:
    if key not in os.environ:
        raise MirrorConfigError(f"${{env:{key}}}: the environment variable {key} is not set")
    return os.environ[key]


def _file(path: str, key: str) -> str:
    try:
        values = load_properties(path)
    except (OSError, PropertiesError) as error:
        raise MirrorConfigError(f"${{file:{path}:{key}}}: {error}") from error
    if key not in values:
        raise MirrorConfigError(f"${{file:{path}:{key}}}: the file has no property {key}")
    return values[key]


def _directory(path: str, key: str) -> str:
    if "/" in key or key in ("", ".", ".."):
        raise MirrorConfigError(f"${{dir:{path}:{key}}}: give the name of a file in the folder")
    try:
        return (Path(path) / key).read_text(encoding="utf-8")
    except OSError as error:
        raise MirrorConfigError(f"${{dir:{path}:{key}}}: {error.strerror}") from error


_PROVIDERS: dict[str, Callable[[str, str], str]] = {
    "EnvVarConfigProvider": _environment,
    "FileConfigProvider": _file,
    "DirectoryConfigProvider": _directory,
}
