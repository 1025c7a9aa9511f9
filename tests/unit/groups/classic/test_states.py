"""The transition table of classic groups against Kafka's `ClassicGroupState.validPreviousStates`."""

from __future__ import annotations

import pytest

from moldau.groups.classic.states import CLASSIC_TRANSITIONS, ClassicEvent, ClassicState
from moldau.statemachine.transitions import InvalidTransitionError

EMPTY, STABLE, DEAD = ClassicState.EMPTY, ClassicState.STABLE, ClassicState.DEAD
PREPARING, COMPLETING = ClassicState.PREPARING_REBALANCE, ClassicState.COMPLETING_REBALANCE
#: Kafka's table without DEAD.
VALID_PREVIOUS = {
    EMPTY: {PREPARING},
    PREPARING: {STABLE, COMPLETING, EMPTY},
    COMPLETING: {PREPARING},
    STABLE: {COMPLETING},
}
#: Ours alone: a stored group is loaded, a static member is replaced, and the last member leaves without the
#: detour over PREPARING.
ALSO = {EMPTY: {EMPTY, COMPLETING, STABLE}, STABLE: {EMPTY, STABLE}}


def test_transitions_are_kafkas_and_those_of_stored_records() -> None:
    previous: dict[ClassicState, set[ClassicState]] = {}
    for state, row in CLASSIC_TRANSITIONS.rows.items():
        for following in row.values():
            previous.setdefault(following, set()).add(state)
    assert previous == {state: VALID_PREVIOUS[state] | ALSO.get(state, set()) for state in VALID_PREVIOUS}
    assert set(CLASSIC_TRANSITIONS.rows) == set(ClassicState)


def test_a_group_cannot_complete_a_join_phase_that_it_has_not_prepared() -> None:
    for state in (EMPTY, COMPLETING, STABLE, DEAD):
        with pytest.raises(InvalidTransitionError, match="COMPLETE_JOIN is not allowed"):
            CLASSIC_TRANSITIONS.after(state, ClassicEvent.COMPLETE_JOIN)
