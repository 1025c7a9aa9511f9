"""What statements give back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Message:
    """Something was done."""

    text: str


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of columns. Those of a push query come as time goes by; closing the iterator ends the query."""

    columns: Sequence[str]
    rows: Iterable[Sequence[Any]]
    live: bool = False
    title: str = ""
    #: What is worth saying to a person behind the rows.
    notes: Sequence[str] = field(default_factory=tuple)


Result = Message | Rows
