"""The settings that the registry's converters share, by Confluent's names.

A converter hands the settings of connections (`basic.auth.*`, `ssl.*`, …) to the registry's client, those of
schemas and subjects to the rules of serializers, and keeps those of the mapping for itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from moldau.client.registry.serdes.settings import PROPERTIES
from moldau.pipelines.connect.config.definition import (
    NO_DEFAULT,
    ConfigDef,
    ConfigType,
    Importance,
    Password,
)
from moldau.pipelines.connect.converters.interface import converter_config, converter_type
from moldau.pipelines.connect.data.errors import ConfigError

CACHE_SIZE: Final = "schemas.cache.config"
IGNORE_DEFAULT: Final = "ignore.default.for.nullables"
SCRUB: Final = "scrub.invalid.names"
FLATTEN_SINGLETONS: Final = "flatten.singleton.unions"
_HIGH, _MEDIUM, _LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
_BOOLEAN, _STRING, _INT = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT
_STRATEGY: Final = "TopicNameStrategy"
#: Name, type, default, importance, documentation.
_COMMON: Final = (
    ("schema.registry.url", ConfigType.LIST, NO_DEFAULT, _HIGH, "URLs of the schema registry."),
    ("auto.register.schemas", _BOOLEAN, True, _MEDIUM, "Register the schemas of records."),
    ("normalize.schemas", _BOOLEAN, False, _MEDIUM, "Normalize schemas when they are registered."),
    ("use.schema.id", _INT, -1, _LOW, "Id of the schema to write with; -1: that of the record."),
    ("use.latest.version", _BOOLEAN, False, _LOW, "Write and read with the latest version of the subject."),
    ("latest.compatibility.strict", _BOOLEAN, True, _LOW, "Require that the latest version fits the record."),
    ("key.subject.name.strategy", _STRING, _STRATEGY, _MEDIUM, "How the subjects of keys are named."),
    ("value.subject.name.strategy", _STRING, _STRATEGY, _MEDIUM, "How the subjects of values are named."),
    ("schema.id.serializer", _STRING, "PREFIX", _LOW, "Where the id is written: PREFIX or HEADER."),
    ("schema.id.deserializer", _STRING, "DUAL", _LOW, "Where the id is read: DUAL or PREFIX."),
    ("basic.auth.credentials.source", _STRING, "URL", _MEDIUM, "URL, USER_INFO or SASL_INHERIT."),
    ("basic.auth.user.info", ConfigType.PASSWORD, "", _MEDIUM, "User and password, as user:password."),
    ("bearer.auth.credentials.source", _STRING, None, _MEDIUM, "STATIC_TOKEN or OAUTHBEARER."),
    ("bearer.auth.token", ConfigType.PASSWORD, None, _MEDIUM, "Token of STATIC_TOKEN."),
    ("max.schemas.per.subject", _INT, 1000, _LOW, "Number of cached answers of the registry."),
    (CACHE_SIZE, _INT, 1000, _LOW, "Number of cached schemas."),
    ("generalized.sum.type.support", _BOOLEAN, False, _MEDIUM, "Must be false: not implemented."),
    (IGNORE_DEFAULT, _BOOLEAN, False, _MEDIUM, "Write null instead of the default for null."),
)
#: Settings that concern neither the client nor the serializers, or that the converter reads itself.
_NOT_OF_CLIENT: Final = frozenset(
    {"generalized.sum.type.support", "converter.type", IGNORE_DEFAULT, CACHE_SIZE}
)


def registry_config(*own: tuple[str, ConfigType, Any, Importance, str]) -> ConfigDef:
    """Return the definition of a registry's converter with settings of its own."""
    definition = converter_config()
    for name, kind, default, importance, text in (*_COMMON, *own):
        definition.define(name, kind, default, importance, text)
    return definition


def boolean(name: str, default: bool, text: str) -> tuple[str, ConfigType, Any, Importance, str]:
    return (name, _BOOLEAN, default, _MEDIUM, text)


def parsed(definition: ConfigDef, config: Mapping[str, Any], is_key: bool) -> dict[str, Any]:
    """Return the typed settings; `ConfigError` for one that is not implemented."""
    settings = definition.parse(converter_type(config, is_key))
    if settings["generalized.sum.type.support"]:
        raise ConfigError("generalized.sum.type.support=true is not implemented: leave it out.")
    return settings


def client_properties(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties of the registry's client."""
    return {
        name: each.value if isinstance(each, Password) else each
        for name, each in config.items()
        if name not in PROPERTIES and name not in _NOT_OF_CLIENT and each not in (None, "")
    }


def serializer_properties(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties of subjects and schemas; empty ones are not set."""
    return {name: each for name, each in config.items() if name in PROPERTIES and each not in (None, "")}


def given(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that the registry's client needs in their typed form."""
    return {name: settings[name] for name in ("schema.registry.url", "max.schemas.per.subject")}
