"""The requests of the registry's REST API as data: method, path, body, and how the answer is read.

A function describes one operation as a `Call`; the clients send it and keep the answer as long as the call
says. Schemas by id never change. A registered schema keeps its id until it is deleted permanently.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from moldau.client.registry.types import (
    LATEST,
    Association,
    Compatibility,
    ContextId,
    RegisteredSchema,
    Schema,
    SubjectVersion,
)

T = TypeVar("T")
Version = int | str


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    method: str
    path: str
    read: Callable[[Any], T]
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    #: Under which key the answer is cached; None: it is not.
    cached_as: Hashable = None
    #: Whether the answer may change, so that it is cached for a limited time.
    changing: bool = False


def _path(*parts: object) -> str:
    return "".join(f"/{quote(str(part), safe='')}" for part in parts)


def _query(**values: object) -> dict[str, Any]:
    """Return the parameters that are set; true is written as JSON does."""
    return {
        name: "true" if value is True else value
        for name, value in values.items()
        if value not in (None, False)
    }


def _same(answer: Any) -> Any:
    return answer


# Schemas and versions.


def register(
    subject: str, schema: Schema, normalize: bool = False, propagate_tags: bool = False
) -> Call[RegisteredSchema]:
    """Register a schema under a subject, or find it there.

    With `propagate_tags`, a new version takes over the tags of the previous one.
    """
    return Call(
        "POST",
        _path("subjects", subject, "versions"),
        lambda answer: RegisteredSchema.of(answer, subject, schema),
        _query(normalize=normalize),
        schema.body() | ({"propagateSchemaTags": True} if propagate_tags else {}),
        ("registered", subject, schema.key, normalize, propagate_tags),
    )


def lookup(
    subject: str, schema: Schema, normalize: bool = False, deleted: bool = False
) -> Call[RegisteredSchema]:
    """Find the version of a schema under a subject."""
    return Call(
        "POST",
        _path("subjects", subject),
        lambda answer: RegisteredSchema.of(answer, subject, schema),
        _query(normalize=normalize, deleted=deleted),
        schema.body(),
        ("lookup", subject, schema.key, normalize, deleted),
    )


def schema_by_id(id: int, subject: str | None = None, format: str | None = None) -> Call[Schema]:
    """Return a schema by its id; the subject names the context of the id."""
    context = subject if subject is not None and subject.startswith(":.") else None
    return Call(
        "GET",
        _path("schemas", "ids", id),
        Schema.of,
        _query(subject=context, format=format),
        cached_as=("id", id, context, format),
    )


def schema_by_guid(guid: str, format: str | None = None) -> Call[Schema]:
    path = _path("schemas", "guids", guid)
    return Call("GET", path, Schema.of, _query(format=format), cached_as=("guid", guid, format))


def version(
    subject: str, version: Version = LATEST, deleted: bool = False, format: str | None = None
) -> Call[RegisteredSchema]:
    return Call(
        "GET",
        _path("subjects", subject, "versions", version),
        lambda answer: RegisteredSchema.of(answer, subject),
        _query(deleted=deleted, format=format),
        cached_as=("version", subject, version, deleted, format),
        changing=version in (LATEST, -1),
    )


def latest(subject: str, format: str | None = None) -> Call[RegisteredSchema]:
    """Return the latest version of a subject, cached for `cache.latest.ttl.sec`."""
    return version(subject, LATEST, format=format)


def latest_with_metadata(
    subject: str, metadata: Mapping[str, str], deleted: bool = False, format: str | None = None
) -> Call[RegisteredSchema]:
    """Return the latest version whose metadata has these properties."""
    return Call(
        "GET",
        _path("subjects", subject, "metadata"),
        lambda answer: RegisteredSchema.of(answer, subject),
        {**_query(deleted=deleted, format=format), "key": list(metadata), "value": list(metadata.values())},
        cached_as=("metadata", subject, tuple(sorted(metadata.items())), deleted, format),
        changing=True,
    )


def versions(subject: str, deleted: bool = False) -> Call[list[int]]:
    return Call("GET", _path("subjects", subject, "versions"), _same, _query(deleted=deleted))


def referenced_by(subject: str, version: Version) -> Call[list[int]]:
    """Return the ids of the schemas that reference a version."""
    return Call("GET", _path("subjects", subject, "versions", version, "referencedby"), _same)


def versions_of_id(
    id: int, deleted: bool = False, offset: int = 0, subject: str | None = None
) -> Call[list[SubjectVersion]]:
    """Return the versions with an id, from the position `offset` on; a registry returns 1,000 by default.

    The subject names the context of the id.
    """
    return Call(
        "GET",
        _path("schemas", "ids", id, "versions"),
        lambda answer: [SubjectVersion(one["subject"], one["version"]) for one in answer],
        _query(deleted=deleted, offset=offset, subject=subject),
    )


def ids_of_guid(guid: str) -> Call[list[ContextId]]:
    """Return the ids of a schema, one per context that has it."""
    return Call(
        "GET",
        _path("schemas", "guids", guid, "ids"),
        lambda answer: [ContextId(one.get("context") or ".", int(one["id"])) for one in answer],
    )


def subjects(prefix: str | None = None, deleted: bool = False) -> Call[list[str]]:
    return Call("GET", "/subjects", _same, _query(subjectPrefix=prefix, deleted=deleted))


def delete_subject(subject: str, permanent: bool = False) -> Call[list[int]]:
    return Call("DELETE", _path("subjects", subject), _same, _query(permanent=permanent))


def delete_version(subject: str, version: Version, permanent: bool = False) -> Call[int]:
    return Call("DELETE", _path("subjects", subject, "versions", version), _same, _query(permanent=permanent))


def schema_types() -> Call[list[str]]:
    return Call("GET", "/schemas/types", _same)


def contexts() -> Call[list[str]]:
    return Call("GET", "/contexts", _same)


# Compatibility, config and mode.


def test_compatibility(
    subject: str, schema: Schema, version: Version | None = LATEST, normalize: bool = False
) -> Call[Compatibility]:
    """Test a schema against a version of a subject, or against all (None), without registering it."""
    path = _path("compatibility", "subjects", subject, "versions")
    return Call(
        "POST",
        path if version is None else path + _path(version),
        lambda answer: Compatibility(answer["is_compatible"], list(answer.get("messages") or ())),
        _query(verbose=True, normalize=normalize),
        schema.body(),
    )


def config(subject: str | None = None, default_to_global: bool = True) -> Call[dict[str, Any]]:
    """Return the config of a subject, or the global one (None)."""
    if subject is None:
        return Call("GET", "/config", _same)
    return Call("GET", _path("config", subject), _same, _query(defaultToGlobal=default_to_global))


def set_config(subject: str | None, config: Mapping[str, Any]) -> Call[dict[str, Any]]:
    """Change the config of a subject (None: the global one), for example `{"compatibility": "FULL"}`."""
    return Call("PUT", "/config" if subject is None else _path("config", subject), _same, body=dict(config))


def delete_config(subject: str | None = None) -> Call[dict[str, Any]]:
    return Call("DELETE", "/config" if subject is None else _path("config", subject), _same)


def mode(subject: str | None = None, default_to_global: bool = True) -> Call[str]:
    def read(answer: Any) -> str:
        return str(answer["mode"])

    if subject is None:
        return Call("GET", "/mode", read)
    return Call("GET", _path("mode", subject), read, _query(defaultToGlobal=default_to_global))


def set_mode(subject: str | None, mode: str, force: bool = False) -> Call[str]:
    path = "/mode" if subject is None else _path("mode", subject)
    return Call("PUT", path, lambda answer: str(answer["mode"]), _query(force=force), {"mode": mode})


# Associations.


def associations(
    resource: str, namespace: str = "-", types: Sequence[str] = ("key", "value"), resource_type: str = "topic"
) -> Call[list[Association]]:
    """Return the subjects associated with a resource; the namespace of a topic is the cluster id."""
    return Call(
        "GET",
        _path("associations", "resources", namespace, resource),
        lambda answer: [
            Association(one["subject"], one["associationType"], one.get("lifecycle")) for one in answer
        ],
        {"resourceType": resource_type, "associationType": list(types)},
        cached_as=("associations", resource, namespace, tuple(types)),
        changing=True,
    )
