"""Configs, modes and contexts: settings of a subject, of a context, or of the top level (None)."""

from __future__ import annotations

from typing import Any, Final

from moldau.registry.authorization import Access
from moldau.registry.state import contracts, errors, records
from moldau.registry.state.contracts import Json
from moldau.registry.state.names import (
    ALL_CONTEXTS,
    DEFAULT_CONTEXT,
    GLOBAL_CONTEXT,
    Name,
    covers,
    is_top_level,
    is_valid_subject,
    normalize,
    parse_name,
)
from moldau.registry.state.registering import require_writable
from moldau.registry.state.registry import Decision, Registry
from moldau.registry.state.requests import string_field
from moldau.registry.state.subjects import page

LEVELS: Final = frozenset(
    {
        "NONE",
        "BACKWARD",
        "BACKWARD_TRANSITIVE",
        "FORWARD",
        "FORWARD_TRANSITIVE",
        "FULL",
        "FULL_TRANSITIVE",
    }
)
MODES: Final = frozenset({"READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT", "FORWARD"})
_POLICIES: Final = frozenset({"STRICT", "LENIENT", "LOGICAL"})
_TEXTS: Final = frozenset({"alias", "compatibilityGroup"})
_FLAGS: Final = frozenset({"normalize", "validateFields", "validateNewSchemas", "validateRules"})
#: Fields of a config in the order in which they are stored.
_FIELDS: Final = (
    "alias",
    "aliasForDeks",
    "normalize",
    "validateFields",
    "validateNewSchemas",
    "validateRules",
    "compatibilityLevel",
    "compatibilityPolicy",
    "compatibilityGroup",
    "defaultMetadata",
    "overrideMetadata",
    "defaultRuleSet",
    "overrideRuleSet",
)


def _scope(name: str | None) -> str | None:
    return None if name is None or is_top_level(name) else normalize(name)


# Configs


def get_config(registry: Registry, name: str | None, *, default_to_global: bool) -> Decision:
    scope = _scope(name)
    config = registry.config(scope) if default_to_global else registry.own_config(scope)
    if config is None:
        raise errors.no_subject_config(scope or "")
    return Decision((), _ordered(config))


def update_config(registry: Registry, name: str | None, body: object) -> Decision:
    """Change the fields that the body names; null removes one."""
    if not isinstance(body, dict):
        raise errors.invalid_compatibility()
    changes = _changes(body)
    if name is not None and not is_valid_subject(name, setting=True):
        raise errors.invalid_subject(name)
    scope = _scope(name)
    require_writable(registry, scope)
    config = {**registry.store.configs.get(scope, {}), **changes}
    stored = _ordered({key: value for key, value in config.items() if value is not None})
    reply = dict(stored)
    if "compatibilityLevel" in reply:
        reply = {
            ("compatibility" if key == "compatibilityLevel" else key): value for key, value in reply.items()
        }
    return Decision((records.setting_record(records.CONFIG, scope, stored),), reply)


def _changes(body: dict[str, Any]) -> Json:
    changes: Json = {}
    for field in _FIELDS:
        given = "compatibility" if field == "compatibilityLevel" else field
        if given not in body:
            continue
        value = body[given]
        if field.endswith("Metadata"):
            value = contracts.metadata_of(value)
        elif field.endswith("RuleSet"):
            value = contracts.rule_set_of(value)
            contracts.validate_rule_set(value)
        elif field == "compatibilityLevel":
            value = _one_of(value, LEVELS)
        elif field == "compatibilityPolicy":
            value = _one_of(value, _POLICIES)
        elif field in _TEXTS:
            value = string_field(body, field)
        elif field in _FLAGS:
            value = contracts.boolean_of(body, field)
        changes[field] = value
    return changes


def _one_of(value: object, allowed: frozenset[str]) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or value.upper() not in allowed:
        raise errors.invalid_compatibility()
    return value.upper()


def _ordered(config: Json) -> Json:
    return {
        field: config[field] for field in _FIELDS if config.get(field) is not None and config[field] != ""
    }


def delete_config(registry: Registry, name: str | None) -> Decision:
    scope = _scope(name)
    config = registry.own_config(scope)
    if config is None:
        raise errors.subject_not_found(scope or "")
    require_writable(registry, scope)
    return Decision((records.setting_tombstone(records.CONFIG, scope),), _ordered(config))


# Modes


def get_mode(registry: Registry, name: str | None, *, default_to_global: bool) -> Decision:
    scope = _scope(name)
    mode = registry.mode(scope) if default_to_global else registry.own_mode(scope)
    if mode is None:
        raise errors.no_subject_mode(scope or "")
    return Decision((), {"mode": mode})


def update_mode(registry: Registry, name: str | None, body: object, *, force: bool) -> Decision:
    """Change the mode; null removes it. IMPORT needs an empty scope unless forced."""
    if name is not None and not is_valid_subject(name, setting=True):
        raise errors.invalid_subject(name)
    scope = _scope(name)
    given = body.get("mode") if isinstance(body, dict) else ""
    mode = given.upper() if isinstance(given, str) else given
    if mode is not None and (not isinstance(mode, str) or mode not in MODES):
        raise errors.invalid_mode()
    if mode == "FORWARD" and (scope is None or parse_name(scope) != (GLOBAL_CONTEXT, "")):
        raise errors.invalid_mode("Forward mode only supported on global level")
    _require_mutable(registry)
    written = []
    if mode == "IMPORT" and registry.mode(scope) != "IMPORT" and not force:
        written = _clear(registry, scope)
    if mode is None:
        written.append(records.setting_tombstone(records.MODE, scope))
    else:
        written.append(records.setting_record(records.MODE, scope, {"mode": mode}))
    return Decision(tuple(written), {"mode": given})


def _require_mutable(registry: Registry) -> None:
    if not registry.settings.mode_mutability:
        raise errors.not_permitted("Mode changes are not allowed")


def _clear(registry: Registry, scope: str | None) -> list[records.KeyValue]:
    """Return the records that remove the soft-deleted versions, whose ids an import may use again."""
    store = registry.store
    if store.has_subjects(scope, deleted=False):
        raise errors.not_permitted("Cannot import since found existing subjects")
    keys = [
        (name, number)
        for name, subject in store.subjects.items()
        if covers(scope, name)
        for number in subject.versions
    ]
    for name, number in keys:
        if store.referencing(name, number, deleted=True):
            raise errors.reference_exists(name, number)
    return [*(records.schema_tombstone(*key) for key in keys), records.clear_subject_record(scope)]


def delete_mode(registry: Registry, name: str | None, *, recursive: bool) -> Decision:
    """Remove a mode; `recursive` also those of the subjects of the context."""
    scope = _scope(name)
    mode = registry.own_mode(scope)
    if mode is None and not recursive:
        raise errors.subject_not_found(scope or "")
    _require_mutable(registry)
    written = [records.setting_tombstone(records.MODE, scope)]
    if recursive and not parse_name(scope or "").subject:
        written += [
            records.setting_tombstone(records.MODE, each)
            for each in registry.store.modes
            if each is not None and each != scope and _is_below(each, scope)
        ]
    return Decision(tuple(written), {} if mode is None else {"mode": mode})


def _is_below(name: str, scope: str | None) -> bool:
    return parse_name(name).context == parse_name(scope or "").context


# Contexts


def list_contexts(registry: Registry, prefix: str, offset: int, limit: int, *, access: Access) -> Decision:
    contexts = [
        each
        for each in (DEFAULT_CONTEXT, *registry.store.contexts)
        if each.startswith(prefix) and not access.is_denied(Name(each, "").prefix)
    ]
    return Decision((), page(contexts, offset, limit, registry.settings.search_limit))


def delete_context(registry: Registry, context: str) -> Decision:
    """Remove an empty context from the list; `context` is its prefix."""
    if context == ALL_CONTEXTS or registry.store.has_subjects(context, deleted=True):
        raise errors.context_not_empty(context)
    return Decision((records.context_tombstone(parse_name(context).context),), None, 204)
