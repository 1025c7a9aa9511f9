"""ACLs: search, create one or several, delete."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

from moldau.client.admin.client import checked
from moldau.rest.errors import bad_request, invalid_payload
from moldau.rest.request import Request, Response, json_response
from moldau.rest.v3.resources import checked_cluster, collection, json_object, url
from moldau.security.acl.bindings import AclBinding, AclBindingFilter
from moldau.security.acl.enums import AclOperation, PatternType, PermissionType, ResourceType

E = TypeVar("E", bound=IntEnum)

_FIELDS: Final = (
    "resource_type",
    "resource_name",
    "pattern_type",
    "principal",
    "host",
    "operation",
    "permission",
)
_NULL: Final = "Null input provided. Data is required."
_MAX_IN_A_BATCH: Final = 1000


async def search(request: Request) -> Response:
    id = await checked_cluster(request)
    wanted = _filter(request, "ANY")
    found = await request.clients.admin.describe_acls(wanted)
    query = {
        "resource_type": wanted.resource_type.name,
        "resource_name": wanted.resource_name or "",
        "pattern_type": wanted.pattern_type.name,
        "principal": wanted.principal or "",
        "host": wanted.host or "",
        "operation": wanted.operation.name,
        "permission": wanted.permission_type.name,
    }
    self_url = f"{url(request, id, 'acls')}?{urlencode(query)}"
    return json_response(collection("KafkaAclList", self_url, _data(request, id, found)))


async def create(request: Request) -> Response:
    body = await request.json()
    if body is None:
        raise invalid_payload(_NULL)
    binding = _binding(body)
    id = await checked_cluster(request)
    checked(await request.clients.admin.create_acls([binding]))
    location = _self(request, id, binding).encode()
    return Response(201, b"", None, ((b"location", location),))


async def create_batch(request: Request) -> Response:
    body = await json_object(request, _NULL)
    entries = body.get("data")
    if not isinstance(entries, list) or not entries:
        raise invalid_payload("Empty input provided. Data is required.")
    if len(entries) > _MAX_IN_A_BATCH:
        raise invalid_payload(f"A batch must not have more than {_MAX_IN_A_BATCH} ACLs.")
    bindings = [_binding(each) for each in entries]
    await checked_cluster(request)
    checked(await request.clients.admin.create_acls(bindings))
    return Response(201, b"", None)


async def delete(request: Request) -> Response:
    wanted = _filter(request, "UNKNOWN")
    id = await checked_cluster(request)
    deleted = checked(await request.clients.admin.delete_acls([wanted]))[wanted]
    return json_response({"data": _data(request, id, deleted)})


def _filter(request: Request, default: str) -> AclBindingFilter:
    """Return the filter of the query; with the default UNKNOWN, the enumerations must be given."""
    missing = " unspecified or" if default == "UNKNOWN" else ""
    return AclBindingFilter(
        _member(ResourceType, "resource_type", request.query("resource_type", default), missing),
        request.query("resource_name") or None,
        _member(PatternType, "pattern_type", request.query("pattern_type", default), missing),
        request.query("principal") or None,
        request.query("host") or None,
        _member(AclOperation, "operation", request.query("operation", default), missing),
        _member(PermissionType, "permission", request.query("permission", default), missing),
    )


def _binding(entry: Any) -> AclBinding:
    if not isinstance(entry, dict):
        raise bad_request("An ACL must be an object.")
    for name in _FIELDS:
        if not isinstance(entry.get(name), str):
            if name == "resource_name" and entry["resource_type"].upper() == "CLUSTER":
                entry = {**entry, "resource_name": "kafka-cluster"}
                continue
            raise bad_request(f"{name} is required.")
    binding = AclBinding(
        _member(ResourceType, "resource_type", entry["resource_type"]),
        entry["resource_name"],
        _member(PatternType, "pattern_type", entry["pattern_type"]),
        entry["principal"],
        entry["host"],
        _member(AclOperation, "operation", entry["operation"]),
        _member(PermissionType, "permission", entry["permission"]),
    )
    for name, value in (
        ("resource_type", binding.resource_type),
        ("pattern_type", binding.pattern_type),
        ("operation", binding.operation),
        ("permission", binding.permission_type),
    ):
        if value.name in ("ANY", "MATCH"):
            raise bad_request(f"{name} cannot be {value.name}")
    return binding


def _member(kind: type[E], name: str, text: str, missing: str = "") -> E:
    found = kind.__members__.get(text.upper().replace("-", "_"))
    if found is None or found.name == "UNKNOWN":
        raise bad_request(f"{name} cannot be{missing} UNKNOWN")
    return found


def _data(request: Request, id: str, bindings: list[AclBinding]) -> list[dict[str, Any]]:
    ordered = sorted(
        bindings,
        key=lambda each: (
            each.resource_type,
            each.pattern_type,
            each.principal,
            each.host,
            each.operation,
            each.permission_type,
        ),
    )
    return [
        {
            "kind": "KafkaAcl",
            "metadata": {"self": _self(request, id, each), "resource_name": None},
            "cluster_id": id,
            "resource_type": each.resource_type.name,
            "resource_name": each.resource_name,
            "pattern_type": each.pattern_type.name,
            "principal": each.principal,
            "host": each.host,
            "operation": each.operation.name,
            "permission": each.permission_type.name,
        }
        for each in ordered
    ]


def _self(request: Request, id: str, each: AclBinding) -> str:
    query = {
        "resource_type": each.resource_type.name,
        "resource_name": each.resource_name,
        "pattern_type": each.pattern_type.name,
        "principal": each.principal,
        "host": each.host,
        "operation": each.operation.name,
        "permission": each.permission_type.name,
    }
    return f"{url(request, id, 'acls')}?{urlencode(query)}"
