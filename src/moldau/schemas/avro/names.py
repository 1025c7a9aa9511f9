"""The two rules for names: strict for new schemas, letters of all scripts for stored ones.

Each function returns what is wrong with a name, or None.
"""

from __future__ import annotations

import re
import unicodedata

_STRICT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*").fullmatch
_STRICT_START = re.compile(r"[A-Za-z_]").match


def strict_problem(name: str) -> str | None:
    """Check against the specification: ASCII letters, digits and underscores."""
    if _STRICT(name):
        return None
    if not name:
        return "Empty name"
    return f"Illegal character in: {name}" if _STRICT_START(name) else f"Illegal initial character: {name}"


def problem(name: str | None) -> str | None:
    """Check with letters and digits of all scripts in Unicode's basic multilingual plane."""
    if name is None:
        return "Null name"
    if _STRICT(name):
        return None
    if not name:
        return "Empty name"
    if not (_is_letter(name[0]) or name[0] == "_"):
        return f"Illegal initial character: {name}"
    for character in name[1:]:
        if not (_is_letter(character) or character == "_" or unicodedata.category(character) == "Nd"):
            return f"Illegal character in: {name}"
        if character > "\uffff":
            return f"Illegal character in: {name}"
    return None


def namespace_problem(full: str) -> str | None:
    """Check the parts of a full name before its last dot."""
    for part in full.split(".")[:-1]:
        if found := strict_problem(part):
            return f'Namespace part "{part}" is invalid: {found}'
    return None


def _is_letter(character: str) -> bool:
    return character <= "\uffff" and unicodedata.category(character)[0] == "L"
