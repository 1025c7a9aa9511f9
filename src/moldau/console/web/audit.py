"""The audit log: a line of JSON for every change that users request, completed or refused.

Names of fields are logged, never values: they may be secrets or records.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from pathlib import Path

from moldau.base.clock import Clock

logger = logging.getLogger(__name__)


class AuditLog:
    def __init__(self, file: str | None, clock: Clock) -> None:
        self._file = None if file is None else Path(file)
        self._clock = clock

    def record(
        self, *, cluster: str, user: str | None, address: str, action: str, fields: Iterable[str], result: str
    ) -> None:
        line = json.dumps(
            {
                "time": self._clock.time_ms(),
                "cluster": cluster,
                "user": user,
                "address": address,
                "action": action,
                "fields": sorted(fields),
                "result": result,
            }
        )
        logger.info("audit %s", line)
        if self._file is None:
            return
        try:
            with self._file.open("a") as log:
                log.write(line + "\n")
        except OSError as error:
            logger.error("The audit log %s cannot be written: %s", self._file, error)
