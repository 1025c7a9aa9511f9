"""`/schemas`: schemas of all subjects, by id and by GUID."""

from __future__ import annotations

from moldau.registry.api.call import Call, Route, integer
from moldau.registry.state import schemas
from moldau.registry.state.registry import Decision, Registry


def _list(registry: Registry, call: Call) -> Decision:
    wanted = schemas.Filter(
        call.prefix(""),
        call.flag("aliases"),
        call.flag("deleted"),
        call.flag("latestOnly"),
        call.text("ruleType"),
        call.text("resourceType") or None,
        call.texts("associationType"),
        [each.upper() for each in call.texts("lifecycle")],
    )
    return schemas.list_schemas(registry, wanted, *call.page, access=call.access)


def _id(call: Call) -> int:
    return integer(call.parameters["id"])


def _by_id(registry: Registry, call: Call) -> Decision:
    return schemas.get_by_id(
        registry,
        _id(call),
        call.subject_filter,
        access=call.access,
        format=call.text("format"),
        reference_format=call.text("referenceFormat"),
        tags=call.texts("findTags"),
        max_id=call.flag("fetchMaxId"),
    )


def _text(registry: Registry, call: Call) -> Decision:
    return schemas.get_text_by_id(
        registry, _id(call), call.subject_filter, access=call.access, format=call.text("format")
    )


def _subjects(registry: Registry, call: Call) -> Decision:
    return schemas.subjects_of_id(
        registry,
        _id(call),
        call.subject_filter,
        *call.page,
        access=call.access,
        deleted=call.flag("deleted"),
    )


def _versions(registry: Registry, call: Call) -> Decision:
    return schemas.versions_of_id(
        registry,
        _id(call),
        call.subject_filter,
        *call.page,
        access=call.access,
        deleted=call.flag("deleted"),
    )


def _by_guid(registry: Registry, call: Call) -> Decision:
    return schemas.get_by_guid(
        registry, call.parameters["guid"], access=call.access, format=call.text("format")
    )


def _ids(registry: Registry, call: Call) -> Decision:
    return schemas.ids_of_guid(registry, call.parameters["guid"], access=call.access)


def _types(registry: Registry, call: Call) -> Decision:
    return schemas.list_types()


_READ = "GLOBAL_READ"

ROUTES = (
    Route("GET", "/schemas", "List schemas", _list, operation=_READ),
    Route("GET", "/schemas/types", "List schema types", _types),
    Route("GET", "/schemas/ids/{id}", "Get a schema by id", _by_id, operation=_READ, immutable=True),
    Route(
        "GET",
        "/schemas/ids/{id}/schema",
        "Get the text of a schema by id",
        _text,
        operation=_READ,
        immutable=True,
    ),
    Route("GET", "/schemas/ids/{id}/subjects", "List the subjects of an id", _subjects, operation=_READ),
    Route("GET", "/schemas/ids/{id}/versions", "List the versions with an id", _versions, operation=_READ),
    Route("GET", "/schemas/guids/{guid}", "Get a schema by GUID", _by_guid, operation=_READ, immutable=True),
    Route("GET", "/schemas/guids/{guid}/ids", "List the ids of a GUID", _ids, operation=_READ),
)
