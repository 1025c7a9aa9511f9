"""Counts logins and TLS handshakes of a node by listener: for metrics, which read them."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum


class LoginOutcome(StrEnum):
    SUCCESSFUL = "successful"
    FAILED = "failed"
    REAUTHENTICATED = "reauthenticated"
    REAUTHENTICATION_FAILED = "reauthentication failed"
    #: The session has ended, and the client has not re-authenticated (KIP-368).
    EXPIRED = "expired"
    SECURED = "secured"
    HANDSHAKE_FAILED = "handshake failed"


class LoginCounts:
    def __init__(self) -> None:
        self._counts: Counter[tuple[str, LoginOutcome]] = Counter()

    def add(self, listener: str, outcome: LoginOutcome) -> None:
        self._counts[listener, outcome] += 1

    def get(self, listener: str, *outcomes: LoginOutcome) -> int:
        """Return how often one of these has happened."""
        return sum(self._counts[listener, outcome] for outcome in outcomes)
