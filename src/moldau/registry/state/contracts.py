"""Data contracts: metadata and rule sets, in the form in which they are stored, merged and hashed.

Both are JSON objects with a fixed order of fields; maps and sets inside them are sorted, empty ones are left
out. None differs from an empty object: both the GUID and the inheritance from the previous version tell them
apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from moldau.http.errors import ApiError
from moldau.registry.state import errors

Json = dict[str, Any]

CONFLUENT_VERSION: Final = "confluent:version"
RESERVED_FIELDS: Final = "confluent:reserved"

_RULE_LISTS: Final = ("migrationRules", "domainRules", "encodingRules")
_MIGRATION_MODES: Final = frozenset({"UPGRADE", "DOWNGRADE", "UPDOWN"})
_DOMAIN_MODES: Final = frozenset({"WRITE", "READ", "WRITEREAD"})
_RULE_KINDS: Final = frozenset({"TRANSFORM", "CONDITION"})
_SEVERAL_ACTIONS: Final = frozenset({"WRITEREAD", "UPDOWN"})
_MAX_NAME: Final = 64
_TRUE: Final = ("true", "True", "TRUE")
_FALSE: Final = ("false", "False", "FALSE")
_NULL: Final = ("", "null")
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,10}")


def metadata_of(value: object) -> Json | None:
    """Return metadata of a request or record in its stored form."""
    if value is None:
        return None
    given = _object(value, "metadata")
    metadata: Json = {}
    if tags := given.get("tags"):
        metadata["tags"] = {
            path: sorted(set(_strings(names, "tags")))
            for path, names in sorted(_object(tags, "tags").items())
        }
    if properties := given.get("properties"):
        metadata["properties"] = {
            key: _text(text) for key, text in sorted(_object(properties, "properties").items())
        }
    if sensitive := given.get("sensitive"):
        metadata["sensitive"] = sorted(set(_strings(sensitive, "sensitive")))
    return metadata


def rule_set_of(value: object) -> Json | None:
    """Return a rule set of a request or record in its stored form."""
    if value is None:
        return None
    given = _object(value, "ruleSet")
    rule_set: Json = {}
    for kind in _RULE_LISTS:
        if rules := given.get(kind):
            if not isinstance(rules, list):
                raise errors.invalid_rule_set(f"{kind} must be a list")
            rule_set[kind] = [_rule(_object(rule, "rule")) for rule in rules]
    if enable_at := given.get("enableAt"):
        if not isinstance(enable_at, str):
            raise errors.invalid_rule_set("enableAt must be a string")
        rule_set["enableAt"] = enable_at
    return rule_set


def _rule(given: Mapping[str, Any]) -> Json:
    rule: Json = {}
    for key in ("name", "doc"):
        if given.get(key):
            rule[key] = _text(given[key])
    rule["kind"] = _upper(given.get("kind"), "TRANSFORM")
    rule["mode"] = _upper(given.get("mode"), "WRITEREAD")
    if given.get("type") is not None:
        rule["type"] = _text(given["type"])
    if tags := given.get("tags"):
        rule["tags"] = sorted(set(_strings(tags, "tags")))
    if params := given.get("params"):
        rule["params"] = {key: _text(text) for key, text in sorted(_object(params, "params").items())}
    for key in ("expr", "onSuccess", "onFailure"):
        if given.get(key):
            rule[key] = _text(given[key])
    rule["disabled"] = boolean_of(given, "disabled") or False
    return rule


def _upper(value: object, default: str) -> str:
    return default if value is None else _text(value).upper()


def validate_rule_set(rule_set: Json | None) -> None:
    """Raise 42210 if a rule set of a request is invalid."""
    names: set[str | None] = set()
    for kind in _RULE_LISTS:
        for rule in (rule_set or {}).get(kind, ()):
            name = rule.get("name")
            if name in names:
                raise errors.invalid_rule_set(f"Found rule with duplicate name '{name}'")
            names.add(name)
            _validate_rule(rule)
            if kind == "migrationRules":
                if rule["mode"] not in _MIGRATION_MODES:
                    raise errors.invalid_rule_set("Migration rules can only be UPGRADE, DOWNGRADE, UPDOWN")
            elif rule["mode"] not in _DOMAIN_MODES:
                title = "Domain" if kind == "domainRules" else "Encoding"
                raise errors.invalid_rule_set(f"{title} rules can only be WRITE, READ, WRITEREAD")


def _validate_rule(rule: Json) -> None:
    name = rule.get("name")
    if not name:
        raise errors.invalid_rule_set("Missing rule name")
    if len(name) > _MAX_NAME:
        raise errors.invalid_rule_set("Rule name too long")
    if not (name[0].isalpha() or name[0] == "_"):
        raise errors.invalid_rule_set(f"Illegal initial character in rule name: {name}")
    if not all(each.isalnum() or each in "_-" for each in name):
        raise errors.invalid_rule_set(f"Illegal character in rule name: {name}")
    if "type" not in rule:
        raise errors.invalid_rule_set("Missing rule type")
    if rule["kind"] not in _RULE_KINDS:
        raise errors.invalid_rule_set(f"Unknown rule kind {rule['kind']}")
    if rule["mode"] not in _SEVERAL_ACTIONS and any(
        "," in rule.get(key, "") for key in ("onSuccess", "onFailure")
    ):
        raise errors.invalid_rule_set("Multiple actions only valid with WRITEREAD and UPDOWN")


def merge_metadata(old: Json | None, new: Json | None) -> Json | None:
    """Return `old` with the entries of `new` added or replaced."""
    if old is None or new is None:
        return old if new is None else new
    merged = {key: {**old.get(key, {}), **new.get(key, {})} for key in ("tags", "properties")}
    sensitive = [*old.get("sensitive", ()), *new.get("sensitive", ())]
    return metadata_of({**merged, "sensitive": sensitive})


def merge_rule_sets(old: Json | None, new: Json | None) -> Json | None:
    """Return the rules of `new`, after those of `old` with other names."""
    if old is None or new is None:
        return old if new is None else new
    merged: Json = {}
    for kind in _RULE_LISTS:
        added = new.get(kind, [])
        replaced = {rule.get("name") for rule in added}
        if rules := [rule for rule in old.get(kind, ()) if rule.get("name") not in replaced] + added:
            merged[kind] = rules
    if enable_at := new.get("enableAt") or old.get("enableAt"):
        merged["enableAt"] = enable_at
    return merged


def without_rules(rule_set: Json | None, names: Iterable[str]) -> Json | None:
    if rule_set is None:
        return None
    removed = set(names)
    kept = dict(rule_set)
    for kind in _RULE_LISTS:
        kept[kind] = [rule for rule in rule_set.get(kind, ()) if rule.get("name") not in removed]
    return {key: value for key, value in kept.items() if value}


def has_rule_type(rule_set: Json | None, rule_type: str) -> bool:
    return rule_set is not None and any(
        rule.get("type") == rule_type for kind in _RULE_LISTS for rule in rule_set.get(kind, ())
    )


def property_of(metadata: Json | None, name: str) -> str | None:
    if metadata is None:
        return None
    value: str | None = metadata.get("properties", {}).get(name)
    return value


def confluent_version(metadata: Json | None) -> int | None:
    """Return the version that the metadata names, by which a schema is made distinct from an equal one."""
    text = property_of(metadata, CONFLUENT_VERSION)
    return int(text) if text is not None and _INTEGER.fullmatch(text) else None


def with_confluent_version(metadata: Json | None, version: int) -> Json:
    properties = {**(metadata or {}).get("properties", {}), CONFLUENT_VERSION: str(version)}
    changed = metadata_of({**(metadata or {}), "properties": properties})
    return changed if changed is not None else {}


def without_confluent_version(metadata: Json | None) -> Json:
    properties = dict((metadata or {}).get("properties", {}))
    properties.pop(CONFLUENT_VERSION, None)
    changed = metadata_of({**(metadata or {}), "properties": properties})
    return changed if changed is not None else {}


def boolean_of(given: Mapping[str, Any], name: str) -> bool | None:
    """Return a field that is true or false; texts and integers are converted as Jackson does."""
    value = given.get(name)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value != 0
    text = value.strip() if isinstance(value, str) else None
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise ApiError(422, 422, f"{name} must be true or false.")


def _object(value: object, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise errors.invalid_rule_set(f"{name} must be a JSON object")
    return value


def _strings(value: object, name: str) -> list[str]:
    if not isinstance(value, list):
        raise errors.invalid_rule_set(f"{name} must be a list of strings")
    return [_text(each) for each in value]


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
