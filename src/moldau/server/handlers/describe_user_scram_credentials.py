"""DescribeUserScramCredentials (key 50), version 0 (KIP-554): SCRAM mechanisms and iterations of users.

Requires DESCRIBE on CLUSTER.
"""

from __future__ import annotations

from moldau.controller.security.scram import describe_user_scram_credentials
from moldau.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from moldau.security.acl.permissions import DESCRIBE_CLUSTER
from moldau.server.dispatch.context import RequestContext
from moldau.server.publisher import MetadataPublisher


def handle(
    metadata: MetadataPublisher, context: RequestContext, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    context.require(DESCRIBE_CLUSTER)
    return describe_user_scram_credentials(metadata.image, request)
