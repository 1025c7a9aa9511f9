"""This broker as the controller knows it: registered, alive by heartbeat, leaving in order.

Registration carries where clients find us, what we support and our directories; heartbeats say how far we
have followed the metadata log and which directories failed. Before a planned stop the controller is asked to
move our leaderships away, and we stop when it says so.

A registration that is refused is tried again until `initial.broker.registration.timeout.ms` is over: the
session of a process that ran before with this id may still have to end. What waiting cannot change ends the
start at once.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Sequence

from moldau.base.backoff import Backoff
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import DirectoryId, Uuid
from moldau.base.log_throttle import Seldom
from moldau.controller.brokers.directories import assign_replicas_to_dirs
from moldau.controller.brokers.lifecycle import broker_heartbeat, register_broker
from moldau.metadata.image import BrokerRegistration, MetadataImage
from moldau.protocol.messages import assign_replicas_to_dirs as assign
from moldau.protocol.messages import broker_registration as registration
from moldau.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from moldau.replication.replica_logs import Placed
from moldau.server.controller.calls import DIRECTORY_ASSIGNMENTS, HEARTBEAT
from moldau.server.controller.channel import ControllerChannel
from moldau.server.publisher import Publisher
from moldau.server.startup.identity import Identity, feature_ranges

log = logging.getLogger(__name__)

_RETRY_SECONDS = 0.1
_PLACEMENT_BACKOFF = Backoff(_RETRY_SECONDS, 5.0)
#: How long the levels of features that the controller knows may take to get here.
_LEVELS_SECONDS = 1.0
#: The longest wait between two looks at a state that the next image is likely to change.
_LOOK_SECONDS = 0.01
#: Refusals that waiting does not change, in words: the answer has none.
_HOPELESS = {
    ErrorCode.INCONSISTENT_CLUSTER_ID: "the controller belongs to another cluster than this node's folders",
    ErrorCode.INVALID_REGISTRATION: "the controller does not accept this broker's directories or features",
    ErrorCode.UNSUPPORTED_VERSION: "this release does not support a feature level of the cluster",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "this broker may not register",
}


class BrokerLifecycle:
    def __init__(
        self,
        identity: Identity,
        channel: ControllerChannel,
        publisher: Publisher,
        cordoned: Callable[[], list[DirectoryId]],
    ) -> None:
        self.epoch = -1
        self._identity = identity
        self._channel = channel
        self._publisher = publisher
        self._cordoned = cordoned
        self._offline: list[DirectoryId] = []
        self._complaints = Seldom()

    # Joining.

    async def register(
        self, directories: Sequence[DirectoryId], previous_epoch: int | None, timeout_seconds: float
    ) -> None:
        """Tell the controller who we are; afterwards we are known, and fenced."""
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
        refusal = KafkaError(ErrorCode.REQUEST_TIMED_OUT, "there is no active controller")
        try:
            async with asyncio.timeout(timeout_seconds):
                while (refused := await self._refusal(request)) is not None:
                    if refused.code != refusal.code:
                        log.warning("broker %d is not registered yet: %s", identity.node_id, refused)
                    refusal = refused
                    await asyncio.sleep(_RETRY_SECONDS)
        except TimeoutError:
            raise KafkaError(
                refusal.code, f"broker {identity.node_id} could not register: {_explained(refusal)}"
            ) from refusal
        await self._shown(lambda broker: broker.epoch == self.epoch, timeout_seconds)

    def _features(self) -> list[registration.Feature]:
        return [registration.Feature(**each) for each in feature_ranges(self._publisher.image)]

    async def _levels_changed(self, known: list[registration.Feature]) -> bool:
        """Whether the levels of the cluster are others than those that a registration went by.

        They are the first records of a new cluster, which may reach the controller's state before us.
        """
        return await self._publisher.until(lambda _: self._features() != known, _LEVELS_SECONDS)

    async def _refusal(self, request: registration.BrokerRegistrationRequest) -> KafkaError | None:
        request.features = self._features()
        try:
            answer = await self._channel.send(HEARTBEAT, request, register_broker)
        except KafkaError as error:
            if error.code is ErrorCode.UNSUPPORTED_VERSION and await self._levels_changed(request.features):
                return error
            if error.code in _HOPELESS:
                raise KafkaError(
                    error.code, f"broker {request.broker_id} cannot join: {_explained(error)}"
                ) from error
            return error
        self.epoch = answer.broker_epoch
        return None

    async def unfence(self, timeout_seconds: float) -> None:
        """Report until the controller lets us serve: it does once we have seen our own registration."""
        while True:
            seen = self._publisher.image.offset
            try:
                if not (await self._beat()).is_fenced:
                    break
            except KafkaError as error:
                self._complain("this broker is not unfenced yet: %s", error)
                await asyncio.sleep(_RETRY_SECONDS)
            await self._publisher.until(_later_than(seen), _LOOK_SECONDS)
        await self._shown(lambda broker: not broker.fenced, timeout_seconds)

    async def _shown(self, shows: Callable[[BrokerRegistration], bool], timeout_seconds: float) -> None:
        """Until what the controller answered is in this node's own image, too."""

        def applied(image: MetadataImage) -> bool:
            broker = image.cluster.brokers.get(self._identity.node_id)
            return broker is not None and shows(broker)

        await self._publisher.until(applied, timeout_seconds)

    # Running.

    async def beat(self) -> None:
        """The heartbeat that keeps the session alive."""
        try:
            await self._beat()
            self._complaints.over()
        except KafkaError as error:
            self._complain("heartbeat refused: %s", error)

    def _complain(self, sentence: str, error: KafkaError) -> None:
        """A controller that is away for hours fails every heartbeat."""
        if self._complaints.is_due(asyncio.get_running_loop().time(), (sentence, error.code)):
            log.warning(sentence, _explained(error))

    async def follow(self, image: MetadataImage) -> None:
        """A broker that stops waits until all others know who leads its partitions now: tell at once."""
        await self._publisher.until(lambda applied: applied.offset >= image.offset, 1.0)
        await self.beat()

    async def directory_failed(self, directory: DirectoryId) -> None:
        self._offline.append(directory)
        await self.beat()

    async def report_placement(self, placed: Sequence[Placed]) -> None:
        """Tell the controller which directories replicas really lie in, until it has heard it."""
        complaints = Seldom()
        for failures in itertools.count(1):
            try:
                return await self._report_placement(placed)
            except KafkaError as error:
                if complaints.is_due(asyncio.get_running_loop().time(), error.code):
                    log.warning("the directories of %d replicas are not known yet: %s", len(placed), error)
                if error.code in (ErrorCode.STALE_BROKER_EPOCH, ErrorCode.UNSUPPORTED_VERSION):
                    return None
            await asyncio.sleep(_PLACEMENT_BACKOFF.seconds(failures))

    async def _report_placement(self, placed: Sequence[Placed]) -> None:
        directories: dict[DirectoryId, dict[Uuid, assign.RequestTopicData]] = {}
        for each in placed:
            topics = directories.setdefault(each.directory_id, {})
            topic = topics.setdefault(each.topic_id, assign.RequestTopicData(topic_id=each.topic_id))
            topic.partitions.append(assign.RequestPartitionData(partition_index=each.partition))
        await self._channel.send(
            DIRECTORY_ASSIGNMENTS,
            assign.AssignReplicasToDirsRequest(
                broker_id=self._identity.node_id,
                broker_epoch=self.epoch,
                directories=[
                    assign.RequestDirectoryData(id=directory, topics=list(topics.values()))
                    for directory, topics in directories.items()
                ],
            ),
            assign_replicas_to_dirs,
        )

    # Leaving.

    async def controlled_shutdown(self, timeout_seconds: float) -> None:
        """Have our leaderships moved; give up on it when it takes too long, or nobody is there to do it."""
        try:
            async with asyncio.timeout(timeout_seconds):
                seen = self._publisher.image.offset
                while not (await self._beat(want_shut_down=True)).should_shut_down:
                    await self._publisher.until(_later_than(seen), _LOOK_SECONDS)
                    seen = self._publisher.image.offset
        except TimeoutError:
            log.warning("the controller did not release this broker in time; stopping anyway")
        except KafkaError as error:
            log.warning("controlled shutdown failed: %s", error)

    async def _beat(self, *, want_shut_down: bool = False) -> BrokerHeartbeatResponse:
        return await self._channel.send(
            HEARTBEAT,
            BrokerHeartbeatRequest(
                broker_id=self._identity.node_id,
                broker_epoch=self.epoch,
                current_metadata_offset=self._publisher.image.offset,
                want_shut_down=want_shut_down,
                offline_log_dirs=list(self._offline),
                cordoned_log_dirs=self._cordoned(),
            ),
            broker_heartbeat,
        )


def _later_than(offset: int) -> Callable[[MetadataImage], bool]:
    return lambda image: image.offset > offset


def _explained(error: KafkaError) -> str:
    if error.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION:
        return (
            "another process is registered with this node.id and alive; if this broker was just restarted, "
            "the session of the process before it has not ended yet"
        )
    if error.code is ErrorCode.STALE_BROKER_EPOCH:
        return "this broker was unregistered, or another process has registered with this node.id"
    return " ".join(filter(None, (_HOPELESS.get(error.code), f"({error})")))
