"""How deeply a JSON text may be nested: recursive functions need a limit below that of the Python stack."""

from __future__ import annotations

import re

from moldau.schemas.schema import InvalidSchema

_STRUCTURE = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[{]|[\]}]', re.DOTALL)


def check_depth(text: str, limit: int) -> None:
    """Raise `InvalidSchema` if a JSON text is nested more deeply than the limit."""
    if text.count("{") + text.count("[") <= limit:
        return
    depth = 0
    for token in _STRUCTURE.finditer(text):
        character = text[token.start()]
        if character in "[{":
            depth += 1
            if depth > limit:
                raise InvalidSchema(f"The schema is nested too deeply; the limit is {limit} levels")
        elif character != '"':
            depth -= 1
