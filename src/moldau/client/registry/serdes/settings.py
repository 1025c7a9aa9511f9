"""The configuration of serializers and deserializers, by Confluent's names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.registry.serdes.subjects import (
    ReferenceSubjectNameStrategy,
    SubjectNameStrategy,
    qualified_reference_name,
    reference_name,
    strategy,
)

if TYPE_CHECKING:
    from moldau.client.registry.client import RegistryClient

#: Name → meaning; docs/CLIENT.md has the same table.
PROPERTIES = {
    "auto.register.schemas": "register the schema if the subject does not have it",
    "normalize.schemas": "normalize the schema when it is registered or looked up",
    "use.schema.id": "write with the schema of this id",
    "use.latest.version": "write with, or read into, the latest version of the subject",
    "use.latest.with.metadata": "as above, the latest version with these metadata properties",
    "latest.compatibility.strict": "check that the latest version can read data of the given schema",
    "subject.name.strategy": "TOPIC, RECORD, TOPIC_RECORD, ASSOCIATED, a class name or a function",
    "key.subject.name.strategy": "the same, for keys only",
    "value.subject.name.strategy": "the same, for values only",
    "reference.subject.name.strategy": "the subjects of imported Protobuf files",
    "skip.known.types": "do not register imports that every registry knows (google/protobuf/…)",
    "schema.id.serializer": "PREFIX: the id before the data; HEADER: the GUID in a header",
    "schema.id.deserializer": "DUAL: the header, else the prefix; PREFIX",
    "json.fail.invalid.schema": "validate JSON values by their schema",
}


@dataclass(frozen=True, slots=True)
class SerdeSettings:
    subject_name: SubjectNameStrategy
    reference_subject_name: ReferenceSubjectNameStrategy = reference_name
    auto_register: bool = True
    normalize: bool = False
    use_schema_id: int | None = None
    use_latest_version: bool = False
    use_latest_with_metadata: Mapping[str, str] | None = None
    latest_compatibility_strict: bool = True
    skip_known_types: bool = True
    id_in_header: bool = False
    read_headers: bool = True
    validate_json: bool = True

    @classmethod
    def of(cls, config: Mapping[str, Any] | None, registry: RegistryClient, *, key: bool) -> SerdeSettings:
        config = dict(config or {})
        unknown = sorted(config.keys() - PROPERTIES.keys() - {"subject.name.strategy.type", "validate"})
        if unknown:
            raise _invalid(f"Unknown property {unknown[0]}; use one of {', '.join(PROPERTIES)}")
        named = config.get(f"{'key' if key else 'value'}.subject.name.strategy")
        named = named or config.get("subject.name.strategy") or config.get("subject.name.strategy.type")
        latest, metadata = _flag(config, "use.latest.version", False), config.get("use.latest.with.metadata")
        fixed_id = config.get("use.schema.id")
        # A schema that the registry chooses is not registered, whatever the default says.
        chosen = latest or metadata is not None or fixed_id is not None
        if latest and _flag(config, "auto.register.schemas", False):
            raise _invalid("use.latest.version=true needs auto.register.schemas=false")
        return cls(
            strategy(named, registry),
            _reference_strategy(config.get("reference.subject.name.strategy")),
            not chosen and _flag(config, "auto.register.schemas", True),
            _flag(config, "normalize.schemas", False),
            None if fixed_id in (None, -1, "-1") else int(fixed_id),
            latest,
            metadata,
            _flag(config, "latest.compatibility.strict", True),
            _flag(config, "skip.known.types", True),
            _choice(config, "schema.id.serializer", ("PREFIX", "HEADER"), "PREFIX") == "HEADER",
            _choice(config, "schema.id.deserializer", ("PREFIX", "DUAL"), "DUAL") == "DUAL",
            _flag(config, "json.fail.invalid.schema", _flag(config, "validate", True)),
        )


def known_properties(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties of serializers among those of a producer or consumer."""
    return {name: value for name, value in config.items() if name in PROPERTIES}


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, message)


def _flag(config: Mapping[str, Any], name: str, default: bool) -> bool:
    value = config.get(name, default)
    if isinstance(value, bool):
        return value
    if str(value).lower() not in ("true", "false"):
        raise _invalid(f"{name}={value}: use true or false")
    return str(value).lower() == "true"


def _choice(config: Mapping[str, Any], name: str, choices: tuple[str, ...], default: str) -> str:
    """Return a choice, given by its name or the name of Confluent's class, e.g. HeaderSchemaIdSerializer."""
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
