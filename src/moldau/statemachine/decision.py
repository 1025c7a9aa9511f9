"""What a state machine gives back when asked: the records that make it so, and the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Decision(Generic[T, R]):
    """Records are appended together or not at all; without any, the decision only read."""

    records: Sequence[T]
    response: R
