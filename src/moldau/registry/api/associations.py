"""`/associations`: which subjects the topics have, one resource at a time and in batches.

The requests of a batch are decided one after the other, each on the state that the one before left behind. A
batch is answered with status 207 and one result or error for each. If this instance stops leading after it
has written a part, the rest is answered with errors: a batch that is forwarded then would be applied twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from moldau.http.errors import ApiError
from moldau.registry.api.call import Call, Route
from moldau.registry.log.election import NotLeader
from moldau.registry.log.forwarding import UNKNOWN_LEADER
from moldau.registry.service import RegistryService
from moldau.registry.state import errors, replies
from moldau.registry.state.associations import queries
from moldau.registry.state.associations.changes import associate, dissociate
from moldau.registry.state.associations.queries import Wanted
from moldau.registry.state.associations.requests import TOPIC, ResourceRequest, resource_of, resource_request
from moldau.registry.state.contracts import Json, boolean_of
from moldau.registry.state.names import normalize
from moldau.registry.state.registry import Decision, Registry
from moldau.registry.state.requests import strings_field
from moldau.registry.state.subjects import page

_RESOURCE: Final = "/associations/resources/{resource}"
_MULTI_STATUS: Final = 207


def _wanted(call: Call) -> Wanted:
    return Wanted(
        call.text("resourceType") or TOPIC, call.texts("associationType"), call.text("lifecycle") or None
    )


def _page(registry: Registry, call: Call, found: list[Json]) -> Decision:
    return Decision((), page(_visible(call, found), *call.page, registry.settings.search_limit))


def _visible(call: Call, associations: list[Json]) -> list[Json]:
    return [each for each in associations if not call.access.is_denied(each["subject"])]


def _by_subject(registry: Registry, call: Call) -> Decision:
    subject = normalize(call.setting_scope or "")
    return _page(registry, call, queries.of_subject(registry, subject, _wanted(call)))


def _by_name(registry: Registry, call: Call) -> Decision:
    namespace, name = call.parameters["namespace"], call.parameters["name"]
    return _page(registry, call, queries.of_resource_name(registry, namespace, name, _wanted(call)))


def _by_id(registry: Registry, call: Call) -> Decision:
    return _page(registry, call, queries.of_resource_id(registry, call.parameters["resource"], _wanted(call)))


def _context(call: Call) -> str:
    return call.text("context") or call.context or ""


def _create(registry: Registry, call: Call) -> Decision:
    dry_run = call.flag("dryRun")
    request = resource_request(call.json(), create=True, dry_run=dry_run)
    return associate(registry, _context(call), request, create=True, dry_run=dry_run, access=call.access)


def _update(registry: Registry, call: Call) -> Decision:
    body, resource_id, dry_run = call.json(), call.parameters["resource"], call.flag("dryRun")
    if isinstance(body, dict) and body.setdefault("resourceId", resource_id) != resource_id:
        raise errors.invalid_association(
            "resourceId",
            "Resource ID in the path parameter does not match the resource ID in the request body",
        )
    request = resource_request(body, create=False, dry_run=dry_run)
    return associate(registry, _context(call), request, create=False, dry_run=dry_run, access=call.access)


def _delete(registry: Registry, call: Call) -> Decision:
    wanted = Wanted(call.text("resourceType") or TOPIC, call.texts("associationType"))
    return dissociate(
        registry,
        call.parameters["resource"],
        wanted,
        cascade=call.flag("cascadeLifecycle"),
        dry_run=call.flag("dryRun"),
        access=call.access,
    )


# Batches


def _requests(call: Call) -> list[Any]:
    body = call.json()
    requests = body.get("requests") if isinstance(body, dict) else None
    if not isinstance(requests, list) or not requests:
        raise errors.invalid_association("requests", "cannot be null or empty")
    return [each if isinstance(each, dict) else {} for each in requests]


def _batch_get(registry: Registry, call: Call) -> Decision:
    results = []
    for query in _requests(call):
        try:
            results.append({"result": _found(registry, call, query)})
        except ApiError as error:
            results.append({"error": _error(error)})
    return Decision((), {"results": results}, _MULTI_STATUS)


def _found(registry: Registry, call: Call, query: Json) -> Json:
    resource_id, name, namespace = (
        str(query.get(field) or "") for field in ("resourceId", "resourceName", "resourceNamespace")
    )
    if not resource_id and not name:
        raise errors.invalid_association("resourceId", "either resourceId or resourceName must be specified")
    if name and not namespace:
        raise errors.invalid_association(
            "resourceNamespace", "resourceNamespace is required when resourceName is specified"
        )
    resource_type = query.get("resourceType") or TOPIC
    wanted = Wanted(resource_type, strings_field(query, "associationTypes"), query.get("lifecycle"))
    if resource_id:
        found = queries.of_resource_id(registry, resource_id, wanted)
    else:
        found = queries.of_resource_name(registry, namespace, name, wanted)
    found = _visible(call, found)
    first = found[0] if found else {}
    named = ResourceRequest(
        name or first.get("resourceName", ""),
        namespace or first.get("resourceNamespace", ""),
        resource_id or first.get("resourceId"),
        resource_type,
        (),
    )
    return named.reply([_shown(registry, each, call.flag("includeSchemas")) for each in found])


def _shown(registry: Registry, association: Json, include_schema: bool) -> Json:
    shown = {field: association[field] for field in ("subject", "associationType", "lifecycle", "frozen")}
    latest = registry.store.version(association["subject"], -1) if include_schema else None
    return shown if latest is None else {**shown, "schema": replies.of_version(shown["subject"], latest)}


def _error(error: ApiError) -> Json:
    return {"error_code": error.error_code, "message": error.message}


async def _batch_mutate(service: RegistryService, call: Call) -> Decision:
    writes, results = _Writes(service), []
    for each in _requests(call):
        try:
            results.append({"result": await _mutated(writes, call, each)})
        except ApiError as error:
            results.append({"error": _error(error)})
    return Decision((), {"results": results}, _MULTI_STATUS)


async def _mutated(writes: _Writes, call: Call, body: Json) -> Json:
    """Run the operations of one resource; neighbours of the same type are one request."""
    dry_run = call.flag("dryRun")
    resource = resource_of(body, dry_run=dry_run)
    for kind, run in _runs(body["associations"]):
        decide = _operation(call, {**body, "associations": run}, kind, dry_run)
        await writes.add(decide, heavy=call.is_heavy(writes.service.registry), dry_run=dry_run)

    def changed(registry: Registry) -> Decision:
        found = [] if dry_run else queries.of_resource_id(registry, resource.resource_id or "")
        return Decision((), resource.reply([_shown(registry, each, False) for each in _visible(call, found)]))

    reply: Json = (await writes.service.read(changed)).reply
    return reply


class _Writes:
    """The writes of a batch, which can be forwarded as a whole only before the first of them."""

    def __init__(self, service: RegistryService) -> None:
        self.service = service
        self._has_written = False

    async def add(self, decide: Callable[[Registry], Decision], *, heavy: bool, dry_run: bool) -> None:
        try:
            await self.service.require_leader()
            if heavy:
                await self.service.precompute(decide)
                await self.service.require_leader()
        except NotLeader as error:
            if not self._has_written:
                raise
            raise ApiError(500, UNKNOWN_LEADER, "The leader has changed; repeat this request.") from error
        # A write that fails may have taken effect, too.
        self._has_written = self._has_written or not dry_run
        await self.service.write(decide)


def _runs(operations: list[Any]) -> list[tuple[str, list[Json]]]:
    runs: list[tuple[str, list[Json]]] = []
    for operation in operations:
        kind = str(operation.get("opType")).upper() if isinstance(operation, dict) else ""
        if kind not in ("CREATE", "UPSERT", "DELETE"):
            raise errors.invalid_association("opType", "must be CREATE, UPSERT or DELETE")
        if runs and runs[-1][0] == kind and kind != "DELETE":
            runs[-1][1].append(operation)
        else:
            runs.append((kind, [operation]))
    return runs


def _operation(call: Call, body: Json, kind: str, dry_run: bool) -> Any:
    def decide(registry: Registry) -> Decision:
        if kind == "DELETE":
            [operation] = body["associations"]
            wanted = Wanted(body.get("resourceType") or TOPIC, [operation.get("associationType") or "value"])
            cascade = boolean_of(operation, "cascadeLifecycle") or False
            return dissociate(
                registry,
                str(body.get("resourceId")),
                wanted,
                cascade=cascade,
                dry_run=dry_run,
                access=call.access,
            )
        create = kind == "CREATE"
        request = resource_request(body, create=create, dry_run=dry_run)
        return associate(
            registry, _context(call), request, create=create, dry_run=dry_run, access=call.access
        )

    return decide


_READ, _WRITE = "GLOBAL_READ", "GLOBAL_COMPATIBILITY_WRITE"

ROUTES = (
    Route(
        "GET",
        "/associations/subjects/{subject}",
        "List the associations of a subject",
        _by_subject,
        operation="SUBJECT_READ",
    ),
    Route(
        "GET",
        "/associations/resources/{namespace}/{name}",
        "List the associations of a resource by name",
        _by_name,
        operation=_READ,
    ),
    Route("GET", _RESOURCE, "List the associations of a resource by id", _by_id, operation=_READ),
    Route("POST", "/associations", "Create associations", _create, True, _WRITE),
    Route("PUT", _RESOURCE, "Create or change associations", _update, True, _WRITE),
    Route("DELETE", _RESOURCE, "Delete associations", _delete, True, _WRITE),
    Route(
        "POST", "/associations:batchGet", "Get associations of several resources", _batch_get, operation=_READ
    ),
    Route(
        "POST",
        "/associations:batchMutate",
        "Change associations of several resources",
        _batch_get,
        True,
        _WRITE,
        run=_batch_mutate,
    ),
)
