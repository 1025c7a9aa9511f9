"""All message classes, found in the packages."""

from __future__ import annotations

import importlib
import pkgutil

import moldau.protocol.messages
import moldau.protocol.stored
from moldau.protocol.schema import Message


def all_messages() -> dict[str, type[Message]]:
    """Return the classes of `messages/` and `stored/` by name."""
    found = {}
    for package in (moldau.protocol.messages, moldau.protocol.stored):
        for entry in pkgutil.iter_modules(package.__path__):
            module = importlib.import_module(f"{package.__name__}.{entry.name}")
            for value in vars(module).values():
                if isinstance(value, type) and issubclass(value, Message) and value is not Message:
                    found[value.__name__] = value
    return found


def every_version() -> list[tuple[type[Message], int]]:
    return [
        (message, version)
        for _, message in sorted(all_messages().items())
        for version in range(message.VERSIONS.first, message.VERSIONS.last + 1)
    ]
