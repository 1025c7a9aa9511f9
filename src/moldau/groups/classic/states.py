"""The states of a classic group and every transition between them.

A group reaches EMPTY and STABLE by replaying its record. The states of a rebalance in between exist in memory
only, so a new coordinator starts with the last stored generation, as in Kafka.
"""

from __future__ import annotations

from enum import Enum

from moldau.statemachine.transitions import TransitionTable


class ClassicState(Enum):
    """The values are those of ListGroups and DescribeGroups."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    #: The group does not exist; no group object has this state.
    DEAD = "Dead"


class ClassicEvent(Enum):
    #: Members or their metadata have changed: all members must rejoin.
    PREPARE_REBALANCE = "prepare rebalance"
    #: All members have rejoined, or the rebalance timeout has expired.
    COMPLETE_JOIN = "complete join"
    #: The group was stored with members: the leader's assignment, or a replaced static member (KIP-345).
    MEMBERS_STORED = "members stored"
    #: The group was stored without members.
    EMPTY_STORED = "empty group stored"


_STATE = ClassicState
_EVENT = ClassicEvent

CLASSIC_TRANSITIONS: TransitionTable[ClassicState, ClassicEvent] = TransitionTable(
    {
        _STATE.EMPTY: {
            _EVENT.PREPARE_REBALANCE: _STATE.PREPARING_REBALANCE,
            # Only while loading: the states between are not stored.
            _EVENT.MEMBERS_STORED: _STATE.STABLE,
            _EVENT.EMPTY_STORED: _STATE.EMPTY,
        },
        _STATE.PREPARING_REBALANCE: {
            _EVENT.COMPLETE_JOIN: _STATE.COMPLETING_REBALANCE,
            _EVENT.EMPTY_STORED: _STATE.EMPTY,
        },
        _STATE.COMPLETING_REBALANCE: {
            _EVENT.PREPARE_REBALANCE: _STATE.PREPARING_REBALANCE,
            _EVENT.MEMBERS_STORED: _STATE.STABLE,
            _EVENT.EMPTY_STORED: _STATE.EMPTY,
        },
        _STATE.STABLE: {
            _EVENT.PREPARE_REBALANCE: _STATE.PREPARING_REBALANCE,
            _EVENT.MEMBERS_STORED: _STATE.STABLE,
            _EVENT.EMPTY_STORED: _STATE.EMPTY,
        },
        _STATE.DEAD: {},
    }
)
