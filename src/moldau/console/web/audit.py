"""The audit log: a line of JSON for every change that users request, and for logins.

`values` has the fields that say what is changed; the table of routes names them. Of other fields only the
names are logged: their values may be secrets or records. Every refused password leaves a line, because the
back-off bounds their number; other lines about requests without a login are bounded here, so that strangers
cannot fill the disk.
"""

from __future__ import annotations

import json
import logging
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from moldau.base.clock import Clock
from moldau.base.json_log import event

logger = logging.getLogger(__name__)

_MAX_LENGTH: Final = 500
#: Lines about one address without a login in `_PERIOD_S`.
_MAX_REFUSED: Final = 10
_PERIOD_S: Final = 60.0
_MAX_ADDRESSES: Final = 1000


@dataclass(frozen=True, slots=True)
class AuditEntry:
    action: str
    result: str
    user: str | None = None
    role: str | None = None
    address: str = ""
    cluster: str | None = None
    values: Mapping[str, str] = field(default_factory=dict)
    fields: tuple[str, ...] = ()
    #: What the user was told about a completed change.
    detail: str = ""


class AuditLog:
    def __init__(self, file: str | None, clock: Clock) -> None:
        self._file = None if file is None else Path(file)
        self._clock = clock
        #: Begin of the period and number of lines, by address.
        self._refused: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def record(self, entry: AuditEntry) -> None:
        line = json.dumps(
            {
                "time": self._clock.time_ms(),
                "cluster": entry.cluster,
                "user": _cut(entry.user),
                "role": entry.role,
                "address": entry.address,
                "action": _cut(entry.action),
                "values": {name: _cut(value) for name, value in sorted(entry.values.items())},
                "fields": sorted(entry.fields),
                "result": _cut(entry.result),
                **({"detail": _cut(entry.detail)} if entry.detail else {}),
            }
        )
        logger.info("audit %s", line, extra=event("console.audit"))
        if self._file is None:
            return
        try:
            with self._file.open("a") as log:
                log.write(line + "\n")
        except OSError as error:
            logger.error(
                "The audit log %s cannot be written: %s",
                self._file,
                error,
                extra=event("console.audit_failed"),
            )

    def record_stranger(self, entry: AuditEntry) -> None:
        """Record a request without a login, unless its address has sent too many."""
        now = self._clock.monotonic()
        begin, count = self._refused.get(entry.address, (now, 0))
        if now - begin > _PERIOD_S:
            begin, count = now, 0
        self._refused[entry.address] = (begin, count + 1)
        self._refused.move_to_end(entry.address)
        while len(self._refused) > _MAX_ADDRESSES:
            self._refused.popitem(last=False)
        if count < _MAX_REFUSED:
            self.record(entry)


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH]}…"
