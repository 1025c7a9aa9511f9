"""Names of Connect in the languages of schemas: split at dots, and made valid if wanted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final
from urllib.parse import quote_plus

from moldau.pipelines.connect.data.schema import Schema

_VALID: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NO_PARAMETERS: Final[Mapping[str, str]] = MappingProxyType({})
_OTHER: Final = re.compile(r"[^A-Za-z0-9_]")


def parameters_of(schema: Schema) -> Mapping[str, str]:
    return schema.parameters or _NO_PARAMETERS


def is_valid(name: str) -> bool:
    """Return whether a name consists of letters, digits and underscores and begins with no digit."""
    return _VALID.fullmatch(name) is not None


def scrubbed(name: str) -> str:
    """Return a valid name: the URL encoding with underscores, as Confluent's `scrub.invalid.names`."""
    if not name or _VALID.fullmatch(name):
        return name
    encoded = quote_plus(name, safe="*").replace("~", "%7E")
    if encoded[0].isdigit():
        encoded = f"x{encoded}"
    return _OTHER.sub("_", encoded)


def split(full: str, scrub: bool) -> tuple[str | None, str]:
    """Return the namespace, None without one, and the name."""
    parts = [scrubbed(each) if scrub else each for each in full.split(".")]
    return (".".join(parts[:-1]) or None), parts[-1]
