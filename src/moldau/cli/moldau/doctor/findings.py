"""The results of the checks of `moldau doctor`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Level(Enum):
    GOOD = "ok"
    NOTE = "note"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. `advice` is the remedy; every problem has one."""

    level: Level
    what: str
    advice: str | None = None
