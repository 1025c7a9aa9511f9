"""Rows that commit out of order are not lost.

Ids and timestamps are assigned while a transaction runs, but its rows appear when it commits: a reader that
has seen id 7 may miss id 6, which commits later. Therefore a source does not read up to the newest row at
once. It notes the newest row and the transactions that are open then. Every row with a smaller id or
timestamp belongs to one of them or is visible already, so once they are finished, everything up to the noted
row is complete.

A transaction that has written is waited for however long it takes. One that has not written yet is waited for
only for a while, because it may be a report that runs for hours; later it counts again if it writes.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

logger = logging.getLogger(__name__)

#: Two-phase commit: a prepared transaction has left its session and got another token.
PREPARED: Final = "prepared:"
_WARN_AFTER_S: Final = 60.0


@dataclass(slots=True)
class _Awaited:
    since: float
    tokens: set[str] = field(default_factory=set)
    warned: bool = False


class CommitOrder:
    """Decides when all rows up to a noted one are visible. Time is an argument of its methods."""

    def __init__(self, wait_s: float | None, source: str) -> None:
        """Wait `wait_s` for transactions without writes; None: do not wait for any transaction."""
        self._wait_s = wait_s
        self._source = source
        self._awaited: _Awaited | None = None
        #: Transactions that did not write for too long; they are waited for only if they write.
        self._idle: set[str] = set()
        self._told = False

    @property
    def enabled(self) -> bool:
        return self._wait_s is not None

    def note(self, transactions: Mapping[str, bool] | None, now: float) -> bool:
        """Note the transactions that are open now; return True if none has to be waited for."""
        if transactions is None:
            if not self._told:
                logger.warning(
                    "The database of %s does not show its open transactions (MySQL: the user needs the "
                    "privilege PROCESS; PostgreSQL: read from the primary); rows that commit out of order "
                    "can be missed unless timestamp.delay.interval.ms is set",
                    self._source,
                )
                self._told = True
            return True
        self._idle &= transactions.keys()
        tokens = {each for each, writes in transactions.items() if writes or each not in self._idle}
        self._awaited = _Awaited(now, tokens) if tokens else None
        return self._awaited is None

    def check(self, transactions: Mapping[str, bool] | None, now: float) -> bool:
        """Return True if the noted transactions are finished, given those that are open now."""
        awaited = self._awaited
        if awaited is None or transactions is None or self._wait_s is None:
            self._awaited = None
            return True
        if awaited.tokens - transactions.keys():
            # One that is gone may have been prepared.
            awaited.tokens |= {each for each in transactions if each.startswith(PREPARED)}
        awaited.tokens &= transactions.keys()
        if now - awaited.since >= self._wait_s:
            idle = {each for each in awaited.tokens if not transactions[each]}
            self._idle |= idle
            awaited.tokens -= idle
        if not awaited.tokens:
            self._awaited = None
            return True
        if now - awaited.since >= _WARN_AFTER_S and not awaited.warned:
            awaited.warned = True
            logger.warning(
                "Reading %s waits for a transaction that has been open for more than %d s",
                *(self._source, int(now - awaited.since)),
            )
        return False

    def forget(self) -> None:
        """Begin again, after the connection broke."""
        self._awaited = None
