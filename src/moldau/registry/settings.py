"""Settings of the registry itself, with Confluent's names; those of topic and election are in `log.settings`.

| setting | default | meaning |
|---|---|---|
| `schema.compatibility.level` | BACKWARD | compatibility level of subjects without a config |
| `mode.mutability` | true | whether modes can be changed |
| `schema.validate.fields` | false | whether names of fields are checked strictly; configs may change it |
| `schema.validate.new.schemas` | true | whether new schemas are validated as a whole; configs may change it |
| `schema.reject.empty.subject` | false | refuse schemas of the empty subject |
| `reference.versions.strict` | false | refuse schemas that refer to one name in several versions |
| `schema.search.default.limit` | 1000 | schemas or versions in a list if `limit` is missing or too large |
| `schema.search.max.limit` | 1000 | largest `limit` of schemas or versions |
| `subject.search.default.limit` | 20000 | subjects in a list if `limit` is missing or too large |
| `subject.search.max.limit` | 20000 | largest `limit` of subjects |
| `schema.registry.acl.rules` | | ACLs separated by semicolons; see *Limit what users may do* |
| `schema.registry.acl.file` | | file with an ACL on each line |
| `schema.registry.super.users` | | principals that may do everything, separated by semicolons |
"""

from __future__ import annotations

from collections.abc import Mapping

from moldau.config.definition import invalid_value
from moldau.http.settings import boolean, integer
from moldau.registry.state.registry import Limit, RegistrySettings
from moldau.registry.state.settings import LEVELS


def registry_settings(properties: Mapping[str, str]) -> RegistrySettings:
    """Read the settings; `ConfigError` names an invalid one."""
    level = first_of(properties, "schema.compatibility.level", "avro.compatibility.level") or "BACKWARD"
    if level.upper() not in LEVELS:
        raise invalid_value("schema.compatibility.level", level, f"Use one of {', '.join(sorted(LEVELS))}")
    return RegistrySettings(
        compatibility_level=level.upper(),
        mode_mutability=boolean(properties, "mode.mutability", True),
        validate_fields=boolean(properties, "schema.validate.fields", False),
        validate_new_schemas=boolean(properties, "schema.validate.new.schemas", True),
        reject_empty_subject=boolean(properties, "schema.reject.empty.subject", False),
        reference_versions_strict=boolean(properties, "reference.versions.strict", False),
        search_limit=_limit(properties, "schema", 1000),
        subject_search_limit=_limit(properties, "subject", 20_000),
    )


def _limit(properties: Mapping[str, str], kind: str, default: int) -> Limit:
    return Limit(
        integer(properties, f"{kind}.search.default.limit", default),
        integer(properties, f"{kind}.search.max.limit", default),
    )


def first_of(properties: Mapping[str, str], *names: str) -> str:
    """Return the value of the first setting that is set; older releases had other names."""
    return next((value for name in names if (value := properties.get(name, "").strip())), "")
