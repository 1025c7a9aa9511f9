"""What an active controller does without being asked: fence silent brokers, elect leaders where some are due.

When each was done last is soft state. A call makes at most one step, so that the next one sees its effect.
"""

from __future__ import annotations

from moldau.controller.brokers.lifecycle import fence
from moldau.controller.partitions.elections import balance_leaders, elect_unclean_leaders
from moldau.controller.state import ControllerState
from moldau.metadata.records import MetadataRecord
from moldau.statemachine.decision import Decision


class Upkeep:
    def __init__(self, now_ms: int) -> None:
        self._balanced_ms = now_ms
        self._elected_ms = now_ms

    def step(self, state: ControllerState, now_ms: int) -> Decision[MetadataRecord, bool]:
        """The next thing to do; the answer says whether there may be another at once."""
        broker_id = state.heartbeats.expired_broker(now_ms)
        broker = None if broker_id is None else state.image.cluster.brokers.get(broker_id)
        if broker is not None:
            silent = broker.id
            return Decision(fence(state, broker), True, lambda: state.heartbeats.set_fenced(silent, True))
        config = state.config
        if now_ms - self._elected_ms >= config.integer("unclean.leader.election.interval.ms"):
            decision = elect_unclean_leaders(state)
            if not decision.response:
                self._elected_ms = now_ms
            return decision
        interval_ms = config.integer("leader.imbalance.check.interval.seconds") * 1000
        if config.boolean("auto.leader.rebalance.enable") and now_ms - self._balanced_ms >= interval_ms:
            decision = balance_leaders(state)
            if not decision.response:
                self._balanced_ms = now_ms
            return decision
        return Decision([], False)
