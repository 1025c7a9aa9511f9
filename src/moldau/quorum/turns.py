"""What the parts of a member of the quorum share: its rules, and one input after the other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from moldau.quorum.loading import VoterChange
from moldau.raft.raft import Raft


class Turns(Protocol):
    """Implemented by `Member`."""

    @property
    def rules(self) -> Raft: ...

    def now_ms(self) -> float: ...

    def post(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do something when it is its turn."""
        ...

    async def settle(self) -> None:
        """Do what the rules ask for after a step; only within a turn."""
        ...

    def note_voters(self, changes: Sequence[VoterChange]) -> None:
        """Records that name voters were appended."""
        ...
