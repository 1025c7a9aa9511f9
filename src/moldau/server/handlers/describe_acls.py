"""DescribeAcls (key 29), versions 1 to 3 (KIP-140): the selected ACLs, from the metadata of this node.

- 1: resource pattern type (KIP-290)
- 2: flexible
- 3: user resources (KIP-373)

SECURITY_DISABLED if this node has no authorizer.

Requires DESCRIBE on CLUSTER.
"""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.controller.security.acls import describe_acls
from moldau.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from moldau.security.acl.permissions import DESCRIBE_CLUSTER
from moldau.server.dispatch.context import RequestContext
from moldau.server.publisher import MetadataPublisher


def handle(
    metadata: MetadataPublisher, context: RequestContext, request: DescribeAclsRequest
) -> DescribeAclsResponse:
    context.require(DESCRIBE_CLUSTER)
    if context.listener.authorizer is None:
        raise KafkaError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured on the broker")
    return describe_acls(metadata.image, request)
