"""This broker, and its view of the other brokers in the metadata image."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from moldau.base.clock import Clock
from moldau.config.broker.config import BrokerConfig
from moldau.metadata.image import BrokerRegistration, MetadataImage

if TYPE_CHECKING:
    from moldau.replication.partition import Partition
    from moldau.storage.log.log import RemoteTierState

#: Sent by a replica that does not know broker epochs.
ANY_EPOCH = -1

#: Returns the state after the remote segment that has an offset of a leader epoch; the last argument is the
#: leader's log start offset.
BuildRemoteState = Callable[["Partition", int, int, int], Awaitable["RemoteTierState"]]


class LocalBroker:
    """`image` is the newest metadata image, `epoch` returns the broker epoch of the registration, and
    `on_lost` is called with the id of a broker whose connection broke."""

    __slots__ = ("_config", "build_remote_state", "clock", "epoch", "id", "image", "on_lost")

    def __init__(
        self,
        node_id: int,
        clock: Clock,
        config: Callable[[], BrokerConfig],
        epoch: Callable[[], int],
        on_lost: Callable[[int], None] = lambda broker_id: None,
    ) -> None:
        self.id = node_id
        self.clock = clock
        self.epoch = epoch
        self.on_lost = on_lost
        self.image = MetadataImage.empty()
        #: None without tiered storage.
        self.build_remote_state: BuildRemoteState | None = None
        self._config = config

    @property
    def config(self) -> BrokerConfig:
        return self._config()

    def now_ms(self) -> float:
        return self.clock.monotonic() * 1000

    @property
    def max_lag_ms(self) -> int:
        return self.config.integer("replica.lag.time.max.ms")

    def throttled_rate(self, name: str) -> float:
        """Return a rate from the dynamic config of this broker or, if unset, of all brokers."""
        own, common = self.image.broker_config(self.id), self.image.default_broker_config()
        text = own.get(name, common.get(name))
        return math.inf if text is None else float(text)

    def broker(self, broker_id: int) -> BrokerRegistration | None:
        return self.image.cluster.brokers.get(broker_id)

    def is_alive(self, broker_id: int) -> bool:
        """Return whether the broker is registered and not fenced."""
        broker = self.broker(broker_id)
        return broker is not None and not broker.fenced

    def is_outdated(self, broker_id: int, broker_epoch: int) -> bool:
        """Return whether the broker has registered again since it had this broker epoch."""
        broker = self.broker(broker_id)
        return broker is not None and not broker.fenced and ANY_EPOCH < broker_epoch < broker.epoch

    def may_be_in_sync(self, broker_id: int, broker_epoch: int | None) -> bool:
        """Return whether the controller would accept this replica in the ISR (KIP-841, KIP-903)."""
        broker = self.broker(broker_id)
        return broker is not None and broker.is_active and broker_epoch in (ANY_EPOCH, broker.epoch)
