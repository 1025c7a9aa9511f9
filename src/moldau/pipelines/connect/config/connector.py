"""The settings that all connectors share, those of all sources and of all sinks.

Names, types, defaults and groups are Kafka Connect's. Settings of transformations, predicates and groups of
topics depend on the configuration itself: each alias adds its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from moldau.pipelines.connect.config.definition import (
    NO_DEFAULT,
    ConfigDef,
    ConfigType,
    Importance,
    NonEmptyString,
    NonEmptyStringWithoutControlChars,
    Range,
    Recommender,
    Validator,
    ValidString,
    Width,
)
from moldau.pipelines.connect.data.errors import ConfigError

COMMON: Final = "Common"
TRANSFORMS: Final = "Transforms"
PREDICATES: Final = "Predicates"
ERRORS: Final = "Error Handling"
EXACTLY_ONCE: Final = "Exactly Once Support"
TOPIC_CREATION: Final = "Topic Creation"

_HIGH, _MEDIUM, _LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
_STRING, _BOOLEAN, _LONG = ConfigType.STRING, ConfigType.BOOLEAN, ConfigType.LONG


@dataclass(frozen=True, slots=True)
class ConverterDefaults:
    """The default of a converter setting: the worker's converter, and which classes exist."""

    name: str | None = None
    version: str | None = None
    validator: Validator | None = None
    recommender: Recommender | None = None
    versions: Recommender | None = None


@dataclass(frozen=True, slots=True)
class Enrichment:
    """What the definitions know of the worker and its plugins."""

    connector_version: str | None = None
    versions: Recommender | None = None
    key: ConverterDefaults = field(default_factory=ConverterDefaults)
    value: ConverterDefaults = field(default_factory=ConverterDefaults)
    header: ConverterDefaults = field(default_factory=ConverterDefaults)


def connector_definition(enrichment: Enrichment | None = None) -> ConfigDef:
    """Return the settings of every connector."""
    known = enrichment or Enrichment()
    definition = _Group(ConfigDef(), COMMON)
    name = NonEmptyStringWithoutControlChars()
    definition.add("name", _STRING, NO_DEFAULT, _HIGH, "Name of the connector, unique in the cluster.",
                   Width.MEDIUM, "Connector name", validator=name)  # fmt: skip
    definition.add(
        "connector.class", _STRING, NO_DEFAULT, _HIGH,
        "Name of the connector's class: the full name, the class name, or that without Connector.",
        Width.LONG, "Connector class",
    )  # fmt: skip
    definition.add("connector.plugin.version", _STRING, known.connector_version, _MEDIUM,
                   "Version of the connector.", Width.MEDIUM, "Connector version",
                   recommender=known.versions)  # fmt: skip
    definition.add("tasks.max", ConfigType.INT, 1, _HIGH, "Largest number of tasks of this connector.",
                   Width.SHORT, "Tasks max", validator=Range(least=1))  # fmt: skip
    definition.add("tasks.max.enforce", _BOOLEAN, True, _LOW,
                   "Deprecated: whether a connector that plans more tasks than tasks.max fails.",
                   Width.SHORT, "Enforce tasks max")  # fmt: skip
    for setting, defaults in (("key", known.key), ("value", known.value), ("header", known.header)):
        _add_converter(definition, setting, defaults)
    order = definition.order
    _add_aliases(definition.definition, TRANSFORMS, "transforms", "transformation", order + 1)
    _add_aliases(definition.definition, PREDICATES, "predicates", "predicate", order + 2)
    definition.order += 2
    definition.add(
        "config.action.reload", _STRING, "restart", _LOW,
        "What happens when a config provider's values expire: none or restart. Those of ours never do.",
        Width.MEDIUM, "Reload Action", validator=ValidString(("none", "restart")),
    )  # fmt: skip
    _add_errors(definition.definition)
    return definition.definition


class _Group:
    """Adds settings to a group in their order."""

    def __init__(self, definition: ConfigDef, group: str) -> None:
        self.definition = definition
        self.group = group
        self.order = 0

    def add(
        self,
        name: str,
        type: ConfigType,
        default: Any,
        importance: Importance,
        documentation: str,
        width: Width,
        display_name: str,
        **others: Any,
    ) -> None:
        self.order += 1
        self.definition.define(
            name,
            type,
            default,
            importance,
            documentation,
            group=self.group,
            order_in_group=self.order,
            width=width,
            display_name=display_name,
            **others,
        )


def _add_converter(group: _Group, kind: str, defaults: ConverterDefaults) -> None:
    title = f"{kind.capitalize()} converter"
    group.add(
        f"{kind}.converter", ConfigType.CLASS, defaults.name, _LOW,
        f"Class that converts {kind}s between Connect's data and bytes; by default the worker's.",
        Width.SHORT, f"{title} class", validator=defaults.validator, recommender=defaults.recommender,
    )  # fmt: skip
    group.add(
        f"{kind}.converter.plugin.version", _STRING, defaults.version, _LOW,
        f"Version of the {kind} converter.", Width.SHORT, f"{title} version",
        recommender=defaults.versions,
    )  # fmt: skip


def _add_aliases(definition: ConfigDef, group: str, name: str, kind: str, order: int) -> None:
    definition.define(
        name, ConfigType.LIST, [], _LOW, f"Aliases of the {kind}s, in the order in which they apply.",
        group=group, order_in_group=order, width=Width.LONG, display_name=group,
        validator=_UniqueAliases(),
    )  # fmt: skip


def _add_errors(definition: ConfigDef) -> None:
    group = _Group(definition, ERRORS)
    group.add("errors.retry.timeout", _LONG, 0, _MEDIUM,
              "Time in milliseconds to repeat a failed operation; 0 for no retries, -1 for no limit.",
              Width.MEDIUM, "Retry Timeout for Errors")  # fmt: skip
    group.add("errors.retry.delay.max.ms", _LONG, 60_000, _MEDIUM,
              "Longest pause in milliseconds between two attempts.",
              Width.MEDIUM, "Maximum Delay Between Retries for Errors")  # fmt: skip
    group.add("errors.tolerance", _STRING, "none", _MEDIUM,
              "none: an error fails the task. all: records that cannot be processed are skipped.",
              Width.SHORT, "Error Tolerance", validator=ValidString(("none", "all")))  # fmt: skip
    group.add("errors.log.enable", _BOOLEAN, False, _MEDIUM, "Whether tolerated errors are logged.",
              Width.SHORT, "Log Errors")  # fmt: skip
    group.add("errors.log.include.messages", _BOOLEAN, False, _MEDIUM,
              "Whether the log of an error contains the record.",
              Width.SHORT, "Log Error Details")  # fmt: skip


@dataclass(frozen=True, slots=True)
class _UniqueAliases:
    def __call__(self, name: str, value: Any) -> None:
        if value is None:
            raise ConfigError.invalid(name, None, "entry must be non null")
        if len(value) > len(set(value)):
            raise ConfigError.invalid(name, f"[{', '.join(value)}]", "Duplicate alias provided.")


@dataclass(frozen=True, slots=True)
class _Regex:
    def __call__(self, name: str, value: Any) -> None:
        try:
            re.compile(value or "")
        except re.error as error:
            raise ConfigError.invalid(name, value, f"Invalid regex: {error}") from None


def _not_negative(name: str, value: Any) -> None:
    if value is not None:
        Range(least=0)(name, value)


def _unique_topics(name: str, value: Any) -> None:
    if len(value) > len(set(value)):
        raise ConfigError.invalid(name, f"[{', '.join(value)}]", "Configuration '" + name + "' values must not be duplicated.")  # noqa: E501 # fmt: skip


def sink_definition(enrichment: Enrichment | None = None) -> ConfigDef:
    """Return the settings of every sink connector."""
    definition = connector_definition(enrichment)
    for name, type, default, text, title, validator in _TOPICS:
        definition.define(
            name, type, default, _HIGH, text, group=COMMON, order_in_group=4, width=Width.LONG,
            display_name=title, validator=validator,
        )  # fmt: skip
    for order, (name, type, default, text, title) in enumerate(_DEAD_LETTERS, start=6):
        definition.define(
            f"errors.deadletterqueue.{name}", type, default, _MEDIUM, text, group=ERRORS,
            order_in_group=order, width=Width.MEDIUM, display_name=title,
        )  # fmt: skip
    return definition


_TOPICS: Final[tuple[tuple[str, ConfigType, Any, str, str, Validator], ...]] = (
    ("topics", ConfigType.LIST, [], "Topics to consume, separated by commas.", "Topics", _unique_topics),
    (
        "topics.regex",
        _STRING,
        "",
        "Regular expression of the topics to consume; either this or topics.",
        "Topics regex",
        _Regex(),
    ),
)
_DEAD_LETTERS: Final = (
    (
        "topic.name",
        _STRING,
        "",
        "Topic for records that cannot be processed; empty for none.",
        "Dead Letter Queue Topic Name",
    ),
    (
        "topic.replication.factor",
        ConfigType.SHORT,
        3,
        "Replication factor of the dead-letter topic if it has to be created.",
        "Dead Letter Queue Topic Replication Factor",
    ),
    (
        "context.headers.enable",
        _BOOLEAN,
        False,
        "Whether dead letters get headers (__connect.errors.*) about their error.",
        "Enable Error Context Headers",
    ),
)


def source_definition(enrichment: Enrichment | None = None) -> ConfigDef:
    """Return the settings of every source connector."""
    definition = connector_definition(enrichment)
    definition.define(
        "topic.creation.groups", ConfigType.LIST, [], _LOW, "Groups of topics that tasks create.",
        group=TOPIC_CREATION, order_in_group=1, width=Width.LONG, display_name="Topic Creation Groups",
        validator=_UniqueAliases(),
    )  # fmt: skip
    group = _Group(definition, EXACTLY_ONCE)
    group.order = 1
    levels = ValidString(("REQUESTED", "REQUIRED"), ignore_case=True)
    group.add("exactly.once.support", _STRING, "requested", _MEDIUM,
              "required: refuse the connector if it cannot deliver exactly once. requested: do not check.",
              Width.SHORT, "Exactly once support", validator=levels)  # fmt: skip
    boundaries = ValidString(("POLL", "INTERVAL", "CONNECTOR"), ignore_case=True)
    group.add("transaction.boundary", _STRING, "poll", _MEDIUM,
              "With exactly-once delivery, a transaction for every poll. Others are not implemented.",
              Width.SHORT, "Transaction Boundary", validator=boundaries)  # fmt: skip
    group.add("transaction.boundary.interval.ms", _LONG, None, _LOW,
              "Interval between commits with transaction.boundary=interval.",
              Width.SHORT, "Transaction boundary interval", validator=_not_negative)  # fmt: skip
    definition.define(
        "offsets.storage.topic", _STRING, None, _LOW,
        "Topic of this connector's offsets; only that of the worker is implemented.",
        group="offsets.topic", order_in_group=1, width=Width.LONG, display_name="Offsets topic",
        validator=NonEmptyString(),
    )  # fmt: skip
    return definition


#: Returns the definition of a plugin by its class name; `ConfigError` if it is unknown.
DefinitionOf = Callable[[str, str], ConfigDef]


@dataclass(frozen=True, slots=True)
class AliasKind:
    """Settings of plugins with aliases: transformations or predicates."""

    setting: str
    group: str
    kind: str
    #: The interface, as error messages name it.
    base: str
    definition_of: DefinitionOf
    recommender: Recommender
    version_of: Callable[[str], str | None]
    versions: Recommender


def enrich(definition: ConfigDef, kind: AliasKind, properties: Mapping[str, Any]) -> None:
    """Add the settings of every alias."""
    text = properties.get(kind.setting) or ""
    for alias in dict.fromkeys(each.strip() for each in text.split(",")) if text.strip() else ():
        _enrich_alias(definition, kind, alias, properties)


def _enrich_alias(definition: ConfigDef, kind: AliasKind, alias: str, properties: Mapping[str, Any]) -> None:
    prefix = f"{kind.setting}.{alias}."
    group = f"{kind.group}: {alias}"
    chosen = properties.get(f"{prefix}type")

    def check(name: str, value: Any) -> None:
        if f"{prefix}negate" in properties and f"{prefix}predicate" not in properties:
            raise ConfigError(
                f"Config '{prefix}negate' was provided but there is no config '{prefix}predicate' defining a "
                "predicate to be negated."
            )
        if value is not None:
            kind.definition_of(name, value)

    definition.define(
        f"{prefix}type", ConfigType.CLASS, NO_DEFAULT, _HIGH, f"Class of the {kind.kind} {alias}.",
        group=group, order_in_group=0, width=Width.LONG, display_name=f"{kind.base} type for {alias}",
        validator=check, recommender=kind.recommender,
    )  # fmt: skip
    definition.define(
        f"{prefix}plugin.version", _STRING, None if chosen is None else kind.version_of(chosen), _HIGH,
        f"Version of the {kind.kind} {alias}.",
        group=group, order_in_group=1, width=Width.LONG, display_name=f"{kind.base} version for {alias}",
        recommender=kind.versions,
    )  # fmt: skip
    if chosen is None:
        return
    try:
        own = kind.definition_of(f"{prefix}type", chosen)
    except ConfigError:
        return
    definition.embed(prefix, group, 2, _sorted(_with_predicate(own) if kind.setting == "transforms" else own))


def _sorted(definition: ConfigDef) -> ConfigDef:
    """Return the settings in the order of their names, which Kafka Connect numbers."""
    result = ConfigDef()
    for key in sorted(definition.keys.values(), key=lambda each: each.name):
        result.add(key)
    return result


def _with_predicate(own: ConfigDef) -> ConfigDef:
    """Return the definition of a transformation after what all of them have."""
    result = (
        ConfigDef()
        .define("predicate", _STRING, None, _MEDIUM, "Alias of the predicate that decides whether to apply.")
        .define("negate", _BOOLEAN, False, _MEDIUM, "Whether to apply if the predicate is false.")
    )
    for key in own.keys.values():
        if key.name not in result.keys:
            result.add(key)
    return result


_DEFINITION: Final = connector_definition()


def parse_common(properties: Mapping[str, str]) -> dict[str, Any]:
    """Return the parsed settings that every connector has."""
    return _DEFINITION.parse(properties)
