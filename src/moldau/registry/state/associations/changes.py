"""Creating, changing and deleting the associations of a resource.

Schemas of a request are registered by the same decision, so that either everything is stored or nothing. An
association changes what can be done with its subject, so it needs SUBJECT_WRITE on the subject; a cascading
delete also needs SUBJECT_DELETE.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from uuid import UUID

from moldau.registry.authorization import Access, Operation
from moldau.registry.state import errors, records
from moldau.registry.state.associations.queries import (
    STRONG,
    WEAK,
    Wanted,
    of_resource_id,
    of_resource_name,
    of_subject,
)
from moldau.registry.state.associations.requests import (
    Association,
    ResourceRequest,
    require_frozen,
    with_defaults,
)
from moldau.registry.state.contracts import Json
from moldau.registry.state.lookup import find
from moldau.registry.state.names import in_context, normalize, relative_to
from moldau.registry.state.records import KeyValue
from moldau.registry.state.registering import register, require_writable
from moldau.registry.state.registry import Decision, Registry
from moldau.registry.state.requests import SchemaRequest, schema_request
from moldau.registry.state.subjects import delete_subject, removal_of


def associate(
    registry: Registry,
    context: str,
    request: ResourceRequest,
    *,
    create: bool,
    dry_run: bool,
    access: Access,
) -> Decision:
    """Create the associations of a resource, or (without `create`) also change existing ones."""
    associations = [_resolved(registry, context, each, access) for each in request.associations]
    existing = _existing(registry, request, create, dry_run)
    checked: list[Association] = []
    unchanged: set[str] = set()
    for each in associations:
        old = existing.get(each.association_type)
        each = _checked(registry, request, each, old, create, access)
        checked.append(each)
        if old is not None and _is_equivalent(old, each):
            unchanged.add(each.association_type)
    _require_one_lifecycle(registry, request, checked, existing)
    for each in checked:
        _check_subject(registry, request, each, existing.get(each.association_type))
    written, schemas = _registered(registry, checked)
    if dry_run:
        return Decision((), request.reply([]))
    shown = []
    for each in checked:
        if each.association_type not in unchanged:
            value = _value(request, each, existing.get(each.association_type))
            written.append(records.association_record(value))
            shown.append(_info(value, schemas.get(each.association_type)))
    return Decision(tuple(written), request.reply(shown))


def dissociate(
    registry: Registry, resource_id: str, wanted: Wanted, *, cascade: bool, dry_run: bool, access: Access
) -> Decision:
    """Delete associations; `cascade` also deletes the subjects of strong ones."""
    found = of_resource_id(registry, resource_id, wanted)
    if not found:
        raise errors.association_not_found(resource_id)
    written: list[KeyValue] = []
    for each in found:
        access.require(Operation.SUBJECT_WRITE, each["subject"])
        require_writable(registry, each["subject"])
        if each["frozen"] and not cascade:
            raise errors.association_frozen(each["associationType"], each["subject"])
        written.append(records.association_tombstone(each))
        if cascade and each["lifecycle"] == STRONG and registry.mode(each["subject"]) != "IMPORT":
            access.require(Operation.SUBJECT_DELETE, each["subject"])
            written += _deleted_subject(registry, each["subject"])
    return Decision(() if dry_run else tuple(written), None, 204)


def _resolved(registry: Registry, context: str, association: Association, access: Access) -> Association:
    """Return an association with the full name of its subject; an alias is replaced."""
    if association.subject is None:
        return association
    name = normalize(in_context(context, association.subject) if context else association.subject)
    alias = registry.store.configs.get(name, {}).get("alias")
    subject = relative_to(name, alias) if alias else name
    for each in (name, subject):
        access.require(Operation.SUBJECT_WRITE, each)
    require_writable(registry, subject)
    return association._replace(subject=subject)


def _existing(registry: Registry, request: ResourceRequest, create: bool, dry_run: bool) -> dict[str, Json]:
    wanted = Wanted(request.resource_type)
    if request.resource_id:
        found = of_resource_id(registry, request.resource_id, wanted)
    elif create and dry_run:
        found = of_resource_name(registry, request.namespace, request.name, wanted)
    else:
        found = []
    return {each["associationType"]: each for each in found}


def _checked(
    registry: Registry,
    request: ResourceRequest,
    each: Association,
    old: Json | None,
    create: bool,
    access: Access,
) -> Association:
    """Check an association against the existing one, and complete it."""
    if old is None and not create:
        each = with_defaults(each, create=False)
    default = request.default_subject(each.association_type)
    if each.subject is None:
        if old is None and each.lifecycle != STRONG:
            raise errors.invalid_association("subject", "must be provided for WEAK associations")
        each = each._replace(subject=default if old is None else old["subject"])
    _require_access(access, each, old)
    lifecycle = each.lifecycle or (None if old is None else old["lifecycle"])
    if lifecycle is None:
        raise errors.invalid_association("lifecycle", "lifecycle must be set")
    if lifecycle == WEAK and each.subject == default:
        raise errors.invalid_association("subject", f"WEAK associations cannot use subject '{default}'")
    frozen = bool(each.frozen) if old is None else bool(old["frozen"])
    require_frozen(lifecycle, frozen if each.frozen is None else each.frozen)
    if frozen and each.subject != default:
        raise errors.invalid_association("subject", f"frozen associations must use subject '{default}'")
    if old is None:
        _check_new(registry, each, lifecycle, create)
    elif _is_equivalent(old, each):
        if create and each.schema is not None and not _has_schema(registry, each):
            raise errors.association_exists(each.association_type, request.name)
    else:
        _check_change(request, each, old, create)
    return each


def _require_access(access: Access, each: Association, old: Json | None) -> None:
    for subject in (each.subject, each.subject if old is None else old["subject"]):
        access.require(Operation.SUBJECT_WRITE, subject)
    if each.schema is not None:
        access.require_references(each.subject or "", _schema_request(each).content.references)


def _check_new(registry: Registry, each: Association, lifecycle: str, create: bool) -> None:
    subject = each.subject or ""
    importing = registry.mode(subject) == "IMPORT"
    if not create and lifecycle == STRONG and not importing:
        raise errors.invalid_association(
            "lifecycle",
            "cannot be STRONG when creating an association; STRONG associations must be created with the "
            "topic",
        )
    if not each.frozen or importing:
        return
    if create and each.schema is None:
        raise errors.invalid_association(
            "schema", "schema must be provided when creating a frozen association"
        )
    latest = registry.store.version(subject, -1)
    if latest is not None and (latest.number != 1 or not _has_schema(registry, each)):
        raise errors.invalid_association(
            "frozen", "cannot create a frozen association when schemas already exist in the subject"
        )


def _check_change(request: ResourceRequest, each: Association, old: Json, create: bool) -> None:
    if create:
        raise errors.association_exists(each.association_type, old["resourceName"])
    if each.lifecycle is None and each.schema is None:
        raise errors.invalid_association(
            "lifecycle", "at least lifecycle or schema must be provided for update"
        )
    if each.subject != old["subject"]:
        raise errors.invalid_association(
            "subject",
            f"subject of association cannot be changed from '{old['subject']}' to '{each.subject}'",
        )
    if each.frozen is not None and each.frozen != old["frozen"]:
        raise errors.invalid_association("frozen", "frozen attribute of association cannot be changed")
    if old["frozen"]:
        raise errors.association_frozen(each.association_type, old["subject"])


def _is_equivalent(old: Json, each: Association) -> bool:
    return (
        old["subject"] == each.subject
        and each.lifecycle in (None, old["lifecycle"])
        and each.frozen in (None, old["frozen"])
    )


def _require_one_lifecycle(
    registry: Registry, request: ResourceRequest, checked: Sequence[Association], existing: Mapping[str, Json]
) -> None:
    """A topic is owned (STRONG) or shared (WEAK) in all of its associations."""
    lifecycles = {kind: old["lifecycle"] for kind, old in existing.items()}
    lifecycles.update((each.association_type, each.lifecycle) for each in checked if each.lifecycle)
    if len(set(lifecycles.values())) > 1:
        shown = ", ".join(f"{kind}={lifecycle}" for kind, lifecycle in lifecycles.items())
        raise errors.invalid_association(
            "lifecycle", f"all associations for a resource must have the same lifecycle, but got {shown}"
        )


def _check_subject(registry: Registry, request: ResourceRequest, each: Association, old: Json | None) -> None:
    subject = each.subject or ""
    if each.schema is not None and registry.mode(subject) == "IMPORT":
        raise errors.invalid_association(
            "schema", f"cannot be provided while subject '{subject}' is in IMPORT mode"
        )
    if each.schema is None and registry.store.version(subject, -1) is None:
        raise errors.no_active_version(subject)
    others = [other for other in of_subject(registry, subject) if old is None or not _is_same(other, old)]
    lifecycle = each.lifecycle or (WEAK if old is None else old["lifecycle"])
    if lifecycle == STRONG:
        if others:
            raise errors.subject_associated(subject)
        if _is_referenced(registry, request, subject):
            raise errors.subject_referenced(subject)
    elif any(other["lifecycle"] == STRONG for other in others):
        raise errors.subject_strongly_associated(subject)


def _is_same(one: Json, other: Json) -> bool:
    return all(one[key] == other[key] for key in ("resourceId", "resourceType", "associationType"))


def _is_referenced(registry: Registry, request: ResourceRequest, subject: str) -> bool:
    found = registry.store.subjects.get(subject)
    versions = () if found is None else found.versions
    if any(registry.store.referencing(subject, number, deleted=False) for number in versions):
        return True
    given = (each for each in request.associations if each.schema is not None)
    return any(
        relative_to(each.subject or "", reference.subject) == subject
        for each in given
        for reference in schema_request(each.subject or "", each.schema).content.references
    )


def _has_schema(registry: Registry, each: Association) -> bool:
    """Return whether the subject has the schema of the request."""
    if each.schema is None:
        return False
    request = _schema_request(each)
    config = registry.config(request.subject)
    normalized = each.normalize or bool(config.get("normalize"))
    return find(registry, config, request, normalize=normalized, deleted=False) is not None


def _schema_request(each: Association) -> SchemaRequest:
    return schema_request(each.subject or "", each.schema)


def _registered(
    registry: Registry, associations: Sequence[Association]
) -> tuple[list[KeyValue], dict[str, Json]]:
    """Return the records of the schemas of a request, and the schemas as replies show them."""
    written: list[KeyValue] = []
    schemas: dict[str, Json] = {}
    for each in associations:
        if each.schema is None:
            continue
        decision = register(registry, _schema_request(each), normalize=each.normalize)
        new, reply = list(decision.records), decision.reply
        taken = [other for other in schemas.values() if other["id"] == reply["id"]]
        if new and taken and taken[0]["guid"] != reply["guid"]:
            # Both decisions saw the same state; the second schema has the next id.
            reply = {**reply, "id": reply["id"] + 1}
            key, value = new[-1]
            new[-1] = KeyValue(key, records.encode({**records.decode(value or b""), "id": reply["id"]}))
        written += [record for record in new if record not in written]
        schemas[each.association_type] = {"subject": each.subject, **reply}
    return written, schemas


def _value(request: ResourceRequest, each: Association, old: Json | None) -> Json:
    if old is not None:
        changed = {"lifecycle": each.lifecycle or old["lifecycle"]}
        return {**old, **changed, "frozen": old["frozen"] if each.frozen is None else each.frozen}
    value = {
        "resourceName": request.name,
        "resourceNamespace": request.namespace,
        "resourceId": request.resource_id,
        "resourceType": request.resource_type,
        "associationType": each.association_type,
        "subject": each.subject,
        "lifecycle": each.lifecycle,
        "frozen": bool(each.frozen),
    }
    # The same in every instance that repeats the decision.
    digest = hashlib.md5(records.encode(value), usedforsecurity=False).digest()
    return {"guid": str(UUID(bytes=digest)), **value}


def _info(value: Json, schema: Json | None) -> Json:
    fields = ("subject", "associationType", "lifecycle", "frozen")
    info = {field: value[field] for field in fields}
    return info if schema is None else {**info, "schema": schema}


def _deleted_subject(registry: Registry, subject: str) -> list[KeyValue]:
    """Return the records that delete a subject softly and permanently."""
    found = registry.store.subjects.get(subject)
    if found is None:
        return []
    written: list[KeyValue] = []
    if found.live:
        written += delete_subject(registry, subject, permanent=False, associated=True).records
    return written + removal_of(registry, subject, found.versions)
