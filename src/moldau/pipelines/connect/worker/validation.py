"""Validates the configuration of a connector: the answer of the REST API, setting by setting.

The answer has Kafka Connect's form: for every setting its definition and its value with recommended values
and errors. Beside the settings of all connectors it covers the connector's own, those of transformations,
predicates and converters, and overrides of clients.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from moldau.config.providers import has_variable
from moldau.pipelines.connect.config.connector import (
    AliasKind,
    ConverterDefaults,
    Enrichment,
    enrich,
    sink_definition,
    source_definition,
)
from moldau.pipelines.connect.config.definition import (
    ConfigDef,
    ConfigKey,
    ConfigType,
    ConfigValue,
    convert_to_string,
)
from moldau.pipelines.connect.config.misspellings import message, misspelt
from moldau.pipelines.connect.config.worker import WorkerSettings
from moldau.pipelines.connect.data.errors import ConfigError, ConnectError
from moldau.pipelines.connect.plugins import Plugins, PluginType
from moldau.pipelines.connect.sdk import Connector, ExactlyOnceSupport, SourceConnector
from moldau.pipelines.connect.worker.task.conversion import DEFAULT_HEADER_CONVERTER

_CONVERTERS: Final = {
    "header": PluginType.HEADER_CONVERTER,
    "key": PluginType.CONVERTER,
    "value": PluginType.CONVERTER,
}


_OF_ALL: Final = frozenset({*source_definition().keys, *sink_definition().keys})


@dataclass(frozen=True, slots=True)
class _Recommended:
    """Fixed recommendations; a setting that depends on another is shown only with it."""

    values: tuple[str, ...]
    needs: str | None = None

    def valid_values(self, name: str, parsed: Mapping[str, Any]) -> list[Any]:
        return list(self.values) if self.visible(name, parsed) else []

    def visible(self, name: str, parsed: Mapping[str, Any]) -> bool:
        return self.needs is None or parsed.get(self.needs) is not None


class Validation:
    """Validates configurations with the plugins and settings of a worker."""

    def __init__(self, plugins: Plugins, settings: WorkerSettings) -> None:
        self._plugins = plugins
        self._worker = settings.properties
        self._overrides = settings.overrides
        self._exactly_once = settings.exactly_once

    def validate(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer for resolved properties; `ConnectError` if the connector cannot be loaded."""
        name = properties.get("connector.class")
        if name is None:
            # The values may be secrets.
            raise ConnectError(f"Connector config {sorted(properties)} contains no connector type")
        connector = self._plugins.connector(name)
        is_source = isinstance(connector, SourceConnector)
        enrichment = self._enrichment(connector, properties)
        definition = source_definition(enrichment) if is_source else sink_definition(enrichment)
        for kind in self._alias_kinds():
            enrich(definition, kind, properties)
        values = definition.validate(properties)
        _forget_unknown_classes(definition, values)
        if isinstance(connector, SourceConnector):
            self._check_source(connector, properties, values)
        else:
            _check_sink(properties, values)
        for each, error in self._overrides.errors(properties, is_source=is_source).items():
            values.setdefault(each, ConfigValue(each, properties[each])).errors.append(error)
        for each in (each for each, value in properties.items() if value is None):
            values.setdefault(each, ConfigValue(each)).errors.append(
                "Null value can not be supplied as the configuration value."
            )
        for each, meant in misspelt(properties, self._known(connector, definition, properties)).items():
            values.setdefault(each, ConfigValue(each)).errors.append(message(each, meant))
        converters = self._converters(properties, values)
        return _merged(name, [_infos(definition, connector, properties, values), *converters])

    def _known(self, connector: Connector, definition: ConfigDef, properties: Mapping[str, Any]) -> set[str]:
        """Return all names with a meaning; those of sinks in a source, and the reverse, are no mistakes."""
        known = {*definition.keys, *connector.config.keys, *_OF_ALL}
        for kind, type in _CONVERTERS.items():
            chosen = properties.get(f"{kind}.converter")
            plugin = None if chosen is None else self._plugins.find(chosen, type)
            if plugin is not None:
                known.update(f"{kind}.converter.{each}" for each in plugin.create().config.keys)
        return known

    def definition(self, name: str) -> list[dict[str, Any]] | None:
        """Return the settings of any plugin; None if it is unknown."""
        plugin = self._plugins.find(name)
        if plugin is None:
            return None
        own = plugin.create().config
        keys = dict(own.keys)
        if plugin.type in (PluginType.SOURCE, PluginType.SINK):
            enrichment = Enrichment(connector_version=plugin.version)
            is_source = plugin.type is PluginType.SOURCE
            base = source_definition(enrichment) if is_source else sink_definition(enrichment)
            keys = {**keys, **{each: key for each, key in base.keys.items() if each not in keys}}
        return [_key_info(key) for key in keys.values()]

    def _enrichment(self, connector: Connector, properties: Mapping[str, Any]) -> Enrichment:
        return Enrichment(
            connector_version=connector.version,
            versions=_Recommended((connector.version,), "connector.class"),
            key=self._converter_defaults("key", properties),
            value=self._converter_defaults("value", properties),
            header=self._converter_defaults("header", properties),
        )

    def _converter_defaults(self, kind: str, properties: Mapping[str, Any]) -> ConverterDefaults:
        setting = f"{kind}.converter"
        default = self._worker.get(setting) or (DEFAULT_HEADER_CONVERTER if kind == "header" else None)
        chosen = properties.get(setting) or default
        plugin = None if chosen is None else self._plugins.find(chosen, _CONVERTERS[kind])
        names = tuple(each.name for each in self._plugins.of(_CONVERTERS[kind]))
        version = None if plugin is None else plugin.version
        return ConverterDefaults(
            name=default,
            version=version,
            validator=_KnownClass(self._plugins, _CONVERTERS[kind]),
            recommender=_Recommended(names),
            versions=_Recommended(() if version is None else (version,), setting),
        )

    def _alias_kinds(self) -> list[AliasKind]:
        return [
            self._alias_kind("transforms", "Transforms", "transformation", PluginType.TRANSFORMATION),
            self._alias_kind("predicates", "Predicates", "predicate", PluginType.PREDICATE),
        ]

    def _alias_kind(self, setting: str, group: str, kind: str, type: PluginType) -> AliasKind:
        def definition_of(name: str, chosen: str) -> ConfigDef:
            plugin = self._plugins.find(chosen, type)
            if plugin is None:
                raise ConfigError.invalid(name, chosen, f"Class {chosen} could not be found.")
            definition: ConfigDef = plugin.create().config
            return definition

        def version_of(chosen: str) -> str | None:
            plugin = self._plugins.find(chosen, type)
            return None if plugin is None else plugin.version

        return AliasKind(
            setting=setting,
            group=group,
            kind=kind,
            base=kind.capitalize(),
            definition_of=definition_of,
            recommender=_Recommended(tuple(each.name for each in self._plugins.of(type))),
            version_of=version_of,
            versions=_Recommended(()),
        )

    def _check_source(
        self, connector: SourceConnector, properties: Mapping[str, Any], values: dict[str, ConfigValue]
    ) -> None:
        boundary = values["transaction.boundary"]
        if self._exactly_once and str(boundary.value).lower() != "poll" and not boundary.errors:
            boundary.errors.append(f"The transaction boundary {boundary.value} is not implemented: use poll.")
        topic = values["offsets.storage.topic"]
        if topic.value is not None and topic.value != self._worker.get("offset.storage.topic"):
            topic.errors.append(
                "A topic of the connector's own for offsets is not implemented: leave it out."
            )
        if self._exactly_once:
            self._check_bootstrap(properties, values)
        level = values["exactly.once.support"]
        if str(level.value).lower() != "required":
            return
        if not self._exactly_once:
            level.errors.append("This worker does not have exactly-once source support enabled.")
        elif connector.exactly_once_support(properties) is not ExactlyOnceSupport.SUPPORTED:
            level.errors.append(
                "The connector does not support exactly-once semantics with the provided configuration."
            )

    def _check_bootstrap(self, properties: Mapping[str, Any], values: dict[str, ConfigValue]) -> None:
        """Refuse records in another cluster than the offsets, which share their transactions."""
        name = "producer.override.bootstrap.servers"
        chosen = properties.get(name) or self._worker.get("producer.bootstrap.servers")
        if chosen and _servers(chosen) != _servers(self._worker["bootstrap.servers"]):
            values.setdefault(name, ConfigValue(name, chosen)).errors.append(
                "A worker with exactly-once source support writes records to its own cluster only, because "
                "their offsets are part of the same transactions."
            )

    def _converters(
        self, properties: Mapping[str, Any], values: Mapping[str, ConfigValue]
    ) -> list[dict[str, Any]]:
        """Validate the settings of converters that the connector names itself."""
        result = []
        for kind, type in _CONVERTERS.items():
            setting = f"{kind}.converter"
            chosen = properties.get(setting)
            if chosen is None or values[setting].errors:
                continue
            plugin = self._plugins.find(chosen, type)
            if plugin is not None:
                own = {
                    each.removeprefix(f"{setting}."): value
                    for each, value in properties.items()
                    if each.startswith(f"{setting}.")
                }
                definition: ConfigDef = plugin.create().config
                result.append(_prefixed(definition, {"converter.type": kind, **own}, f"{setting}."))
        return result


def _servers(text: str) -> set[str]:
    return {each.strip() for each in text.split(",") if each.strip()}


@dataclass(frozen=True, slots=True)
class _KnownClass:
    plugins: Plugins
    type: PluginType

    def __call__(self, name: str, value: Any) -> None:
        if value is not None and self.plugins.find(value, self.type) is None:
            raise ConfigError.invalid(name, value, f"Class {value} could not be found.")


def _forget_unknown_classes(definition: ConfigDef, values: Mapping[str, ConfigValue]) -> None:
    """The value of a class that does not exist is null, as in Kafka Connect, which cannot load it."""
    for name, value in values.items():
        key = definition.keys.get(name)
        if key is not None and key.type is ConfigType.CLASS and value.errors:
            value.value = None


def _check_sink(properties: Mapping[str, Any], values: dict[str, ConfigValue]) -> None:
    topics, pattern = properties.get("topics") or "", properties.get("topics.regex") or ""
    has_topics, has_pattern = bool(topics.strip()), bool(pattern.strip())
    error = None
    if has_topics and has_pattern:
        error = "topics and topics.regex are mutually exclusive options, but both are set."
    elif not has_topics and not has_pattern:
        error = "Must configure one of topics or topics.regex"
    if error is not None:
        values["topics"].errors.append(error)
        values["topics.regex"].errors.append(error)
    _check_dead_letters(properties, values, topics if has_topics else "", pattern if has_pattern else "")


def _check_dead_letters(
    properties: Mapping[str, Any], values: dict[str, ConfigValue], topics: str, pattern: str
) -> None:
    letters = (properties.get("errors.deadletterqueue.topic.name") or "").strip()
    if not letters:
        return
    names = [each.strip() for each in topics.split(",") if each.strip()]
    if letters in names:
        values["topics"].errors.append(
            f"The DLQ topic '{letters}' may not be included in the list of topics "
            f"('topics=[{', '.join(names)}]') consumed by the connector"
        )
    if pattern and not values["topics.regex"].errors and re.fullmatch(pattern, letters):
        values["topics.regex"].errors.append(
            f"The DLQ topic '{letters}' may not be matched by the regex for the topics "
            f"('topics.regex={pattern}') consumed by the connector"
        )


def _infos(
    definition: ConfigDef,
    connector: Connector,
    properties: Mapping[str, Any],
    values: Mapping[str, ConfigValue],
) -> dict[str, Any]:
    """Return the settings of all connectors and the connector's own; the latter replace the former."""
    own = connector.config
    keys = {**definition.keys, **own.keys}
    found = {**values, **connector.validate(properties)}
    unknown = [each for each in found if each not in keys]
    configs = [{"definition": None, "value": _value_info(found[each], None)} for each in unknown]
    configs += [
        {"definition": _key_info(key), "value": _value_info(found[each], key.type)}
        for each, key in keys.items()
    ]
    return {
        "error_count": sum(len(each.errors) for each in found.values()),
        "groups": list(dict.fromkeys([*definition.groups, *own.groups])),
        "configs": configs,
    }


def _prefixed(definition: ConfigDef, properties: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    values = definition.validate(properties)
    return {
        "error_count": sum(bool(each.errors) for each in values.values()),
        "groups": definition.groups,
        "configs": [
            {
                "definition": _key_info(definition.keys[name], prefix),
                "value": _value_info(value, definition.keys[name].type, prefix),
            }
            for name, value in values.items()
            if name in definition.keys
        ],
    }


def _merged(name: str, parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "name": name,
        "error_count": sum(each["error_count"] for each in parts),
        "groups": list(dict.fromkeys(group for each in parts for group in each["groups"])),
        "configs": [config for each in parts for config in each["configs"]],
    }


def _key_info(key: ConfigKey, prefix: str = "") -> dict[str, Any]:
    return {
        "name": prefix + key.name,
        "type": key.type.name,
        "required": not key.has_default,
        "default_value": convert_to_string(key.default, key.type) if key.has_default else None,
        "importance": key.importance.name,
        "documentation": key.documentation,
        "group": key.group,
        "order_in_group": key.order_in_group,
        "width": key.width.name,
        "display_name": key.display_name,
        "dependents": list(key.dependents),
    }


def _value_info(value: ConfigValue, type: ConfigType | None, prefix: str = "") -> dict[str, Any]:
    entry = ConfigType.STRING if type is ConfigType.LIST else type
    return {
        "name": prefix + value.name,
        "value": convert_to_string(value.value, type),
        "recommended_values": [convert_to_string(each, entry) for each in value.recommended_values],
        "errors": value.errors,
        "visible": value.visible,
    }


def hide_secrets(infos: Mapping[str, Any], properties: Mapping[str, Any], hide: Callable[[str], str]) -> None:
    """Show the variables of a configuration instead of their values."""
    for each in infos["configs"]:
        value = each["value"]
        raw = properties.get(value["name"])
        if isinstance(raw, str) and has_variable(raw):
            value["value"] = raw
        value["errors"] = [hide(error) for error in value["errors"]]


def errors_of(infos: Mapping[str, Any]) -> list[str]:
    """Return the messages of all errors in an answer."""
    return [error for each in infos["configs"] for error in each["value"]["errors"]]
