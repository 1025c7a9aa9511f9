"""UpdateFeatures (key 57), versions 0 to 2 (KIP-584): changes finalized features; decided by the controller.

- 1: upgrade type and `validate_only` (KIP-778)
- 2: no results for single features any more (KIP-1022)

Requires ALTER on CLUSTER.
"""

from __future__ import annotations

from collections.abc import Awaitable

from moldau.controller.features import update_features
from moldau.protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from moldau.security.acl.permissions import ALTER_CLUSTER
from moldau.server.controller.authorization import requires
from moldau.server.controller.channel import ControllerChannel
from moldau.server.dispatch.context import RequestContext


def handle(
    controller: ControllerChannel, context: RequestContext, request: UpdateFeaturesRequest
) -> Awaitable[UpdateFeaturesResponse]:
    return controller.decide(context, request, update_features, requires(ALTER_CLUSTER))
