"""`/subjects`: subjects, their versions, look-ups, registrations, deletes, tags."""

from __future__ import annotations

from moldau.registry.api.call import ALL, Call, Route
from moldau.registry.state import subjects
from moldau.registry.state.lookup import look_up
from moldau.registry.state.registering import register
from moldau.registry.state.registry import Decision, Registry
from moldau.registry.state.subjects import parse_version
from moldau.registry.state.tags import modify_tags


def _list(registry: Registry, call: Call) -> Decision:
    return subjects.list_subjects(
        registry,
        call.prefix(ALL),
        *call.page,
        access=call.access,
        deleted=call.flag("deleted"),
        deleted_only=call.flag("deletedOnly"),
    )


def _look_up(registry: Registry, call: Call) -> Decision:
    subject = call.subject(registry)
    normalize = call.flag("normalize") or bool(registry.config(subject).get("normalize"))
    return look_up(
        registry,
        call.schema(subject),
        normalize=normalize,
        deleted=call.flag("deleted"),
        format=call.text("format"),
    )


def _delete(registry: Registry, call: Call) -> Decision:
    return subjects.delete_subject(registry, call.subject(registry), permanent=call.flag("permanent"))


def _metadata(registry: Registry, call: Call) -> Decision:
    wanted = dict(zip(call.texts("key"), call.texts("value"), strict=False))
    return subjects.latest_with_metadata(
        registry, call.subject(registry), wanted, format=call.text("format"), deleted=call.flag("deleted")
    )


def _versions(registry: Registry, call: Call) -> Decision:
    return subjects.list_versions(
        registry,
        call.subject(registry),
        *call.page,
        deleted=call.flag("deleted"),
        deleted_only=call.flag("deletedOnly"),
        deleted_as_negative=call.flag("deletedAsNegative"),
    )


def _register(registry: Registry, call: Call) -> Decision:
    return register(
        registry,
        call.schema(call.subject(registry)),
        normalize=call.flag("normalize"),
        force=call.flag("force"),
        format=call.text("format"),
        given_subject=call.setting_scope or "",
    )


def _version(registry: Registry, call: Call) -> Decision:
    return subjects.get_version(
        registry,
        call.subject(registry),
        parse_version(call.parameters["version"]),
        format=call.text("format"),
        reference_format=call.text("referenceFormat"),
        deleted=call.flag("deleted"),
        tags=call.texts("findTags"),
    )


def _text(registry: Registry, call: Call) -> Decision:
    version = parse_version(call.parameters["version"])
    return subjects.get_text(
        registry, call.subject(registry), version, format=call.text("format"), deleted=call.flag("deleted")
    )


def _referenced_by(registry: Registry, call: Call) -> Decision:
    version = parse_version(call.parameters["version"])
    return subjects.referenced_by(
        registry, call.subject(registry), version, *call.page, deleted=call.flag("deleted")
    )


def _delete_version(registry: Registry, call: Call) -> Decision:
    version = parse_version(call.parameters["version"])
    return subjects.delete_version(
        registry, call.subject(registry), version, permanent=call.flag("permanent")
    )


def _tags(registry: Registry, call: Call) -> Decision:
    return modify_tags(
        registry, call.subject(registry), parse_version(call.parameters["version"]), call.json()
    )


_VERSION = "/subjects/{subject}/versions/{version}"

ROUTES = (
    Route("GET", "/subjects", "List subjects", _list, operation="GLOBAL_READ"),
    Route("POST", "/subjects/{subject}", "Look up a schema", _look_up, operation="SUBJECT_READ"),
    Route("DELETE", "/subjects/{subject}", "Delete a subject", _delete, True, "SUBJECT_DELETE"),
    Route(
        "GET",
        "/subjects/{subject}/metadata",
        "Get the latest version with metadata",
        _metadata,
        operation="SUBJECT_READ",
    ),
    Route("GET", "/subjects/{subject}/versions", "List versions", _versions, operation="SUBJECT_READ"),
    Route(
        "POST",
        "/subjects/{subject}/versions",
        "Register a schema",
        _register,
        True,
        "SUBJECT_WRITE",
    ),
    Route("GET", _VERSION, "Get a version", _version, operation="SUBJECT_READ"),
    Route("DELETE", _VERSION, "Delete a version", _delete_version, True, "SUBJECT_DELETE"),
    Route("GET", _VERSION + "/schema", "Get the schema of a version", _text, operation="SUBJECT_READ"),
    Route(
        "GET",
        _VERSION + "/referencedby",
        "List ids of schemas that refer to a version",
        _referenced_by,
        operation="SUBJECT_READ",
    ),
    Route("POST", _VERSION + "/tags", "Change the tags of a version", _tags, True, "SUBJECT_WRITE"),
)
