"""AlterUserScramCredentials (key 51), version 0 (KIP-554): sets and deletes the SCRAM credentials of users.

Decided by the controller. The request carries salted passwords; the controller stores keys derived from them.

Requires ALTER on CLUSTER.
"""

from __future__ import annotations

from collections.abc import Awaitable

from moldau.controller.security.scram import alter_user_scram_credentials
from moldau.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from moldau.security.acl.permissions import ALTER_CLUSTER
from moldau.server.controller.authorization import requires
from moldau.server.controller.channel import ControllerChannel
from moldau.server.dispatch.context import RequestContext


def handle(
    controller: ControllerChannel, context: RequestContext, request: AlterUserScramCredentialsRequest
) -> Awaitable[AlterUserScramCredentialsResponse]:
    return controller.decide(context, request, alter_user_scram_credentials, requires(ALTER_CLUSTER))
