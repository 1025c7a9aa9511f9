"""UpdateFeatures (key 57), versions 0 to 2: decided by the controller."""

from __future__ import annotations

from collections.abc import Awaitable

from moldau.controller.features import update_features
from moldau.protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from moldau.server.controller.channel import ControllerChannel
from moldau.server.dispatch.context import RequestContext


def handle(
    controller: ControllerChannel, context: RequestContext, request: UpdateFeaturesRequest
) -> Awaitable[UpdateFeaturesResponse]:
    return controller.decide(context, request, update_features)
