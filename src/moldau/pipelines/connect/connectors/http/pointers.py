"""JSON pointers (RFC 6901)."""

from __future__ import annotations

from typing import Any

from moldau.pipelines.connect.data.errors import ConfigError


def check_pointer(setting: str, pointer: str) -> None:
    if pointer and not pointer.startswith("/"):
        raise ConfigError.invalid(setting, pointer, "A JSON pointer begins with /")


def at_pointer(document: Any, pointer: str) -> Any:
    """Return the value at a pointer; None if there is none."""
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(document, dict):
            document = document.get(name)
        elif isinstance(document, list):
            document = _entry(document, name)
        else:
            return None
    return document


def _entry(entries: list[Any], name: str) -> Any:
    if name == "-" or not name.lstrip("-").isdecimal():
        return None
    index = int(name)
    return entries[index] if -len(entries) <= index < len(entries) else None
