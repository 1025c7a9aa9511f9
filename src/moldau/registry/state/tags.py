"""Changing the tags of a version, which registers the next one."""

from __future__ import annotations

from typing import Any

from moldau.registry.state import contracts, errors
from moldau.registry.state.fields import change_tags
from moldau.registry.state.names import is_valid_subject
from moldau.registry.state.registering import register
from moldau.registry.state.registry import Decision, Registry
from moldau.registry.state.requests import SchemaRequest, integer_field, strings_field, tag_changes
from moldau.registry.state.subjects import find_version
from moldau.schemas.schema import InvalidSchema


def modify_tags(registry: Registry, subject: str, number: int, body: Any) -> Decision:
    """Register the schema of a version again, with other tags, metadata and rules."""
    if not isinstance(body, dict):
        raise errors.invalid_schema("The body must be a JSON object.")
    if not is_valid_subject(subject):
        raise errors.invalid_subject(subject)
    name, version = find_version(registry, subject, number, deleted=False)
    new_version = integer_field(body, "newVersion") or 0
    metadata = contracts.metadata_of(body.get("metadata"))
    metadata = version.content.metadata if metadata is None else metadata
    rules = _rules(registry, subject, new_version, body)
    try:
        parsed = registry.parse(name, version.content).parsed
    except InvalidSchema as error:
        raise errors.invalid_schema(str(error)) from None
    text = change_tags(parsed, tag_changes(body, "tagsToAdd"), tag_changes(body, "tagsToRemove"))
    content = version.content._replace(
        text=text, metadata=contracts.with_confluent_version(metadata, new_version), rule_set=rules
    )
    request = SchemaRequest(subject, content, -1, new_version, given_version=new_version, given_id=-1)
    return register(registry, request)


def _rules(registry: Registry, subject: str, new_version: int, body: dict[str, Any]) -> contracts.Json | None:
    merged = contracts.rule_set_of(body.get("rulesToMerge"))
    removed = None if body.get("rulesToRemove") is None else strings_field(body, "rulesToRemove")
    given = contracts.rule_set_of(body.get("ruleSet"))
    if merged is None and removed is None:
        contracts.validate_rule_set(given)
        return given
    if given is not None:
        raise errors.invalid_rule_set("ruleSet should be omitted if specifying rulesToMerge or rulesToRemove")
    contracts.validate_rule_set(merged)
    old = registry.store.version(subject, new_version - 1 if new_version else -1)
    rules = None if old is None or old.deleted else old.content.rule_set
    return contracts.without_rules(contracts.merge_rule_sets(rules, merged), removed or ())
