"""The lifecycle of this broker at the controller: registration, heartbeats, controlled shutdown (KIP-631).

A registration carries the advertised listeners, the supported features and the log directories. Heartbeats
report the applied metadata offset and the failed directories. Before a planned stop the broker asks the
controller to move its leaderships, and stops when the controller allows it.

A failed registration is retried until `initial.broker.registration.timeout.ms`: the session of an earlier
process with the same id may still have to expire. Errors that a retry cannot fix end the start immediately.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import DirectoryId
from moldau.base.json_log import event
from moldau.base.log_throttle import LogThrottle
from moldau.controller.brokers.lifecycle import broker_heartbeat, register_broker
from moldau.metadata.image import BrokerRegistration, MetadataImage
from moldau.protocol.messages import broker_registration as registration
from moldau.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from moldau.server.controller.calls import HEARTBEAT
from moldau.server.controller.channel import ControllerChannel
from moldau.server.publisher import MetadataPublisher
from moldau.server.startup.identity import Identity, feature_ranges

logger = logging.getLogger(__name__)

_RETRY_SECONDS = 0.1
#: Maximum time until the controller's feature levels are applied here.
_FEATURES_SECONDS = 1.0
#: The longest wait between two heartbeats whose outcome the next image is likely to change.
_NEXT_IMAGE_SECONDS = 0.01
#: Registration errors that a retry cannot fix, explained: the response has no error message.
_PERMANENT_ERRORS = {
    ErrorCode.INCONSISTENT_CLUSTER_ID: "the controller belongs to another cluster than this node's folders",
    ErrorCode.INVALID_REGISTRATION: "the controller does not accept this broker's directories or features",
    ErrorCode.UNSUPPORTED_VERSION: "this release does not support a feature level of the cluster",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "this broker may not register",
}


class BrokerLifecycle:
    def __init__(
        self,
        identity: Identity,
        controller: ControllerChannel,
        metadata: MetadataPublisher,
        cordoned: Callable[[], list[DirectoryId]],
    ) -> None:
        #: The broker epoch of this registration; -1 before it.
        self.epoch = -1
        self._identity = identity
        self._controller = controller
        self._metadata = metadata
        self._cordoned = cordoned
        #: When the controller accepted the last heartbeat, on the loop's clock, and whether it keeps this
        #: broker fenced.
        self.heartbeat_at: float | None = None
        self.is_fenced = True
        self._offline: list[DirectoryId] = []
        self._log_throttle = LogThrottle()

    # Start.

    async def register(
        self, directories: Sequence[DirectoryId], previous_epoch: int | None, timeout_seconds: float
    ) -> None:
        """Register; the broker is known to the controller then, and fenced."""
        identity = self._identity
        request = registration.BrokerRegistrationRequest(
            broker_id=identity.node_id,
            cluster_id=identity.cluster_id,
            incarnation_id=identity.incarnation_id,
            listeners=[registration.Listener(**each._asdict()) for each in identity.broker_endpoints],
            rack=identity.rack,
            log_dirs=list(directories),
            previous_broker_epoch=-1 if previous_epoch is None else previous_epoch,
        )
        last = KafkaError(ErrorCode.REQUEST_TIMED_OUT, "there is no active controller")
        try:
            async with asyncio.timeout(timeout_seconds):
                while (error := await self._try_to_register(request)) is not None:
                    if error.code != last.code:
                        logger.warning(
                            "broker %d is not registered yet: %s",
                            identity.node_id,
                            error,
                            extra=event("node.not_registered", node=identity.node_id),
                        )
                    last = error
                    await asyncio.sleep(_RETRY_SECONDS)
        except TimeoutError:
            raise KafkaError(
                last.code, f"broker {identity.node_id} could not register: {_explanation(last)}"
            ) from last
        await self._applied(lambda broker: broker.epoch == self.epoch, timeout_seconds)

    async def _try_to_register(self, request: registration.BrokerRegistrationRequest) -> KafkaError | None:
        """Return an error that a retry may fix; raise any other."""
        request.features = self._features()
        try:
            response = await self._controller.send(HEARTBEAT, request, register_broker)
        except KafkaError as error:
            unsupported = error.code is ErrorCode.UNSUPPORTED_VERSION
            if unsupported and await self._features_changed(request.features):
                return error
            if error.code in _PERMANENT_ERRORS:
                raise KafkaError(
                    error.code, f"broker {request.broker_id} cannot join: {_explanation(error)}"
                ) from error
            return error
        self.epoch = response.broker_epoch
        return None

    def _features(self) -> list[registration.Feature]:
        return [registration.Feature(**each) for each in feature_ranges(self._metadata.image)]

    async def _features_changed(self, sent: list[registration.Feature]) -> bool:
        """Wait until the applied feature levels differ from those of a registration; False if they do not.

        The levels are the first records of a new cluster; the controller may have them before this broker.
        """
        return await self._metadata.until(lambda _: self._features() != sent, _FEATURES_SECONDS)

    async def unfence(self, timeout_seconds: float) -> None:
        """Send heartbeats until the controller unfences this broker and the applied image shows it."""
        while True:
            offset = self._metadata.image.offset
            try:
                if not (await self._send_heartbeat()).is_fenced:
                    break
            except KafkaError as error:
                self._log("this broker is not unfenced yet: %s", error)
                await asyncio.sleep(_RETRY_SECONDS)
            await self._metadata.until(_after(offset), _NEXT_IMAGE_SECONDS)
        await self._applied(lambda broker: not broker.fenced, timeout_seconds)

    async def _applied(self, shows: Callable[[BrokerRegistration], bool], timeout_seconds: float) -> None:
        """Wait until the applied image shows what the controller answered."""

        def is_applied(image: MetadataImage) -> bool:
            broker = image.cluster.brokers.get(self._identity.node_id)
            return broker is not None and shows(broker)

        await self._metadata.until(is_applied, timeout_seconds)

    # Running.

    async def heartbeat(self) -> None:
        """Send a heartbeat; a failure is logged."""
        try:
            await self._send_heartbeat()
            self._log_throttle.reset()
        except KafkaError as error:
            self._log("heartbeat failed: %s", error)

    def _log(self, message: str, error: KafkaError) -> None:
        """Log a warning, throttled: without a controller every heartbeat fails."""
        if self._log_throttle.is_due(asyncio.get_running_loop().time(), (message, error.code)):
            logger.warning(message, _explanation(error), extra=event("node.heartbeat_failed"))

    async def report_applied(self, image: MetadataImage) -> None:
        """Report an applied image at once: a broker in controlled shutdown waits for the others."""
        await self._metadata.until(lambda applied: applied.offset >= image.offset, 1.0)
        await self.heartbeat()

    async def directory_failed(self, directory: DirectoryId) -> None:
        self._offline.append(directory)
        await self.heartbeat()

    # Stop.

    async def controlled_shutdown(self, timeout_seconds: float) -> None:
        """Have the leaderships of this broker moved, for at most `timeout_seconds`."""
        try:
            async with asyncio.timeout(timeout_seconds):
                offset = self._metadata.image.offset
                while not (await self._send_heartbeat(want_shut_down=True)).should_shut_down:
                    await self._metadata.until(_after(offset), _NEXT_IMAGE_SECONDS)
                    offset = self._metadata.image.offset
        except TimeoutError:
            logger.warning(
                "controlled shutdown timed out after %s s; stopping anyway",
                timeout_seconds,
                extra=event("node.shutdown_not_controlled"),
            )
        except KafkaError as error:
            logger.warning(
                "controlled shutdown failed: %s", error, extra=event("node.shutdown_not_controlled")
            )

    async def _send_heartbeat(self, *, want_shut_down: bool = False) -> BrokerHeartbeatResponse:
        response = await self._controller.send(
            HEARTBEAT,
            BrokerHeartbeatRequest(
                broker_id=self._identity.node_id,
                broker_epoch=self.epoch,
                current_metadata_offset=self._metadata.image.offset,
                want_shut_down=want_shut_down,
                offline_log_dirs=list(self._offline),
                cordoned_log_dirs=self._cordoned(),
            ),
            broker_heartbeat,
        )
        self.heartbeat_at = asyncio.get_running_loop().time()
        self.is_fenced = response.is_fenced
        return response


def _after(offset: int) -> Callable[[MetadataImage], bool]:
    return lambda image: image.offset > offset


def _explanation(error: KafkaError) -> str:
    if error.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION:
        return (
            "another process is registered with this node.id and alive; if this broker was just restarted, "
            "the session of the previous process has not expired yet"
        )
    if error.code is ErrorCode.STALE_BROKER_EPOCH:
        return "this broker was unregistered, or another process has registered with this node.id"
    return " ".join(filter(None, (_PERMANENT_ERRORS.get(error.code), f"({error})")))
