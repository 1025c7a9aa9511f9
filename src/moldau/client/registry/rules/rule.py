"""A rule of a rule set, where it applies, and the interface of its executors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from moldau.client.records import Headers
from moldau.client.registry.types import Schema

WRITE, READ = "WRITE", "READ"
UPGRADE, DOWNGRADE = "UPGRADE", "DOWNGRADE"
CONDITION, TRANSFORM = "CONDITION", "TRANSFORM"


@dataclass(frozen=True, slots=True)
class Rule:
    name: str
    kind: str
    mode: str
    type: str
    expr: str | None
    tags: frozenset[str]
    params: Mapping[str, str]
    doc: str | None
    on_success: str | None
    on_failure: str | None

    @classmethod
    def of(cls, rule: Mapping[str, Any]) -> Rule:
        return cls(
            rule.get("name") or "",
            rule.get("kind") or TRANSFORM,
            rule.get("mode") or "WRITEREAD",
            (rule.get("type") or "").upper(),
            rule.get("expr"),
            frozenset(rule.get("tags") or ()),
            rule.get("params") or {},
            rule.get("doc"),
            rule.get("onSuccess"),
            rule.get("onFailure"),
        )

    def action(self, mode: str, *, failed: bool) -> str:
        """Return the action after the rule: with WRITEREAD, `A,B` is A on write and B on read.

        UPDOWN also has such pairs.
        """
        named = self.on_failure if failed else self.on_success
        if named and self.mode in ("WRITEREAD", "UPDOWN") and "," in named:
            named = named.split(",")[0 if mode in (WRITE, UPGRADE) else 1]
        return (named or ("ERROR" if failed else "NONE")).strip()

    @property
    def same_fields(self) -> tuple[Any, ...] | None:
        """The common key of transforms of the same fields; None for conditions and rules without tags."""
        if self.kind != TRANSFORM or not self.tags:
            return None
        return (self.type, self.mode, self.tags)

    @property
    def failure(self) -> str:
        """The sentence for a condition that is false."""
        return self.doc or (f"Rule expr failed: {self.expr}" if self.expr else f"Rule failed: {self.name}")


class Context(NamedTuple):
    """The record part that rules are applied to."""

    mode: str
    schema: Schema
    subject: str
    topic: str
    key: bool
    headers: Headers


class Field(NamedTuple):
    """A field that a rule of type CEL_FIELD sees."""

    full_name: str
    name: str
    #: Confluent's name of the type: STRING, BYTES, INT, LONG, FLOAT, DOUBLE, BOOLEAN, NULL.
    type_name: str
    tags: frozenset[str]
    #: The record, object or message that contains the field.
    message: Any


FieldTransform = Callable[[Field, Any], Any]
#: Calls the transform for every primitive field of a value, and returns the value with the results.
FieldWalk = Callable[[FieldTransform, Any], Any]


class RuleExecutor(Protocol):
    """Evaluates rules of one type: a condition returns whether it holds, a transform the new value."""

    def run(self, rule: Rule, context: Context, value: Any, walk: FieldWalk) -> Any: ...


class RuleAction(Protocol):
    """The action after a rule; raises to fail the record."""

    def run(self, rule: Rule, context: Context, value: Any, error: Exception | None) -> None: ...


def domain_rules(context: Context) -> Iterator[Rule]:
    """Yield the rules that apply, in their order on write and in reverse on read.

    Of several transforms of one type for the same tags, only the first applies, as in Confluent's clients.
    """
    applied = [
        rule for rule in _rules(context.schema, "domainRules") if rule.mode in ("WRITEREAD", context.mode)
    ]
    first = {rule.same_fields: rule for rule in reversed(applied) if rule.same_fields is not None}
    for rule in applied if context.mode == WRITE else reversed(applied):
        if rule.same_fields is None or first[rule.same_fields] is rule:
            yield rule


def encoding_rules(schema: Schema, mode: str) -> list[Rule]:
    """Return the rules that change the encoded bytes."""
    return [rule for rule in _rules(schema, "encodingRules") if rule.mode in ("WRITEREAD", mode)]


def migration_rules(schema: Schema) -> list[Rule]:
    """Return the rules that convert data between versions of a subject."""
    return _rules(schema, "migrationRules")


def _rules(schema: Schema, phase: str) -> list[Rule]:
    rule_set = schema.rule_set
    if not rule_set or rule_set.get("enableAt") not in (None, "ALL", "CLIENT"):
        return []
    return [Rule.of(rule) for rule in rule_set.get(phase) or () if not rule.get("disabled")]
