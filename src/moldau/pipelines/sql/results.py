"""The results of statements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Message:
    """The result of a statement without rows."""

    text: str


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of columns. The rows of a push query (`live`) arrive over time; closing the iterator ends the
    query."""

    columns: Sequence[str]
    rows: Iterable[Sequence[Any]]
    live: bool = False
    title: str = ""
    #: Remarks to print after the rows.
    notes: Sequence[str] = field(default_factory=tuple)


Result = Message | Rows
