"""ApiVersions (key 18), versions 0 to 4: what this listener serves, and the cluster's features."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from moldau.base.errors import ErrorCode
from moldau.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from moldau.server.dispatch.api_versions import api_versions_response
from moldau.server.dispatch.context import RequestContext

if TYPE_CHECKING:
    from moldau.server.node import Node

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(node: Node, context: RequestContext, request: ApiVersionsRequest) -> ApiVersionsResponse:
    software = (request.client_software_name, request.client_software_version)
    if context.api_version >= 3:
        if not all(_SOFTWARE.fullmatch(word) for word in software):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        context.connection.client_software = software
    return api_versions_response(
        context.api_version, node.apis_of(context.listener_name), node.image, node.metadata.kraft_version
    )
