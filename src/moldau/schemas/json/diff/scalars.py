"""Differences of strings, numbers, constants and enumerations."""

from __future__ import annotations

from decimal import Context, Decimal, InvalidOperation
from typing import Any

from moldau.schemas.json.diff.findings import Findings
from moldau.schemas.json.model import Const, Enum, Number, String

_EXACT = Context(prec=2000)


def compare_limit(found: Findings, kind: str, keyword: str, original: Any, update: Any) -> None:
    """Compare a limit as a floating-point number; `kind` is the beginning of the name of the kind."""
    if original is None or update is None:
        if original is not update:
            found.add(f"{kind}_ADDED" if original is None else f"{kind}_REMOVED", keyword)
        return
    before, after = float(original), float(update)
    if before < after:
        found.add(f"{kind}_INCREASED", keyword)
    elif before > after:
        found.add(f"{kind}_DECREASED", keyword)


def compare_strings(found: Findings, original: String, update: String) -> None:
    """Compare the keywords of strings."""
    compare_limit(found, "MAX_LENGTH", "maxLength", original.max_length, update.max_length)
    compare_limit(found, "MIN_LENGTH", "minLength", original.min_length, update.min_length)
    if original.pattern != update.pattern:
        change = "ADDED" if original.pattern is None else "REMOVED" if update.pattern is None else "CHANGED"
        found.add(f"PATTERN_{change}", "pattern")


def compare_numbers(found: Findings, original: Number, update: Number) -> None:
    """Compare the keywords of numbers."""
    compare_limit(found, "MAXIMUM", "maximum", original.maximum, update.maximum)
    compare_limit(found, "MINIMUM", "minimum", original.minimum, update.minimum)
    for limit in ("Maximum", "Minimum"):
        attribute, kind = f"exclusive_{limit.lower()}", f"EXCLUSIVE_{limit.upper()}"
        compare_limit(
            found, kind, f"exclusive{limit}", getattr(original, attribute), getattr(update, attribute)
        )
    _multiple_of(found, original.multiple_of, update.multiple_of)
    if original.integer != update.integer:
        found.add("TYPE_EXTENDED" if original.integer else "TYPE_NARROWED")


def _multiple_of(found: Findings, original: Any, update: Any) -> None:
    if original == update:
        return
    if original is None or update is None:
        found.add("MULTIPLE_OF_ADDED" if original is None else "MULTIPLE_OF_REMOVED", "multipleOf")
    elif _divides(original, update):
        found.add("MULTIPLE_OF_EXPANDED", "multipleOf")
    elif _divides(update, original):
        found.add("MULTIPLE_OF_REDUCED", "multipleOf")
    else:
        found.add("MULTIPLE_OF_CHANGED", "multipleOf")


def _divides(divisor: Any, number: Any) -> bool:
    if divisor == 0:
        return False
    try:
        return _EXACT.remainder(Decimal(number), Decimal(divisor)) == 0
    except InvalidOperation:
        # The quotient has more digits than any schema in use.
        return False


def compare_constants(found: Findings, original: Const, update: Const) -> None:
    """Compare `const`."""
    if original.value != update.value:
        found.add("ENUM_ARRAY_CHANGED", "const")


def compare_enums(found: Findings, original: Enum, update: Enum) -> None:
    """Compare `enum`."""
    if original.values != update.values:
        if update.values >= original.values:
            change = "EXTENDED"
        else:
            change = "NARROWED" if original.values >= update.values else "CHANGED"
        found.add(f"ENUM_ARRAY_{change}", "enum")
