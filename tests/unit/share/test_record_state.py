"""The transition table of share records, as KIP-932 defines it."""

from __future__ import annotations

import pytest

from moldau.share.record_state import RECORD_TRANSITIONS, RecordEvent, RecordState
from moldau.statemachine.transitions import InvalidTransitionError


def test_every_state_has_a_row() -> None:
    assert set(RECORD_TRANSITIONS.rows) == set(RecordState)


def test_only_a_failed_write_leaves_a_terminal_state() -> None:
    for state in RecordState:
        if state.is_terminal:
            assert set(RECORD_TRANSITIONS.rows[state]) == {RecordEvent.ROLL_BACK}


@pytest.mark.parametrize("state", [RecordState.ACQUIRED, RecordState.ACKNOWLEDGED, RecordState.ARCHIVED])
def test_only_available_records_are_acquired(state: RecordState) -> None:
    with pytest.raises(InvalidTransitionError, match=f"ACQUIRE is not allowed in state {state.name}"):
        RECORD_TRANSITIONS.after(state, RecordEvent.ACQUIRE)
