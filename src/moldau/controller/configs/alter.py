"""IncrementalAlterConfigs, AlterConfigs, and the configs of new topics.

All changes of a resource are made, or none; the resulting configs are validated. Broker configs are written
even if they do not change, because this makes brokers reload the files they name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from moldau.base.errors import ErrorCode, KafkaError
from moldau.config.broker.definitions import BROKER_CONFIGS
from moldau.config.definition import ConfigKey, ConfigType
from moldau.config.dynamic import APPEND, DELETE, SET, SUBTRACT
from moldau.config.topic import TOPIC_CONFIGS
from moldau.controller.configs.checks import MIN_ISR, check_change, check_log_levels, unknown_resource_type
from moldau.controller.errors import check_record_count
from moldau.controller.state import ControllerState, DecisionContext
from moldau.metadata.image import ConfigResource, ResourceType
from moldau.metadata.records import MetadataRecord
from moldau.protocol.messages import alter_configs as legacy
from moldau.protocol.messages import incremental_alter_configs as incremental
from moldau.protocol.stored.metadata import ClearElrRecord, ConfigRecord
from moldau.statemachine.decision import Decision

_OPERATIONS = {SET: "SET", DELETE: "DELETE", APPEND: "APPEND", SUBTRACT: "SUBTRACT"}
_CHANGEABLE = frozenset(
    {ResourceType.TOPIC, ResourceType.BROKER, ResourceType.GROUP, ResourceType.CLIENT_METRICS}
)
_KEYS: dict[int, Mapping[str, ConfigKey]] = {
    ResourceType.TOPIC: TOPIC_CONFIGS,
    ResourceType.BROKER: BROKER_CONFIGS,
}


def incremental_alter_configs(
    state: ControllerState, request: incremental.IncrementalAlterConfigsRequest, context: DecisionContext
) -> Decision[MetadataRecord, incremental.IncrementalAlterConfigsResponse]:
    def decide(resource: incremental.AlterConfigsResource) -> list[ConfigRecord]:
        nulls = [c.name for c in resource.configs if c.config_operation != DELETE and c.value is None]
        _check_entries(resource.configs, nulls)
        if resource.resource_type == ResourceType.BROKER_LOGGER:
            check_log_levels(resource, state.node_id)
            return []
        return _change(state, resource)

    records, outcomes = _each_resource(request.resources, decide)
    responses = [
        incremental.AlterConfigsResourceResponse(
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            error_code=code,
            error_message=message,
        )
        for resource, (code, message) in zip(request.resources, outcomes, strict=True)
    ]
    response = incremental.IncrementalAlterConfigsResponse(responses=responses)
    return Decision([] if request.validate_only else _with_cleared_elr(state, records), response)


def alter_configs(
    state: ControllerState, request: legacy.AlterConfigsRequest, context: DecisionContext
) -> Decision[MetadataRecord, legacy.AlterConfigsResponse]:
    def decide(resource: legacy.AlterConfigsResource) -> list[ConfigRecord]:
        _check_entries(resource.configs, [c.name for c in resource.configs if c.value is None])
        return _replace(state, resource)

    records, outcomes = _each_resource(request.resources, decide)
    responses = [
        legacy.AlterConfigsResourceResponse(
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            error_code=code,
            error_message=message,
        )
        for resource, (code, message) in zip(request.resources, outcomes, strict=True)
    ]
    response = legacy.AlterConfigsResponse(responses=responses)
    return Decision([] if request.validate_only else _with_cleared_elr(state, records), response)


def new_topic_config_records(
    state: ControllerState, topic: str, configs: Mapping[str, str]
) -> list[MetadataRecord]:
    """Return the config records of a new topic, validated."""
    if not configs:
        return []
    resource = ConfigResource(ResourceType.TOPIC, topic)
    records = [_record(resource, name, configs[name]) for name in sorted(configs)]
    check_change(state, resource, records, configs, newly_created=True)
    return _with_cleared_elr(state, records)


class _Resource(Protocol):
    resource_type: int
    resource_name: str


class _Entry(Protocol):
    name: str


R = TypeVar("R", bound=_Resource)


def _each_resource(
    resources: Sequence[R], decide: Callable[[R], list[ConfigRecord]]
) -> tuple[list[ConfigRecord], list[tuple[int, str | None]]]:
    """Return the records of all valid changes, and error code and message of every resource."""
    times = Counter((resource.resource_type, resource.resource_name) for resource in resources)
    records: list[ConfigRecord] = []
    outcomes: list[tuple[int, str | None]] = []
    for resource in resources:
        try:
            if times[resource.resource_type, resource.resource_name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            records += decide(resource)
            outcomes.append((ErrorCode.NONE, None))
        except KafkaError as error:
            outcomes.append((error.code, error.message))
    check_record_count(len(records))
    return records, outcomes


def _check_entries(entries: Sequence[_Entry], nulls: Sequence[str]) -> None:
    if len({entry.name for entry in entries}) < len(entries):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    if nulls:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}")


def _change(state: ControllerState, wanted: incremental.AlterConfigsResource) -> list[ConfigRecord]:
    resource = _changeable(wanted)
    current = state.image.config(resource.type, resource.name)
    records = []
    configs = dict(current)
    for change in wanted.configs:
        value = _new_value(resource, change, current.get(change.name))
        if value is None:
            configs.pop(change.name, None)
        else:
            configs[change.name] = value
        if value != current.get(change.name) or resource.type == ResourceType.BROKER:
            records.append(_record(resource, change.name, value))
    check_change(state, resource, records, configs)
    return records


def _replace(state: ControllerState, wanted: legacy.AlterConfigsResource) -> list[ConfigRecord]:
    """Replace all configs of a resource; configs that are not given are removed."""
    resource = _changeable(wanted)
    current = state.image.config(resource.type, resource.name)
    configs = {entry.name: entry.value for entry in wanted.configs if entry.value is not None}
    is_broker = resource.type == ResourceType.BROKER
    records = [
        _record(resource, name, value)
        for name, value in configs.items()
        if value != current.get(name) or is_broker
    ]
    records += [_record(resource, name, None) for name in current if name not in configs]
    check_change(state, resource, records, configs)
    return records


def _changeable(wanted: _Resource) -> ConfigResource:
    if wanted.resource_type not in _CHANGEABLE:
        raise unknown_resource_type(wanted.resource_type)
    return ConfigResource(wanted.resource_type, wanted.resource_name)


def _record(resource: ConfigResource, name: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=resource.type, resource_name=resource.name, name=name, value=value)


def _new_value(
    resource: ConfigResource, change: incremental.AlterableConfig, current: str | None
) -> str | None:
    operation = change.config_operation
    if operation not in _OPERATIONS:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown operations type {operation}")
    if operation == DELETE:
        return None
    given = change.value or ""
    if operation == SET:
        return given
    key = _KEYS.get(resource.type, {}).get(change.name)
    if key is None or key.type is not ConfigType.LIST:
        raise KafkaError(ErrorCode.INVALID_CONFIG, _not_a_list(resource, change.name, operation))
    text = key.default_text if current is None else current
    entries = [entry for entry in (text or "").split(",") if entry]
    if operation == APPEND:
        entries += [entry for entry in dict.fromkeys(given.split(",")) if entry not in entries]
    else:
        entries = [entry for entry in entries if entry not in given.split(",")]
    return ",".join(entries)


def _not_a_list(resource: ConfigResource, name: str, operation: int) -> str:
    """Use the error message of the broker, which validates its own configs before the controller."""
    word = _OPERATIONS[operation]
    if resource.type == ResourceType.BROKER:
        return f"Config value {word.lower()} is not allowed for config key: {name}"
    return f"Can't {word} to key {name} because its type is not LIST."


def _with_cleared_elr(state: ControllerState, records: Iterable[ConfigRecord]) -> list[MetadataRecord]:
    """Clear the ELR of topics whose `min.insync.replicas` changes: it was chosen by the old value."""
    written: list[MetadataRecord] = list(records)
    if state.elr_enabled:
        for record in list(written):
            if isinstance(record, ConfigRecord) and record.name == MIN_ISR:
                is_topic = record.resource_type == ResourceType.TOPIC
                written.append(ClearElrRecord(topic_name=record.resource_name if is_topic else ""))
    return written
