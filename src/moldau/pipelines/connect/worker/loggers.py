"""Log levels by namespace, for `/admin/loggers`: Python's loggers with the names of log4j's levels."""

from __future__ import annotations

import logging
import time
from typing import Any, Final

_LEVELS: Final = {
    "OFF": logging.CRITICAL + 10,
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": 5,
    "ALL": 1,
}
_ROOT: Final = "root"


class Loggers:
    def __init__(self) -> None:
        self._modified: dict[str, int] = {}

    def is_level(self, name: str) -> bool:
        return name.upper() in _LEVELS

    def level(self, name: str) -> dict[str, Any] | None:
        """Return the level of a logger, which it may have from its parent; None if it does not exist."""
        if name != _ROOT and name not in logging.root.manager.loggerDict:
            return None
        effective = _logger(name).getEffectiveLevel()
        return {"level": _name(effective), "last_modified": self._modified.get(name)}

    def all_levels(self) -> dict[str, dict[str, Any]]:
        """Return the loggers with a level of their own, by name."""
        names = sorted(
            name
            for name, found in logging.root.manager.loggerDict.items()
            if isinstance(found, logging.Logger) and found.level != logging.NOTSET
        )
        levels = {name: self.level(name) for name in [*names, _ROOT]}
        return {name: level for name, level in levels.items() if level is not None}

    def set_level(self, namespace: str, level: str) -> list[str]:
        """Set the level of a logger and of all below it; return their names."""
        wanted = _LEVELS.get(level.upper())
        if wanted is None:
            return []
        below = [
            name
            for name in logging.root.manager.loggerDict
            if name.startswith(f"{namespace}.") or namespace == _ROOT
        ]
        names = sorted({namespace, *below})
        now = int(time.time() * 1000)
        for name in names:
            _logger(name).setLevel(wanted)
            self._modified[name] = now
        return names


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(None if name == _ROOT else name)


def _name(level: int) -> str:
    return next((name for name, value in _LEVELS.items() if value <= level), "ALL")
