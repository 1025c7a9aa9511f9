"""Apply the domain rules of a schema to a value, and act on their results: ERROR, NONE or DLQ.

A rule whose type has no executor fails the record, because a contract that is not checked is broken; so do
rules of encoded bytes (`encodingRules`), which are not supported. Records
that a dead letter topic returns carry the name of the rule that failed, which is not applied again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from moldau.client.registry.rules.rule import (
    CONDITION,
    WRITE,
    Context,
    FieldTransform,
    FieldWalk,
    Rule,
    RuleAction,
    RuleExecutor,
    domain_rules,
    encoding_rules,
)
from moldau.client.registry.types import Schema
from moldau.client.serdes import SerializationError

logger = logging.getLogger(__name__)

#: The mode, the schema and the rule of a migration between versions.
Step = tuple[str, Schema, Rule]
#: Types of rules with executors of our own.
_PROVIDED = ("CEL", "CEL_FIELD", "JSONATA")
#: The header of a dead letter that names the rule.
RULE_NAME = "__rule.name"


class RuleError(SerializationError):
    """A rule that failed: a condition that is false, or an expression that cannot be evaluated."""


class Rules:
    """The executors and actions of a serializer; the extra `moldau[rules]` provides CEL and JSONata."""

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
        if context.mode == WRITE:
            self.check_encoding(context.schema, WRITE, context.topic)
        replayed = {data for name, data in context.headers if name == RULE_NAME}
        for rule in domain_rules(context):
            if rule.name.encode() not in replayed:
                value = self._apply_one(rule, context, value, walk)
        return value

    def migrate(self, steps: Sequence[Step], context: Context, value: Any) -> Any:
        """Convert a value between versions of a subject."""
        for mode, schema, rule in steps:
            value = self._apply_one(rule, context._replace(mode=mode, schema=schema), value, _no_fields)
        return value

    @staticmethod
    def check_encoding(schema: Schema, mode: str, topic: str) -> None:
        """Refuse schemas whose data is encoded further, for example encrypted."""
        if unsupported := encoding_rules(schema, mode):
            raise RuleError(
                f"{topic}: the rule {unsupported[0].name} changes encoded bytes, which is unsupported"
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
        if rule.type not in self._executors and rule.type in _PROVIDED:
            try:
                self._executors = {**_provided(rule.type), **self._executors}
            except ImportError as error:
                raise RuleError(
                    f"The rule {rule.name} of the schema needs {rule.type}: pip install 'moldau[rules]'"
                ) from error
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


def _provided(kind: str) -> dict[str, RuleExecutor]:
    """Return our executors of a type, whose packages may be missing."""
    if kind == "JSONATA":
        from moldau.client.registry.rules.jsonata import JsonataExecutor

        return {"JSONATA": JsonataExecutor()}
    from moldau.client.registry.rules.cel import CelExecutor, CelFieldExecutor

    cel = CelExecutor()
    return {"CEL": cel, "CEL_FIELD": CelFieldExecutor(cel)}


def _no_fields(transform: FieldTransform, value: Any) -> Any:
    raise RuleError("rules of fields cannot migrate data between versions")
