"""Whether a resource may have the settings a change leads to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from moldau.base.errors import ErrorCode, KafkaError
from moldau.config.client_metrics import validate_client_metrics_configs
from moldau.config.dynamic import validate_broker_configs, validate_topic_configs
from moldau.config.group import validate_group_configs
from moldau.controller.state import ControllerState
from moldau.controller.topics.names import topic_name_problem
from moldau.metadata.features import CORDONED_DIRECTORIES_SUPPORTED
from moldau.metadata.image import ConfigResource, ResourceType
from moldau.protocol.stored.metadata import ConfigRecord

MAX_VALUE_LENGTH = 32_767
MIN_ISR = "min.insync.replicas"


def check_change(
    state: ControllerState,
    resource: ConfigResource,
    changes: Sequence[ConfigRecord],
    configs: Mapping[str, str],
    *,
    newly_created: bool = False,
) -> None:
    """Refuse a change; `configs` is the complete set the resource would have."""
    for change in changes:
        _check_record(state, resource, change)
    match resource.type:
        case ResourceType.TOPIC:
            _check_topic(state, resource.name, configs, newly_created)
        case ResourceType.BROKER:
            _check_broker(state, resource.name, configs)
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
    validate_topic_configs(configs, state.config)
    if not newly_created and name not in state.image.topics.by_name:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")


def _check_broker(state: ControllerState, name: str, configs: Mapping[str, str]) -> None:
    """The broker that was asked has checked that it is the one that is named."""
    if name:
        _node_id(name)
    validate_broker_configs(state.config, configs, per_broker=bool(name))


def check_node_name(name: str, node_id: int, wrong: str) -> None:
    """A resource that stands for a node must be named by the id of the node that was asked."""
    if _node_id(name) != node_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, wrong.format(node_id, name))


def _node_id(name: str) -> int:
    try:
        return int(name)
    except ValueError as error:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}"
        ) from error
