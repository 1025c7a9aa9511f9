"""The configuration of serializers and deserializers, by Confluent's names.

Properties of the registry's client are accepted, because configurations of Confluent's serializers have them
among the others; they take effect where the client is created. Properties without effect, most of them about
Java's classes, are accepted with a warning. Other names are refused.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.registry.serdes.subjects import (
    InContexts,
    ReferenceSubjectNameStrategy,
    SubjectNameStrategy,
    qualified_reference_name,
    reference_name,
    strategy,
)

if TYPE_CHECKING:
    from moldau.client.registry.client import RegistryClient

logger = logging.getLogger(__name__)

#: Name → meaning; docs/CLIENT.md has the same table.
PROPERTIES = {
    "auto.register.schemas": "register the schema if the subject does not have it",
    "normalize.schemas": "normalize the schema when it is registered or looked up",
    "propagate.schema.tags": "a new version takes over the tags of the previous one",
    "use.schema.id": "write with the schema of this id",
    "use.schema.guid": "write with the schema of this GUID",
    "id.compatibility.strict": "check that the schema of this id or GUID can read data of the given schema",
    "use.latest.version": "write with, or read into, the latest version of the subject",
    "use.latest.with.metadata": "as above, the latest version with these metadata properties",
    "latest.compatibility.strict": "check that the latest version can read data of the given schema",
    "subject.name.strategy": "TOPIC, RECORD, TOPIC_RECORD, ASSOCIATED, a class name or a function",
    "subject.name.strategy.conf": "cluster id and fallback of ASSOCIATED, as a mapping",
    "key.subject.name.strategy": "the strategy for keys only",
    "value.subject.name.strategy": "the strategy for values only",
    "context.name.strategy": "a function of the topic that names the context of its subject",
    "reference.subject.name.strategy": "the subjects of imported Protobuf files",
    "reference.lookup.only": "look imported Protobuf files up, and do not register them",
    "skip.known.types": "do not register imports that every registry knows (google/protobuf/…)",
    "use.deprecated.format": "must be false: the format of old Python clients is not written",
    "schema.id.serializer": "PREFIX: the id before the data; HEADER: the GUID in a header",
    "schema.id.deserializer": "DUAL: the header, else the prefix; PREFIX",
    "key.schema.id.serializer": "the same, for keys only",
    "key.schema.id.deserializer": "the same, for keys only",
    "value.schema.id.serializer": "the same, for values only",
    "value.schema.id.deserializer": "the same, for values only",
    "validate.strict": "refuse Avro records with fields that the schema does not have, or without some",
    "validate.strict.allow.default": "as above, but fields with a default may be missing",
    "json.fail.invalid.schema": "validate JSON values by their schema",
}
#: Other names of properties.
_SYNONYMS = ("subject.name.strategy.type", "validate")
#: Prefix of properties of the registry's client.
_OF_CLIENT = (
    "basic.auth.",
    "bearer.auth.",
    "latest.cache.",
    "max.schemas.per.subject",
    "proxy.",
    "request.header.",
    "schema.registry.",
    "ssl.",
    "url",
)
#: Prefixes of properties without effect.
_WITHOUT_EFFECT = (
    "avro.fail.on.trailing.data",
    "avro.reflection.allow.null",
    "avro.remove.java.properties",
    "avro.use.logical.type.converters",
    "derive.type",
    "execution.environment",
    "json.default.property.inclusion",
    "json.envelope.detection",
    "json.fail.unknown.properties",
    "json.indent.output",
    "json.key.type",
    "json.oneof.for.nullables",
    "json.schema.scan.packages",
    "json.schema.spec.version",
    "json.type.allowed.packages",
    "json.validate.before.domain.rules",
    "json.value.type",
    "rule.actions",
    "rule.executors",
    "rule.metrics.enable",
    "rule.service.loader.enable",
    "schema.format",
    "schema.reflection",
    "specific.avro.",
    "specific.protobuf.",
    "type.property",
    "validation.rules.",
)


@dataclass(frozen=True, slots=True)
class SerdeSettings:
    subject_name: SubjectNameStrategy
    reference_subject_name: ReferenceSubjectNameStrategy = reference_name
    auto_register: bool = True
    register_references: bool = True
    normalize: bool = False
    propagate_tags: bool = False
    use_schema_id: int | None = None
    use_schema_guid: str | None = None
    use_latest_version: bool = False
    use_latest_with_metadata: Mapping[str, str] | None = None
    #: Whether the chosen version must be able to read data of the given schema.
    compatibility_strict: bool = True
    skip_known_types: bool = True
    id_in_header: bool = False
    read_headers: bool = True
    validate_json: bool = True
    strict_avro: bool = False
    strict_avro_with_defaults: bool = False

    @classmethod
    def of(cls, config: Mapping[str, Any] | None, registry: RegistryClient, *, key: bool) -> SerdeSettings:
        config = dict(config or {})
        _check_names(config)
        fixed_id, guid = config.get("use.schema.id"), config.get("use.schema.guid")
        fixed_id = None if fixed_id in (None, -1, "-1") else int(fixed_id)
        latest, metadata = _flag(config, "use.latest.version", False), config.get("use.latest.with.metadata")
        is_fixed = fixed_id is not None or guid is not None
        # A schema that the registry chooses is not registered, whatever the default says.
        chosen = latest or metadata is not None or is_fixed
        if latest and _flag(config, "auto.register.schemas", False):
            raise _invalid("use.latest.version=true needs auto.register.schemas=false")
        if _flag(config, "use.deprecated.format", False):
            raise _invalid("use.deprecated.format=true is not supported: set it to false in all clients")
        register = not chosen and _flag(config, "auto.register.schemas", True)
        part = "key" if key else "value"
        strict = "id.compatibility.strict" if is_fixed else "latest.compatibility.strict"
        return cls(
            subject_name=_subject_name(config, registry, part),
            reference_subject_name=_reference_strategy(config.get("reference.subject.name.strategy")),
            auto_register=register,
            register_references=register and not _flag(config, "reference.lookup.only", False),
            normalize=_flag(config, "normalize.schemas", False),
            propagate_tags=_flag(config, "propagate.schema.tags", False),
            use_schema_id=fixed_id,
            use_schema_guid=None if guid is None else str(guid),
            use_latest_version=latest,
            use_latest_with_metadata=metadata,
            compatibility_strict=_flag(config, strict, True),
            skip_known_types=_flag(config, "skip.known.types", True),
            id_in_header=_place(config, part, "serializer", ("PREFIX", "HEADER"), "PREFIX") == "HEADER",
            read_headers=_place(config, part, "deserializer", ("PREFIX", "DUAL"), "DUAL") == "DUAL",
            validate_json=_flag(config, "json.fail.invalid.schema", _flag(config, "validate", True)),
            strict_avro=_flag(config, "validate.strict", False),
            strict_avro_with_defaults=_flag(config, "validate.strict.allow.default", False),
        )


def _check_names(config: Mapping[str, Any]) -> None:
    """Refuse unknown properties, and warn of those without effect."""
    others = sorted(config.keys() - PROPERTIES.keys() - set(_SYNONYMS))
    others = [name for name in others if not name.startswith(_OF_CLIENT)]
    ignored = [name for name in others if name.startswith(_WITHOUT_EFFECT)]
    unknown = [name for name in others if name not in ignored]
    if unknown:
        raise _invalid(f"Unknown property {unknown[0]}; use one of {', '.join(PROPERTIES)}")
    if ignored:
        logger.warning("These properties of serializers have no effect: %s", ", ".join(ignored))


def _subject_name(config: Mapping[str, Any], registry: RegistryClient, part: str) -> SubjectNameStrategy:
    named = config.get(f"{part}.subject.name.strategy")
    named = named or config.get("subject.name.strategy") or config.get("subject.name.strategy.type")
    found = strategy(named, registry, config.get("subject.name.strategy.conf") or {})
    context = config.get("context.name.strategy")
    if context is None or str(context).endswith("NullContextNameStrategy"):
        return found
    if not callable(context):
        raise _invalid(f"context.name.strategy={context}: use a function of the topic")
    name: Callable[[str], str | None] = context
    return InContexts(found, name)


def known_properties(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties of serializers among those of a producer or consumer."""
    known = (*PROPERTIES, *_SYNONYMS)
    return {n: value for n, value in config.items() if n in known or n.startswith(_WITHOUT_EFFECT)}


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, message)


def _flag(config: Mapping[str, Any], name: str, default: bool) -> bool:
    value = config.get(name, default)
    if isinstance(value, bool):
        return value
    if str(value).lower() not in ("true", "false"):
        raise _invalid(f"{name}={value}: use true or false")
    return str(value).lower() == "true"


def _place(config: Mapping[str, Any], part: str, kind: str, choices: tuple[str, ...], default: str) -> str:
    """Return where the id is, given by its name or that of Confluent's class: HeaderSchemaIdSerializer."""
    name = f"schema.id.{kind}"
    if config.get(f"{part}.{name}") is not None:
        name = f"{part}.{name}"
    given = str(config.get(name) or default).rpartition(".")[2].upper()
    short = given.removesuffix("SERIALIZER").removesuffix("DE").removesuffix("SCHEMAID")
    if short not in choices:
        raise _invalid(f"{name}={config[name]}: use one of {', '.join(choices)}")
    return short


def _reference_strategy(choice: Any) -> ReferenceSubjectNameStrategy:
    if choice is None:
        return reference_name
    if callable(choice):
        found: ReferenceSubjectNameStrategy = choice
        return found
    short = str(choice).rpartition(".")[2].lower()
    if short.startswith("qualified"):
        return qualified_reference_name
    if short.startswith(("default", "reference")):
        return reference_name
    raise _invalid(f"reference.subject.name.strategy={choice}: use DEFAULT, QUALIFIED or a function")
