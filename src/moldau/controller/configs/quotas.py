"""AlterClientQuotas and DescribeClientQuotas. Quotas are stored here; brokers enforce them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from moldau.base.errors import ErrorCode, KafkaError
from moldau.controller.errors import check_record_count
from moldau.controller.state import ControllerState, DecisionContext
from moldau.metadata.image import MetadataImage, QuotaEntity, quota_entity
from moldau.metadata.records import MetadataRecord
from moldau.protocol.messages import alter_client_quotas as alter
from moldau.protocol.messages import describe_client_quotas as describe
from moldau.protocol.stored.metadata import ClientQuotaRecord, EntityData
from moldau.statemachine.decision import Decision

USER, CLIENT_ID, IP = "user", "client-id", "ip"
_ENTITY_TYPES = (USER, CLIENT_ID, IP)
#: Quotas and their largest integers; None for those that may be fractional.
_CLIENT_QUOTAS: dict[str, int | None] = {
    "producer_byte_rate": 2**63 - 1,
    "consumer_byte_rate": 2**63 - 1,
    "request_percentage": None,
    "controller_mutation_rate": None,
}
_IP_QUOTAS: dict[str, int | None] = {"connection_creation_rate": 2**31 - 1}
_TYPE_NAMES = {2**63 - 1: "a LONG", 2**31 - 1: "an INT"}

EXACT, DEFAULT, SPECIFIED = range(3)


def alter_client_quotas(
    state: ControllerState, request: alter.AlterClientQuotasRequest, context: DecisionContext
) -> Decision[MetadataRecord, alter.AlterClientQuotasResponse]:
    records: list[MetadataRecord] = []
    entries = []
    seen: set[QuotaEntity] = set()
    for entry in request.entries:
        # As in Kafka, the last of several parts of one type counts.
        entity = quota_entity({part.entity_type: part.entity_name for part in entry.entity}.items())
        parts = [alter.EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
        answer = alter.ResponseEntryData(entity=parts, error_message=None)
        try:
            if entity in seen:
                raise _refused(f"Ignoring duplicate entity {_shown(entity)}")
            seen.add(entity)
            records += _alter(state, entity, entry.ops)
        except KafkaError as error:
            answer.error_code, answer.error_message = error.code, error.message
        entries.append(answer)
    check_record_count(len(records))
    response = alter.AlterClientQuotasResponse(entries=entries)
    return Decision([] if request.validate_only else records, response)


def _refused(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def _shown(entity: QuotaEntity) -> str:
    parts = ", ".join(f"{kind}={'null' if name is None else name}" for kind, name in entity)
    return f"ClientQuotaEntity(entries={{{parts}}})"


def _alter(
    state: ControllerState, entity: QuotaEntity, operations: Sequence[alter.OpData]
) -> list[MetadataRecord]:
    keys = [operation.key for operation in operations]
    for key in keys:
        if keys.count(key) > 1:
            raise _refused(f"Duplicate quota key {key} not updating quota for this entity {_shown(entity)}")
    allowed = _allowed_quotas(entity)
    current = state.image.client_quotas.get(entity, {})
    records: list[MetadataRecord] = []
    for operation in operations:
        key, value = operation.key, operation.value
        if operation.remove:
            if key in current:
                records.append(_record(entity, key, remove=True))
            continue
        _check_value(allowed, key, value)
        if current.get(key) != value:
            records.append(_record(entity, key, value))
    return records


def _record(entity: QuotaEntity, key: str, value: float = 0.0, *, remove: bool = False) -> ClientQuotaRecord:
    parts = [EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
    return ClientQuotaRecord(entity=parts, key=key, value=value, remove=remove)


def _allowed_quotas(entity: QuotaEntity) -> dict[str, int | None]:
    """Return the quotas that an entity may have; raise KafkaError if the entity is invalid."""
    if not entity:
        raise _refused("Invalid empty client quota entity")
    kinds = [kind for kind, _ in entity]
    for kind, name in entity:
        if kind not in _ENTITY_TYPES:
            raise _refused(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise _refused(f"Empty {kind} not supported")
    if IP not in kinds:
        return _CLIENT_QUOTAS
    if len(kinds) > 1:
        raise _refused(
            "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"
        )
    _check_ip(entity[0][1])
    return _IP_QUOTAS


def _check_ip(address: str | None) -> None:
    """Check an IP address; unlike Apache Kafka, host names are not resolved."""
    import ipaddress

    try:
        if address is not None:
            ipaddress.ip_address(address)
    except ValueError as error:
        raise _refused(f"{address} is not a valid IP or resolvable host.") from error


def _check_value(allowed: dict[str, int | None], key: str, value: float) -> None:
    if key not in allowed:
        raise _refused(f"Invalid configuration key {key}")
    if not value > 0:
        raise _refused(f"Quota {key} must be greater than 0")
    largest = allowed[key]
    if largest is None:
        return
    if value > largest:
        raise _refused(f"Proposed value for {key} is too large for {_TYPE_NAMES[largest]}.")
    if math.fmod(value, 1.0) > 1e-6:
        raise _refused(f"{key} cannot be a fractional value.")


def describe_client_quotas(
    image: MetadataImage, request: describe.DescribeClientQuotasRequest
) -> describe.DescribeClientQuotasResponse:
    """Return the quotas of all entities that match the filter."""
    try:
        exact, any_name = _filter(request.components)
    except KafkaError as error:
        return describe.DescribeClientQuotasResponse(
            error_code=error.code, error_message=error.message, entries=None
        )
    entries = []
    for entity, quotas in image.client_quotas.items():
        if _matches(dict(entity), exact, any_name, request.strict):
            entries.append(
                describe.EntryData(
                    entity=[describe.EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
                    values=[describe.ValueData(key=key, value=value) for key, value in quotas.items()],
                )
            )
    return describe.DescribeClientQuotasResponse(entries=entries)


def _filter(components: Sequence[describe.ComponentData]) -> tuple[dict[str, str | None], set[str]]:
    """Return the entity types with an exact name, and those with any name."""
    exact: dict[str, str | None] = {}
    any_name: set[str] = set()
    for component in components:
        kind = component.entity_type
        if not kind:
            raise _refused("Invalid empty entity type.")
        if kind in exact or kind in any_name:
            raise _refused(f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in _ENTITY_TYPES:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        _check_match(component)
        if component.match_type == SPECIFIED:
            any_name.add(kind)
        else:
            exact[kind] = component.match
    kinds = exact.keys() | any_name
    if IP in kinds and len(kinds) > 1:
        raise _refused(
            "Invalid entity filter component combination. IP filter component should not be used with user "
            "or clientId filter component."
        )
    return exact, any_name


def _check_match(component: describe.ComponentData) -> None:
    match component.match_type:
        case 0 if component.match is None:
            raise _refused("Request specified MATCH_TYPE_EXACT, but set match string to null.")
        case 1 if component.match is not None:
            raise _refused("Request specified MATCH_TYPE_DEFAULT, but also specified a match string.")
        case 2 if component.match is not None:
            raise _refused("Request specified MATCH_TYPE_SPECIFIED, but also specified a match string.")
        case 0 | 1 | 2:
            return
        case other:
            raise _refused(f"Unknown match type {other}")


def _matches(
    entity: dict[str, str | None], exact: dict[str, str | None], any_name: set[str], strict: bool
) -> bool:
    if strict and len(entity) != len(exact) + len(any_name):
        return False
    if any(kind not in entity or entity[kind] != name for kind, name in exact.items()):
        return False
    return all(kind in entity for kind in any_name)
