"""Levels of loggers, which clients change as BROKER_LOGGER resources.

They are checked here and applied by the node that was asked; no record is written, they last as long as it
runs.
"""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.config.dynamic import APPEND, DELETE, SET, SUBTRACT
from moldau.controller.configs.checks import check_node_name
from moldau.protocol.messages.incremental_alter_configs import AlterConfigsResource

ROOT_LOGGER = "root"
LEVELS = ("DEBUG", "ERROR", "FATAL", "INFO", "TRACE", "WARN")
_NAMES = {APPEND: "APPEND", SUBTRACT: "SUBTRACT"}


def check_log_levels(resource: AlterConfigsResource, node_id: int) -> None:
    check_node_name(resource.resource_name, node_id, "Unexpected node id. Expected {}, but received {}")
    for change in resource.configs:
        operation = change.config_operation
        if operation in _NAMES:
            raise _refused(f"{_NAMES[operation]} operation is not allowed for the BROKER_LOGGER resource")
        if operation not in (SET, DELETE):
            raise _refused(
                f"Unknown operation type {operation} is not allowed for the BROKER_LOGGER resource"
            )
        if operation == DELETE and change.name == ROOT_LOGGER:
            raise _refused("Removing the log level of the root logger is not allowed")
        if operation == SET and change.value not in LEVELS:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"Cannot set the log level of {change.name} to {change.value} as it is not a supported log "
                f"level. Valid log levels are {', '.join(LEVELS)}",
            )


def _refused(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
