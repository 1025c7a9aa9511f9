"""Leaders that are gone for good: their process has ended, or they said that they resign.

They are not waited for. Their voters ask for promises of votes at once, one after the other so that they do
not compete, and again soon when they are refused, because the others may not have noticed yet. Only a
question is asked earlier than otherwise; who may lead is decided as always.
"""

from __future__ import annotations

from dataclasses import dataclass

#: How long each voter leaves to those before it, and the first pause after a refusal.
STEP_MS = 40
RETRY_MS = 25


@dataclass(slots=True)
class LostLeader:
    id: int
    epoch: int
    #: It will not answer; one that resigned still gives promises.
    is_dead: bool
    #: How many voters stand before this one.
    rank: int
    attempts: int = 0

    @property
    def first_pause_ms(self) -> int:
        return self.rank * STEP_MS

    def next_pause_ms(self, longest_ms: int) -> int:
        """After promises were refused, longer every time."""
        pause_ms = min(RETRY_MS << min(self.attempts, 16), longest_ms)
        self.attempts += 1
        return pause_ms + self.rank * STEP_MS
