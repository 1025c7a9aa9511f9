"""Collect the schemas that a schema references, directly and indirectly.

The work is a generator that asks for versions and receives them, so that the blocking and the asynchronous
client share it: `calls` out, answers in.
"""

from __future__ import annotations

from collections.abc import Generator

from moldau.client.registry import calls
from moldau.client.registry.calls import Call
from moldau.client.registry.types import RegisteredSchema, RegistryError, Schema

#: References of references of references; a cycle also ends here.
_MAX_DEPTH = 64

Needed = Generator[Call[RegisteredSchema], RegisteredSchema, dict[str, str]]


def texts_of(schema: Schema) -> Needed:
    """Return name → text of all referenced schemas, each after the ones that it uses itself."""
    found: dict[str, str] = {}
    yield from _collect(schema, found, set(), 0)
    return found


def _collect(schema: Schema, found: dict[str, str], open_names: set[str], depth: int) -> Needed:
    if depth > _MAX_DEPTH:
        raise RegistryError(422, 42201, f"References are nested more than {_MAX_DEPTH} levels deep")
    for reference in schema.references:
        if reference.name in found or reference.name in open_names:
            continue
        open_names.add(reference.name)
        registered = yield calls.version(reference.subject, reference.version, deleted=True)
        yield from _collect(registered.schema, found, open_names, depth + 1)
        found[reference.name] = registered.schema.text
    return found
