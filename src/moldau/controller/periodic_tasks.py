"""Periodic tasks of the active controller: fence expired brokers, elect leaders, remove expired tokens.

`unclean.leader.election.interval.ms`, `leader.imbalance.check.interval.seconds` and
`delegation.token.expiry.check.interval.ms` say when a task is due; the time of the last run is soft state.
A call makes at most one step, so that the next step sees its effect.
"""

from __future__ import annotations

from collections.abc import Iterable

from moldau.base.errors import KafkaError
from moldau.controller.brokers.lifecycle import fence
from moldau.controller.partitions.elections import PREFERRED, UNCLEAN, elect
from moldau.controller.partitions.index import Entry
from moldau.controller.security.tokens import remove_expired_tokens
from moldau.controller.state import ControllerState
from moldau.metadata.records import MetadataRecord
from moldau.statemachine.decision import Decision

#: The limit on elections in one step.
MAX_ELECTIONS = 1_000


class PeriodicTasks:
    def __init__(self, now_ms: int) -> None:
        self._last_preferred_election_ms = now_ms
        self._last_unclean_election_ms = now_ms
        self._last_token_check_ms = now_ms

    def step(self, state: ControllerState, now_ms: int, time_ms: int) -> Decision[MetadataRecord, bool]:
        """Run the next task that is due; the response is whether another step may be due now."""
        broker_id = state.heartbeats.expired_broker(now_ms)
        broker = None if broker_id is None else state.image.cluster.brokers.get(broker_id)
        if broker is not None:
            expired = broker.id
            return Decision(fence(state, broker), True, lambda: state.heartbeats.expire(expired))
        config = state.config
        interval_ms = config.integer("unclean.leader.election.interval.ms")
        if now_ms - self._last_unclean_election_ms >= interval_ms:
            decision = _elect_unclean_leaders(state)
            if not decision.response:
                self._last_unclean_election_ms = now_ms
            return decision
        interval_ms = config.integer("leader.imbalance.check.interval.seconds") * 1000
        enabled = config.boolean("auto.leader.rebalance.enable")
        if enabled and now_ms - self._last_preferred_election_ms >= interval_ms:
            decision = _elect_preferred_leaders(state)
            if not decision.response:
                self._last_preferred_election_ms = now_ms
            return decision
        interval_ms = config.integer("delegation.token.expiry.check.interval.ms")
        if now_ms - self._last_token_check_ms >= interval_ms:
            decision = remove_expired_tokens(state, time_ms)
            if not decision.response:
                self._last_token_check_ms = now_ms
            return decision
        return Decision([], False)


def _elect_preferred_leaders(state: ControllerState) -> Decision[MetadataRecord, bool]:
    return _elect_some(state, state.index.imbalanced(), PREFERRED)


def _elect_unclean_leaders(state: ControllerState) -> Decision[MetadataRecord, bool]:
    """Elect leaders for offline partitions of topics with `unclean.leader.election.enable`."""
    allowed = (entry for entry in state.index.leaderless() if state.unclean_election_enabled(entry[0].name))
    return _elect_some(state, allowed, UNCLEAN)


def _elect_some(
    state: ControllerState, partitions: Iterable[Entry], election_type: int
) -> Decision[MetadataRecord, bool]:
    records: list[MetadataRecord] = []
    for topic, index, _ in partitions:
        if len(records) >= MAX_ELECTIONS:
            return Decision(records, True)
        try:
            records.append(elect(state, topic.name, index, election_type))
        except KafkaError:
            continue
    return Decision(records, False)
