"""IncrementalAlterConfigs (key 44), versions 0 to 1 (KIP-339): changes single configs of resources.

- 1: flexible

Log levels (BROKER_LOGGER) belong to one process and are changed here (KIP-412); the controller decides all
other changes.
"""

from __future__ import annotations

from moldau.base.errors import KafkaError
from moldau.config.dynamic import SET
from moldau.controller.configs.alter import incremental_alter_configs
from moldau.controller.configs.checks import check_log_levels
from moldau.metadata.image import ResourceType
from moldau.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from moldau.server.controller.channel import ControllerChannel
from moldau.server.dispatch.context import RequestContext
from moldau.server.handlers.alter_configs import split_by_broker
from moldau.server.log_levels import check_logger, set_level


async def handle(
    controller: ControllerChannel,
    node_id: int,
    context: RequestContext,
    request: IncrementalAlterConfigsRequest,
) -> IncrementalAlterConfigsResponse:
    loggers = [each for each in request.resources if each.resource_type == ResourceType.BROKER_LOGGER]
    others = [each for each in request.resources if each not in loggers]
    request.resources, refused = split_by_broker(node_id, context, others)
    response = IncrementalAlterConfigsResponse()
    if request.resources:
        response = await controller.decide(context, request, incremental_alter_configs)
    response.responses += [_alter_loggers(node_id, each, request.validate_only) for each in loggers]
    response.responses += [
        AlterConfigsResourceResponse(
            resource_type=each.resource_type,
            resource_name=each.resource_name,
            error_code=error.code,
            error_message=error.message,
        )
        for each, error in refused
    ]
    return response


def _alter_loggers(
    node_id: int, resource: AlterConfigsResource, validate_only: bool
) -> AlterConfigsResourceResponse:
    answer = AlterConfigsResourceResponse(
        resource_type=resource.resource_type, resource_name=resource.resource_name, error_message=None
    )
    try:
        check_log_levels(resource, node_id)
        for change in resource.configs:
            check_logger(change.name)
        if not validate_only:
            for change in resource.configs:
                set_level(change.name, change.value if change.config_operation == SET else None)
    except KafkaError as error:
        answer.error_code = error.code
        answer.error_message = error.message
    return answer
