"""Validation of config changes, and of log levels (BROKER_LOGGER, KIP-412).

Log levels are not stored: the node that receives the request applies them until it stops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from moldau.base.errors import ErrorCode, KafkaError
from moldau.config.client_metrics import validate_client_metrics_configs
from moldau.config.dynamic import (
    APPEND,
    DELETE,
    SET,
    SUBTRACT,
    validate_broker_configs,
    validate_topic_configs,
)
from moldau.config.group import validate_group_configs
from moldau.controller.state import ControllerState
from moldau.controller.topics.names import topic_name_problem
from moldau.metadata.features import CORDONED_DIRECTORIES_SUPPORTED
from moldau.metadata.image import ConfigResource, ResourceType
from moldau.protocol.messages.incremental_alter_configs import AlterConfigsResource
from moldau.protocol.stored.metadata import ConfigRecord

MAX_VALUE_LENGTH = 32_767
MIN_ISR = "min.insync.replicas"
ROOT_LOGGER = "root"
LEVELS = ("DEBUG", "ERROR", "FATAL", "INFO", "TRACE", "WARN")
_LIST_OPERATIONS = {APPEND: "APPEND", SUBTRACT: "SUBTRACT"}


def check_change(
    state: ControllerState,
    resource: ConfigResource,
    changes: Sequence[ConfigRecord],
    configs: Mapping[str, str],
    *,
    newly_created: bool = False,
) -> None:
    """Raise KafkaError for an invalid change; `configs` are all resulting configs of the resource."""
    for change in changes:
        _check_record(state, resource, change)
    match resource.type:
        case ResourceType.TOPIC:
            _check_topic(state, resource.name, configs, newly_created)
        case ResourceType.BROKER:
            _check_broker(state, resource.name, changes, configs)
        case ResourceType.GROUP:
            if not resource.name:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
            validate_group_configs(configs, state.config.values)
        case ResourceType.CLIENT_METRICS:
            validate_client_metrics_configs(resource.name, configs)
        case _:
            raise unknown_resource_type(resource.type)


def unknown_resource_type(resource_type: int) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource_type}")


def _check_record(state: ControllerState, resource: ConfigResource, change: ConfigRecord) -> None:
    is_broker = resource.type == ResourceType.BROKER
    if is_broker and change.name == MIN_ISR and state.elr_enabled:
        if resource.name:
            raise _invalid("Broker-level min.insync.replicas cannot be altered while ELR is enabled.")
        if change.value is None:
            raise _invalid("Cluster-level min.insync.replicas cannot be removed while ELR is enabled.")
    cordons = is_broker and change.name == "cordoned.log.dirs"
    if cordons and state.metadata_version < CORDONED_DIRECTORIES_SUPPORTED:
        raise _invalid(
            "The cordoned.log.dirs configuration value cannot be set because it requires metadata.version >= "
            "4.3-IV0"
        )
    if change.value is not None and len(change.value) > MAX_VALUE_LENGTH:
        raise _invalid(
            "The configuration value cannot be added because it exceeds the maximum value size of "
            f"{MAX_VALUE_LENGTH} bytes."
        )


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, message)


def _check_topic(state: ControllerState, name: str, configs: Mapping[str, str], newly_created: bool) -> None:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    problem = topic_name_problem(name)
    if problem is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    existing = {} if newly_created else state.image.topic_config(name)
    validate_topic_configs(configs, state.config, existing)
    if not newly_created and name not in state.image.topics.by_name:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")


def _check_broker(
    state: ControllerState, name: str, changes: Sequence[ConfigRecord], configs: Mapping[str, str]
) -> None:
    """Validate broker configs; the receiving broker has checked that the name is its own id."""
    if name:
        _node_id(name)
    stored = configs.keys() - {change.name for change in changes}
    validate_broker_configs(state.config, configs, per_broker=bool(name), stored=stored)


def check_node_name(name: str, node_id: int, wrong: str) -> None:
    """Check that a resource is named by the id of the node that received the request."""
    if _node_id(name) != node_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, wrong.format(node_id, name))


def _node_id(name: str) -> int:
    try:
        return int(name)
    except ValueError as error:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}"
        ) from error


def check_log_levels(resource: AlterConfigsResource, node_id: int) -> None:
    check_node_name(resource.resource_name, node_id, "Unexpected node id. Expected {}, but received {}")
    for change in resource.configs:
        operation = change.config_operation
        if operation in _LIST_OPERATIONS:
            raise _invalid_request(
                f"{_LIST_OPERATIONS[operation]} operation is not allowed for the BROKER_LOGGER resource"
            )
        if operation not in (SET, DELETE):
            raise _invalid_request(
                f"Unknown operation type {operation} is not allowed for the BROKER_LOGGER resource"
            )
        if operation == DELETE and change.name == ROOT_LOGGER:
            raise _invalid_request("Removing the log level of the root logger is not allowed")
        if operation == SET and change.value not in LEVELS:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"Cannot set the log level of {change.name} to {change.value} as it is not a supported log "
                f"level. Valid log levels are {', '.join(LEVELS)}",
            )


def _invalid_request(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
