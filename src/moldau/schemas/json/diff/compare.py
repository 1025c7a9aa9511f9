"""The comparison of two schemas: can data that is valid for `original` be read with `update`?

A pair of schemas is compared once, by identity, and its findings are reused on every path that reaches it. A
pair that is reached again while it is being compared is assumed to be compatible. If that assumption was
wrong, the comparison is repeated with what is known by then, until nothing changes: the greatest fixed point.
"""

from __future__ import annotations

from collections.abc import Callable

from moldau.schemas.json.diff import arrays, objects, scalars, sums
from moldau.schemas.json.diff.findings import Findings
from moldau.schemas.json.model import (
    Array,
    Boolean,
    Combined,
    Const,
    Criterion,
    Empty,
    Enum,
    Not,
    Nothing,
    Null,
    Number,
    Object,
    Schema,
    String,
    Structures,
    referred,
)
from moldau.schemas.schema import InvalidSchema
from moldau.schemas.trampoline import Recursion, run

#: The steps of a comparison: a step is a pair that is compared or looked up. A million takes about a second.
MAX_STEPS = 1_000_000
#: What comparing a pair costs, in steps; a leaf contains no other schemas.
_PAIR_STEPS, _LEAF_STEPS = 10, 3
#: After this many steps, pairs of equal structure share their findings: a web of many similar schemas.
_SHARING_STEPS = 20_000

#: The key of a pair: the identities of its schemas, or the numbers of their structures.
Pair = tuple[int, int]


def compare(original: Schema, update: Schema, compatible_kinds: frozenset[str]) -> Findings:
    """Return all differences; raise `InvalidSchema` if the schemas are too complex to compare."""
    steps = Steps()
    structures = Structures()
    known: dict[Pair, Findings] = {}
    while True:
        comparison = Comparison(compatible_kinds, known, steps, structures)
        findings = run(comparison.of(original, update))
        incompatible = comparison.incompatible()
        if not comparison.assumed or incompatible.keys() == known.keys():
            return findings
        known = incompatible


class Steps:
    """Counts the steps of a comparison, over all passes."""

    def __init__(self) -> None:
        self._taken = 0

    def take(self, number: int) -> None:
        """Take steps; raise `InvalidSchema` if there are too many."""
        self._taken += number
        if self._taken > MAX_STEPS:
            raise InvalidSchema("The schemas are too complex to compare")

    @property
    def many(self) -> bool:
        return self._taken > _SHARING_STEPS


class Comparison:
    """One pass over a pair of schemas and all pairs below it."""

    def __init__(
        self,
        compatible_kinds: frozenset[str],
        known: dict[Pair, Findings],
        steps: Steps,
        structures: Structures,
    ) -> None:
        """`known` are the incompatible pairs of the pass before."""
        self.assumed = False
        self.structures = structures
        self.steps = steps
        #: The findings of pairs, with references replaced by their targets.
        self.compared: dict[Pair, Findings] = {}
        self._compatible_kinds = compatible_kinds
        self._known = known
        self._in_progress: set[Pair] = set()

    def findings(self) -> Findings:
        """Return an empty collection."""
        return Findings(self._compatible_kinds)

    def incompatible(self) -> dict[Pair, Findings]:
        """Return the incompatible pairs of this pass."""
        return {pair: findings for pair, findings in self.compared.items() if not findings.compatible}

    def of(self, original: Schema | None, update: Schema | None) -> Recursion[Findings]:
        """Compare a pair; return the findings at once if no recursion is needed."""
        found = self.findings()
        if original is None or update is None:
            if original is not update:
                found.add("SCHEMA_ADDED" if original is None else "SCHEMA_REMOVED")
            return found  # type: ignore[return-value]
        original, update = referred(original), referred(update)
        pair = (id(original), id(update))
        compared = self.compared.get(pair)
        if compared is not None:
            return compared  # type: ignore[return-value]
        if pair in self._in_progress:
            self.assumed = self.assumed or pair not in self._known
            return self._known.get(pair, found)  # type: ignore[return-value]
        compare_leaf = _LEAVES.get(type(original))
        if compare_leaf is not None and type(original) is type(update):
            self.steps.take(_LEAF_STEPS)
            _annotations(found, original, update)
            compare_leaf(found, original, update)
            self.compared[pair] = found
            return found  # type: ignore[return-value]
        return self._compare(pair, found, original, update)

    def _compare(self, pair: Pair, found: Findings, original: Schema, update: Schema) -> Recursion[Findings]:
        self.steps.take(_PAIR_STEPS)
        keys = [pair]
        if self.steps.many:
            # Negative, so that it differs from identities.
            structure = (~self.structures.number(original), ~self.structures.number(update))
            shared = self.compared.get(structure)
            if shared is None and structure in self._in_progress:
                self.assumed = self.assumed or structure not in self._known
                shared = self._known.get(structure, found)
            if shared is not None:
                self.compared[pair] = shared
                return shared
            keys.append(structure)
        self._in_progress.update(keys)
        yield self._kinds(found, original, update)
        self._in_progress.difference_update(keys)
        self.compared.update(dict.fromkeys(keys, found))
        return found

    def _kinds(self, found: Findings, original: Schema, update: Schema) -> Recursion[None]:
        shortcut = yield self._member(found, original, update)
        if shortcut:
            return
        combined = isinstance(original, Combined) and isinstance(update, Combined)
        if type(original) is not type(update) and not combined:
            if not _other_kind_is_compatible(original, update):
                found.add("TYPE_CHANGED")
            return
        _annotations(found, original, update)
        compare_kind = _COMPARED.get(type(original))
        if compare_kind is not None:
            yield compare_kind(self, found, original, update)

    def _member(self, found: Findings, original: Schema, update: Schema) -> Recursion[bool]:
        """Compare a schema with the members of a sum or product; return whether one of them decides."""
        if isinstance(update, Combined) and not isinstance(original, Combined):
            sum_type = update.criterion is not Criterion.ALL
            pairs = [(original, member) for member in update.subschemas]
            singleton, kind = len(pairs) == 1, "SUM_TYPE_EXTENDED"
        elif isinstance(original, Combined) and not isinstance(update, Combined):
            sum_type = original.criterion is Criterion.ALL
            pairs = [(member, update) for member in original.subschemas]
            singleton, kind = len(pairs) == 1, "PRODUCT_TYPE_NARROWED"
        else:
            return False
        for pair in pairs if singleton or sum_type else ():
            inner = yield self.of(*pair)
            if inner.compatible:
                found.include(inner)
                if not singleton:
                    found.add(kind)
                return True
        return False


def _other_kind_is_compatible(original: Schema, update: Schema) -> bool:
    if isinstance(original, Nothing) or isinstance(update, Empty):
        return True
    return original.annotations.connect_type == "bytes" == update.annotations.connect_type


def _annotations(found: Findings, original: Schema, update: Schema) -> None:
    for name in ("id", "title", "description", "default"):
        if getattr(original.annotations, name) != getattr(update.annotations, name):
            found.add(f"{name.upper()}_CHANGED")


def _not(comparison: Comparison, found: Findings, original: Not, update: Not) -> Recursion[None]:
    # What is forbidden compares the other way round.
    inner = yield comparison.of(update.schema, original.schema)
    found.add("NOT_TYPE_NARROWED" if inner.compatible else "NOT_TYPE_EXTENDED", "not")


def _no_keywords(found: Findings, original: Schema, update: Schema) -> None:
    """Compare kinds that have no keywords of their own."""


#: The comparison of two schemas of one kind that contain no other schemas.
_LEAVES: dict[type[Schema], Callable[..., None]] = {
    String: scalars.compare_strings,
    Number: scalars.compare_numbers,
    Const: scalars.compare_constants,
    Enum: scalars.compare_enums,
    Boolean: _no_keywords,
    Null: _no_keywords,
}
#: The comparison of two schemas of one kind that contain others; further kinds have nothing to compare.
_COMPARED: dict[type[Schema], Callable[..., Recursion[None]]] = {
    Combined: sums.compare,
    Not: _not,
    Object: objects.compare,
    Array: arrays.compare,
}
