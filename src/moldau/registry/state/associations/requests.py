"""Requests that create or change the associations of one resource; errors 42212 name the invalid property."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from moldau.registry.state import errors
from moldau.registry.state.associations.queries import STRONG, WEAK
from moldau.registry.state.contracts import Json, boolean_of

TOPIC: Final = "topic"
_TYPES: Final = ("key", "value")
_MAX_NAME: Final = 256


class Association(NamedTuple):
    """One association of a request; None means that it is not given."""

    subject: str | None
    association_type: str
    lifecycle: str | None
    frozen: bool | None
    #: The body of a registration.
    schema: Json | None
    normalize: bool = False


class ResourceRequest(NamedTuple):
    name: str
    namespace: str
    resource_id: str | None
    resource_type: str
    associations: tuple[Association, ...]

    def default_subject(self, association_type: str) -> str:
        """The subject that a strong association has."""
        return f":.{self.namespace}:{self.name}-{association_type}"

    def reply(self, associations: list[Json]) -> Json:
        named = {
            "resourceName": self.name,
            "resourceNamespace": self.namespace,
            "resourceId": self.resource_id,
            "resourceType": self.resource_type,
        }
        reply: Json = {key: value for key, value in named.items() if value}
        return {**reply, "associations": associations} if associations else reply


def resource_of(body: object, *, dry_run: bool) -> ResourceRequest:
    """Parse and check which resource a request is about."""
    given = body if isinstance(body, dict) else {}
    name, namespace = _name(given, "resourceName"), _name(given, "resourceNamespace")
    resource_id = _text(given, "resourceId")
    if not dry_run and not resource_id:
        raise errors.invalid_association("resourceId", "cannot be null or empty")
    resource_type = _text(given, "resourceType") or TOPIC
    if resource_type != TOPIC:
        raise errors.invalid_association("resourceType", f"must be '{TOPIC}'")
    if not isinstance(given.get("associations"), list) or not given["associations"]:
        raise errors.invalid_association("associations", "cannot be null or empty")
    return ResourceRequest(name, namespace, resource_id, resource_type, ())


def resource_request(body: Json, *, create: bool, dry_run: bool) -> ResourceRequest:
    """Parse and check a request with its associations."""
    resource = resource_of(body, dry_run=dry_run)
    associations = tuple(_association(each, create) for each in body["associations"])
    _refuse_repeated_types(associations)
    if create:
        associations = tuple(_with_subject(resource, each) for each in associations)
    return resource._replace(associations=associations)


def with_defaults(association: Association, *, create: bool) -> Association:
    """Return a new association with its lifecycle; a schema makes it strong, and strong ones are frozen."""
    lifecycle, frozen = association.lifecycle, association.frozen
    if association.schema is not None:
        if not create:
            raise errors.invalid_association(
                "schema",
                "cannot be provided when adding an association to an existing topic; "
                "an association with a schema must be created with the topic",
            )
        if lifecycle == WEAK:
            raise errors.invalid_association("lifecycle", "cannot be WEAK when schema is provided")
        if frozen is False:
            raise errors.invalid_association("frozen", "cannot be false when a schema is provided")
        lifecycle = STRONG
    lifecycle = lifecycle or WEAK
    require_frozen(lifecycle, (lifecycle == STRONG) if frozen is None else frozen)
    return association._replace(lifecycle=lifecycle, frozen=lifecycle == STRONG)


def require_frozen(lifecycle: str, frozen: bool) -> None:
    """Strong associations are frozen, weak ones are not."""
    if frozen != (lifecycle == STRONG):
        shown = "true" if frozen else "false"
        raise errors.invalid_association(
            "frozen", f"association with lifecycle of {lifecycle} cannot be frozen={shown}"
        )


def _association(value: object, create: bool) -> Association:
    given = value if isinstance(value, dict) else {}
    subject = _text(given, "subject")
    if subject is not None and (not subject or any(ord(each) < 0x20 for each in subject)):
        raise errors.invalid_association("subject", "must not be empty")
    lifecycle = _text(given, "lifecycle")
    if lifecycle not in (None, STRONG, WEAK):
        raise errors.invalid_association("lifecycle", "must be either 'STRONG' or 'WEAK'")
    schema = given.get("schema")
    if schema is not None and not isinstance(schema, dict):
        raise errors.invalid_association("schema", "must be an object")
    association = Association(
        subject,
        _text(given, "associationType") or "value",
        lifecycle,
        boolean_of(given, "frozen"),
        schema,
        boolean_of(given, "normalize") or False,
    )
    if create:
        association = with_defaults(association, create=True)
    _check(association, create)
    return association


def _check(association: Association, create: bool) -> None:
    if association.association_type not in _TYPES:
        raise errors.invalid_association("associationType", "must be either 'key' or 'value'")
    if association.lifecycle == WEAK:
        if association.schema is not None:
            raise errors.invalid_association("lifecycle", "cannot be WEAK when schema is provided")
        if association.frozen:
            raise errors.invalid_association("frozen", "association with lifecycle of WEAK cannot be frozen")
        if create and association.subject is None:
            raise errors.invalid_association("subject", "must be provided for WEAK associations")


def _with_subject(request: ResourceRequest, association: Association) -> Association:
    default = request.default_subject(association.association_type)
    subject = association.subject or default
    if association.frozen and subject != default:
        raise errors.invalid_association("subject", f"frozen associations must use subject '{default}'")
    if association.lifecycle == WEAK and subject == default:
        raise errors.invalid_association("subject", f"WEAK associations cannot use subject '{default}'")
    return association._replace(subject=subject)


def _refuse_repeated_types(associations: Sequence[Association]) -> None:
    seen: set[str] = set()
    for each in associations:
        if each.association_type in seen:
            raise errors.invalid_association(
                "associationType",
                f"may only appear once per request, but '{each.association_type}' appears more than once",
            )
        seen.add(each.association_type)


def _name(given: Mapping[str, Any], field: str) -> str:
    name = _text(given, field)
    if not name:
        raise errors.invalid_association(field, "cannot be null or empty")
    if len(name) > _MAX_NAME:
        raise errors.invalid_association(field, f"exceeds max length of {_MAX_NAME}")
    for character in name:
        if not (character.isalnum() or character in "_-"):
            raise errors.invalid_association(field, f"illegal character '{character}'")
    return name


def _text(given: Mapping[str, Any], field: str) -> str | None:
    value = given.get(field)
    if value is not None and not isinstance(value, str):
        raise errors.invalid_association(field, "must be a string")
    return value
