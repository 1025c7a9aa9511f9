"""Apply the domain rules of a schema to a value, and act on their results: ERROR, NONE or DLQ.

A rule whose type has no executor fails the record, because a contract that is not checked is broken; so do
rules of encoded bytes (`encodingRules`) and of migrations between versions, which are not supported. Records
that a dead letter topic returns carry the name of the rule that failed, which is not applied again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from moldau.client.registry.rules.rule import (
    CONDITION,
    Context,
    FieldWalk,
    Rule,
    RuleAction,
    RuleExecutor,
    domain_rules,
    encoding_rules,
    migration_rules,
)
from moldau.client.registry.types import Schema
from moldau.client.serdes import SerializationError

logger = logging.getLogger(__name__)

#: The header of a dead letter that names the rule.
RULE_NAME = "__rule.name"


class RuleError(SerializationError):
    """A rule that failed: a condition that is false, or an expression that cannot be evaluated."""


class Rules:
    """The executors and actions of a serializer; CEL is provided if the package `cel-python` is installed."""

    def __init__(
        self,
        executors: Mapping[str, RuleExecutor] | None = None,
        actions: Mapping[str, RuleAction] | None = None,
    ) -> None:
        self._executors = dict(executors or {})
        self._actions = dict(actions or {})

    def apply(self, context: Context, value: Any, walk: FieldWalk) -> Any:
        if context.schema.rule_set is None:
            return value
        if unsupported := encoding_rules(context):
            raise RuleError(
                f"{context.topic}: the rule {unsupported[0].name} changes encoded bytes, which is unsupported"
            )
        replayed = {data for name, data in context.headers if name == RULE_NAME}
        for rule in domain_rules(context):
            if rule.name.encode() not in replayed:
                value = self._apply_one(rule, context, value, walk)
        return value

    @staticmethod
    def check_migration(written: Schema, chosen: Schema, topic: str) -> None:
        """Refuse to read into a version of the subject that demands migration rules."""
        if chosen.text != written.text and (rules := migration_rules(chosen) or migration_rules(written)):
            raise RuleError(
                f"{topic}: the schema has the migration rule {rules[0].name}, which is not supported"
            )

    def _apply_one(self, rule: Rule, context: Context, value: Any, walk: FieldWalk) -> Any:
        try:
            result = self._executor(rule).run(rule, context, value, walk)
            if rule.kind == CONDITION and not result:
                raise RuleError(rule.failure)
        except Exception as error:  # noqa: BLE001  executors of the application may raise anything
            self._act(rule.action(context.mode, failed=True), rule, context, value, error)
            return value
        changed = value if rule.kind == CONDITION else result
        self._act(rule.action(context.mode, failed=False), rule, context, changed, None)
        return changed

    def _executor(self, rule: Rule) -> RuleExecutor:
        if rule.type not in self._executors and rule.type in ("CEL", "CEL_FIELD"):
            try:
                from moldau.client.registry.rules.cel import CelExecutor, CelFieldExecutor
            except ImportError as error:
                raise RuleError(
                    f"The rule {rule.name} of the schema needs CEL: pip install 'moldau[rules]'"
                ) from error
            cel = CelExecutor()
            self._executors |= {"CEL": cel, "CEL_FIELD": CelFieldExecutor(cel)}
        if rule.type not in self._executors:
            raise RuleError(f"The rule {rule.name} has the type {rule.type}, for which there is no executor")
        return self._executors[rule.type]

    def _act(self, name: str, rule: Rule, context: Context, value: Any, error: Exception | None) -> None:
        if name == "NONE":
            return
        if name != "ERROR":
            action = self._actions.get(name)
            if action is None:
                raise RuleError(f"The rule {rule.name} has the unknown action {name}") from error
            action.run(rule, context, value, error)
            return
        if isinstance(error, RuleError):
            raise RuleError(f"{context.topic}: {error.message}") from error
        raise RuleError(f"{context.topic}: the rule {rule.name} failed: {error}") from error
