"""Registers this controller with the active controller: its endpoints and supported features (KIP-919)."""

from __future__ import annotations

import logging

from moldau.base.errors import KafkaError
from moldau.controller.brokers.lifecycle import register_controller
from moldau.metadata.features import CONTROLLER_REGISTRATION_SUPPORTED
from moldau.metadata.image import MetadataImage
from moldau.protocol.messages import controller_registration
from moldau.server.controller.calls import REGISTRATION
from moldau.server.controller.channel import ControllerChannel
from moldau.server.publisher import MetadataPublisher
from moldau.server.startup.identity import Identity, feature_ranges

logger = logging.getLogger(__name__)


class ControllerRegistration:
    def __init__(self, identity: Identity, channel: ControllerChannel, publisher: MetadataPublisher) -> None:
        self._identity = identity
        self._channel = channel
        self._publisher = publisher

    async def ensure(self) -> None:
        """Register unless this process is registered, or `metadata.version` is too old."""
        image = self._publisher.image
        if (
            self._is_known(image)
            or (image.features.metadata_version or 0) < CONTROLLER_REGISTRATION_SUPPORTED
        ):
            return
        identity = self._identity
        request = controller_registration.ControllerRegistrationRequest(
            controller_id=identity.node_id,
            incarnation_id=identity.incarnation_id,
            listeners=[
                controller_registration.Listener(**each._asdict()) for each in identity.controller_endpoints
            ],
            features=[controller_registration.Feature(**each) for each in feature_ranges(image)],
        )
        try:
            await self._channel.send(REGISTRATION, request, register_controller)
        except KafkaError as error:
            logger.warning("this controller is not registered yet, retrying: %s", error)

    def _is_known(self, image: MetadataImage) -> bool:
        known = image.cluster.controllers.get(self._identity.node_id)
        return known is not None and known.incarnation_id == self._identity.incarnation_id
