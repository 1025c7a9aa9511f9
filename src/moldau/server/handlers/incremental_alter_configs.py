"""IncrementalAlterConfigs (key 44), versions 0 to 1: set, delete, append to and subtract from single configs.

Log levels belong to one process and are changed here; everything else is decided by the controller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.base.errors import ErrorCode, KafkaError
from moldau.metadata.image import ResourceType
from moldau.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from moldau.server.context import RequestContext
from moldau.server.loggers import check_logger, set_level

if TYPE_CHECKING:
    from moldau.server.node import Node

SET = 0
DELETE = 1


async def handle(
    node: Node, context: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    loggers = [each for each in request.resources if each.resource_type == ResourceType.BROKER_LOGGER]
    request.resources = [each for each in request.resources if each not in loggers]
    response = IncrementalAlterConfigsResponse()
    if request.resources:
        response = await node.controller_channel.incremental_alter_configs(context, request)
    response.responses += [_alter_loggers(node, each, request.validate_only) for each in loggers]
    return response


def _alter_loggers(
    node: Node, resource: AlterConfigsResource, validate_only: bool
) -> AlterConfigsResourceResponse:
    answer = AlterConfigsResourceResponse(
        resource_type=resource.resource_type, resource_name=resource.resource_name, error_message=None
    )
    try:
        if resource.resource_name != str(node.id):
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Unexpected broker id, expected {node.id}, but received {resource.resource_name}",
            )
        wanted = {config.name: _level(config.config_operation, config.value) for config in resource.configs}
        for name, level in wanted.items():
            check_logger(name, level)
        if not validate_only:
            for name, level in wanted.items():
                set_level(name, level)
    except KafkaError as error:
        answer.error_code = error.code
        answer.error_message = error.message
    return answer


def _level(operation: int, value: str | None) -> str | None:
    if operation == DELETE:
        return None
    if operation != SET or value is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A log level can only be set or deleted")
    return value
