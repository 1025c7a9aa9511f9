"""The controller's state machine: it decides changes to the cluster's metadata and replays their records.

A decision is a plain function `(state, request, context) -> Decision`, in the module of what it changes
(`topics`, `partitions`, `brokers`, `configs`, …). It returns the records and the response and changes
nothing; `replay` changes the state once the records are appended. An error about one item is part of the
response; an error about the whole request is a `KafkaError`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar, cast

from moldau.base.errors import KafkaError
from moldau.base.ids import ZERO_UUID, Randomness, Uuid
from moldau.config.broker.config import BrokerConfig
from moldau.controller.configs.checks import MIN_ISR
from moldau.controller.errors import failure_response
from moldau.controller.periodic_tasks import PeriodicTasks
from moldau.controller.state import ControllerState, DecisionContext, UpgradeQuorum
from moldau.metadata.features import ELR_VERSION, METADATA_VERSION, TRANSACTIONS_SUPPORTED
from moldau.metadata.image import MetadataImage, ResourceType
from moldau.metadata.records import MetadataRecord
from moldau.protocol.schema import Message
from moldau.protocol.stored.metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)
from moldau.statemachine.decision import Decision

Q = TypeVar("Q", bound=Message)
R = TypeVar("R")

#: A decision about a request `Q` with a response `R`.
Decide = Callable[[ControllerState, Q, DecisionContext], Decision[MetadataRecord, R]]


class Controller:
    def __init__(
        self, config: BrokerConfig, cluster_id: str, randomness: Randomness, incarnation_id: Uuid = ZERO_UUID
    ) -> None:
        """`incarnation_id` is that of the broker in the same process."""
        self.state = ControllerState(config, cluster_id, randomness)
        self._incarnation_id = incarnation_id
        self._periodic_tasks = PeriodicTasks(0)

    @property
    def image(self) -> MetadataImage:
        """The metadata including decided records that are not committed yet."""
        return self.state.image

    def reset(self, image: MetadataImage, next_offset: int) -> None:
        """Go back to the committed image."""
        self.state.reset(image, next_offset)

    def replay(self, records: Sequence[MetadataRecord], base_offset: int) -> None:
        self.state.replay(records, base_offset)

    def decide(
        self, decide: Decide[Q, R], request: Q, context: DecisionContext
    ) -> Decision[MetadataRecord, R]:
        """Run a decision; its error about the whole request fills a response without a field for it."""
        try:
            return decide(self.state, request, context)
        except KafkaError as error:
            response = failure_response(request, error)
            if response is None:
                raise
            return Decision([], cast(R, response))

    def run_periodic_task(self, now_ms: int, time_ms: int) -> Decision[MetadataRecord, bool]:
        """Run one step of the periodic tasks; the response is whether another step may be due now."""
        return self._periodic_tasks.step(self.state, now_ms, time_ms)

    def activate(
        self,
        bootstrap: Sequence[MetadataRecord],
        *,
        in_transaction: bool,
        kraft_version: int,
        now_ms: int,
        upgrade_quorum: UpgradeQuorum | None = None,
    ) -> Decision[MetadataRecord, None]:
        """Become the active controller; an empty log gets the `bootstrap` records."""
        state = self.state
        state.kraft_version, state.upgrade_quorum = kraft_version, upgrade_quorum
        self._periodic_tasks = PeriodicTasks(now_ms)
        brokers = state.image.cluster.brokers
        former = brokers.get(state.node_id)
        # A broker with this node's id but another incarnation ran in an earlier process, which has ended.
        gone = former is not None and former.incarnation_id != self._incarnation_id
        state.heartbeats.activate(brokers.values(), state.node_id if gone else None, now_ms)
        empty = state.image.features.metadata_version is None
        records = _activation_records(
            bootstrap if empty else None, in_transaction=in_transaction, min_isr=state.static_min_isr
        )
        return Decision(records, None)


def _activation_records(
    bootstrap: Sequence[MetadataRecord] | None, *, in_transaction: bool, min_isr: int
) -> list[MetadataRecord]:
    """Abort an open metadata transaction (KIP-868) and write `bootstrap`, in a transaction if supported."""
    records: list[MetadataRecord] = []
    if in_transaction:
        records.append(AbortTransactionRecord(reason="Controller failover"))
    if bootstrap is None:
        return records
    content = list(bootstrap)
    if _level(bootstrap, ELR_VERSION) > 0:
        content.append(
            ConfigRecord(
                resource_type=ResourceType.BROKER, resource_name="", name=MIN_ISR, value=str(min_isr)
            )
        )
    if _level(bootstrap, METADATA_VERSION) < TRANSACTIONS_SUPPORTED:
        return records + content
    return [*records, BeginTransactionRecord(name="Bootstrap records"), *content, EndTransactionRecord()]


def _level(records: Sequence[MetadataRecord], feature: str) -> int:
    levels = [r.feature_level for r in records if isinstance(r, FeatureLevelRecord) and r.name == feature]
    return levels[-1] if levels else 0
