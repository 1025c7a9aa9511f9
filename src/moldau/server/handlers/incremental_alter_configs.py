"""IncrementalAlterConfigs (key 44), versions 0 to 1 (KIP-339): changes single configs of resources.

- 1: flexible

Log levels (BROKER_LOGGER) belong to one process and are changed here (KIP-412); the controller decides all
other changes.

Requires for each resource ALTER_CONFIGS on TOPIC, ALTER_CONFIGS on GROUP, or ALTER_CONFIGS on CLUSTER for
brokers, log levels and client metrics; log levels of a controller require CLUSTER_ACTION on CLUSTER.
"""

from __future__ import annotations

from moldau.base.errors import KafkaError
from moldau.config.dynamic import SET, Operation
from moldau.controller.configs.alter import incremental_alter_configs
from moldau.controller.configs.checks import check_log_levels
from moldau.metadata.image import ResourceType
from moldau.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from moldau.security.acl.permissions import ALTER_CLUSTER_CONFIGS, CLUSTER_ACTION
from moldau.server.authentication.store_changes import StoreChanges
from moldau.server.controller.authorization import Authorized, unchanged
from moldau.server.controller.channel import ControllerChannel
from moldau.server.dispatch.context import RequestContext
from moldau.server.handlers.alter_configs import PERMISSIONS, split_by_broker, split_by_permission
from moldau.server.log_levels import check_logger, set_level
from moldau.server.settings import BROKER


async def handle(
    controller: ControllerChannel,
    node_id: int,
    stores: StoreChanges,
    context: RequestContext,
    request: IncrementalAlterConfigsRequest,
) -> IncrementalAlterConfigsResponse:
    loggers = [each for each in request.resources if each.resource_type == ResourceType.BROKER_LOGGER]
    others = [each for each in request.resources if each not in loggers]
    request.resources, refused = split_by_broker(node_id, context, others)
    # The contents of a file are only for clients that may alter the configs; the controller refuses others.
    may_alter = context.allows(ALTER_CLUSTER_CONFIGS, log_denied=False)
    for each in list(request.resources) if may_alter else ():
        try:
            await _check_stores(stores, each)
        except KafkaError as error:
            request.resources.remove(each)
            refused.append((each, error))
    response = IncrementalAlterConfigsResponse()
    if request.resources:
        response = await controller.decide(context, request, incremental_alter_configs, _authorize)
    altered = [_alter_loggers(node_id, context, each, request.validate_only) for each in loggers]
    response.responses = [*response.responses, *altered, *(_refused(*each) for each in refused)]
    return response


def _authorize(
    context: RequestContext, request: IncrementalAlterConfigsRequest
) -> Authorized[IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse]:
    accepted, refused = split_by_permission(context, PERMISSIONS, request.resources)
    if not refused:
        return Authorized(request, unchanged)

    def complete(response: IncrementalAlterConfigsResponse) -> IncrementalAlterConfigsResponse:
        response.responses = [*response.responses, *(_refused(*each) for each in refused)]
        return response

    allowed = IncrementalAlterConfigsRequest(resources=accepted, validate_only=request.validate_only)
    return Authorized(allowed, complete)


def _refused(resource: AlterConfigsResource, error: KafkaError) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        error_code=error.code,
        error_message=error.message,
    )


async def _check_stores(stores: StoreChanges, resource: AlterConfigsResource) -> None:
    """Check new key and trust stores, which only this broker can read."""
    if resource.resource_type == ResourceType.BROKER:
        operations = [Operation(each.name, each.config_operation, each.value) for each in resource.configs]
        await stores.check_operations(resource.resource_name, operations)


def _alter_loggers(
    node_id: int, context: RequestContext, resource: AlterConfigsResource, validate_only: bool
) -> AlterConfigsResourceResponse:
    answer = AlterConfigsResourceResponse(
        resource_type=resource.resource_type, resource_name=resource.resource_name, error_message=None
    )
    try:
        context.require(ALTER_CLUSTER_CONFIGS if context.listener.role == BROKER else CLUSTER_ACTION)
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
