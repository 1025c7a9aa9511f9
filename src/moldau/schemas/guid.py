"""The GUID of a schema: the MD5 of its text, references, metadata and rules.

Registries do not store it: every reader computes it, and serializers write it to record headers. It must
therefore be equal byte for byte in all registries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import md5
from typing import Any
from uuid import UUID

from moldau.schemas.schema import Reference

_RULE_SETS = ("migrationRules", "domainRules", "encodingRules")
#: Precedes metadata and rules, so that empty ones differ from missing ones.
_PRESENT = b"\x01"


def guid(
    canonical: str,
    references: Iterable[Reference] = (),
    metadata: Mapping[str, Any] | None = None,
    rule_set: Mapping[str, Any] | None = None,
) -> str:
    """Return the GUID of a schema; metadata and rules are the JSON objects of the REST API."""
    digest = md5(_utf8(canonical), usedforsecurity=False)
    for reference in references:
        digest.update(_utf8(reference.name))
        digest.update(_utf8(reference.subject))
        digest.update(reference.version.to_bytes(4, "big", signed=True))
    if metadata is not None:
        digest.update(_PRESENT + b"".join(_metadata(metadata)))
    if rule_set is not None:
        digest.update(_PRESENT + b"".join(_rule_set(rule_set)))
    return str(UUID(bytes=digest.digest()))


def _metadata(metadata: Mapping[str, Any]) -> Iterator[bytes]:
    tags: Mapping[str, Iterable[str]] = metadata.get("tags") or {}
    for path in _sorted(tags):
        yield _utf8(path)
        yield from map(_utf8, _sorted(tags[path]))
    yield from _pairs(metadata.get("properties") or {})
    yield from map(_utf8, _sorted(metadata.get("sensitive") or ()))


def _rule_set(rule_set: Mapping[str, Any]) -> Iterator[bytes]:
    for kind in _RULE_SETS:
        for rule in rule_set.get(kind) or ():
            yield from _rule(rule)
    yield _utf8(rule_set.get("enableAt") or "")


def _rule(rule: Mapping[str, Any]) -> Iterator[bytes]:
    yield _utf8(rule.get("name") or "")
    yield _utf8(rule.get("doc") or "")
    yield _utf8(rule.get("kind") or "TRANSFORM")
    yield _utf8(rule.get("mode") or "WRITEREAD")
    yield _utf8(rule.get("type") or "")
    yield from map(_utf8, _sorted(rule.get("tags") or ()))
    yield from _pairs(rule.get("params") or {})
    for text in ("expr", "onSuccess", "onFailure"):
        yield _utf8(rule.get(text) or "")
    if rule.get("disabled"):
        yield _PRESENT


def _pairs(values: Mapping[str, str]) -> Iterator[bytes]:
    for key in _sorted(values):
        yield _utf8(key)
        yield _utf8(values[key])


def _sorted(texts: Iterable[str]) -> list[str]:
    """Return the distinct texts in the order of Java's strings, which compare UTF-16 units."""
    return sorted(set(texts), key=lambda text: text.encode("utf-16-be", "surrogatepass"))


def _utf8(text: str) -> bytes:
    """Encode like Java, which writes a lone surrogate as a question mark."""
    return text.encode("utf-8", "replace")
