"""The states of a record in a share partition, and every transition between them (KIP-932)."""

from __future__ import annotations

from enum import IntEnum

from moldau.statemachine.transitions import TransitionTable


class RecordState(IntEnum):
    """The numbers are those that Kafka stores."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    ARCHIVED = 4

    @property
    def is_terminal(self) -> bool:
        return self in (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)


class RecordEvent(IntEnum):
    #: A member fetches the record.
    ACQUIRE = 0
    #: The member accepts it.
    ACCEPT = 1
    #: The member releases it, its session ends, or its acquisition lock expires.
    RELEASE = 2
    #: The member rejects it, the offset is a gap, its delivery count limit is reached, its transaction was
    #: aborted, or the log start offset has passed it.
    ARCHIVE = 3
    #: An acknowledgement could not be persisted.
    ROLL_BACK = 4


_STATE = RecordState
_EVENT = RecordEvent

#: ARCHIVING belongs to dead-letter queues (KIP-1191), which are not supported.
RECORD_TRANSITIONS: TransitionTable[RecordState, RecordEvent] = TransitionTable(
    {
        _STATE.AVAILABLE: {
            _EVENT.ACQUIRE: _STATE.ACQUIRED,
            _EVENT.ARCHIVE: _STATE.ARCHIVED,
            _EVENT.ROLL_BACK: _STATE.ACQUIRED,
        },
        _STATE.ACQUIRED: {
            _EVENT.ACCEPT: _STATE.ACKNOWLEDGED,
            _EVENT.RELEASE: _STATE.AVAILABLE,
            _EVENT.ARCHIVE: _STATE.ARCHIVED,
        },
        _STATE.ACKNOWLEDGED: {_EVENT.ROLL_BACK: _STATE.ACQUIRED},
        _STATE.ARCHIVING: {},
        _STATE.ARCHIVED: {_EVENT.ROLL_BACK: _STATE.ACQUIRED},
    }
)
