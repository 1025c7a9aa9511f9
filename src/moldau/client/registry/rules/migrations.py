"""The rules that convert data of the writer's version to another version of the subject.

Upgrades apply the rules of every version after the writer's, in their order; downgrades those of every
version down to the chosen one, in reverse.
"""

from __future__ import annotations

from moldau.client.registry.client import RegistryClient
from moldau.client.registry.rules.engine import Step
from moldau.client.registry.rules.rule import DOWNGRADE, UPGRADE, migration_rules
from moldau.client.registry.types import RegisteredSchema, RegistryError, Schema


def migrations(
    registry: RegistryClient, subject: str, written: Schema, chosen: RegisteredSchema
) -> list[Step]:
    """Return the mode, the schema and the rule of each step; none if the versions have no rules."""
    first = _version(registry, subject, written)
    last = chosen.version if chosen.version is not None else _version(registry, subject, chosen.schema)
    if first is None or last is None or first == last:
        return []
    mode = UPGRADE if first < last else DOWNGRADE
    steps: list[Step] = []
    for number in range(min(first, last) + 1, max(first, last) + 1):
        schema = _schema(registry, subject, number)
        rules = [] if schema is None else migration_rules(schema)
        steps += [(mode, schema, rule) for rule in rules if schema and rule.mode in (mode, "UPDOWN")]
    return steps if mode == UPGRADE else steps[::-1]


def _version(registry: RegistryClient, subject: str, schema: Schema) -> int | None:
    """Return the version of a schema; None if the subject does not have it."""
    try:
        return registry.lookup(subject, schema, deleted=True).version
    except RegistryError as error:
        if error.not_found:
            return None
        raise


def _schema(registry: RegistryClient, subject: str, version: int) -> Schema | None:
    try:
        return registry.version(subject, version, deleted=True).schema
    except RegistryError as error:
        if error.not_found:
            return None
        raise
