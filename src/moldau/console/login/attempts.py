"""A back-off for failed logins, by user and by address.

The first failures are free. After them, each one doubles the time in which further attempts are refused
without asking the cluster. A user from one address waits longest; an address with many users, and a user from
many addresses, have more free attempts and wait less, so that others are not locked out for long. Attempts
that have no result yet count as failures, so that parallel ones are not free. The table is bounded: the
entries that failed longest ago are forgotten.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple

from moldau.base.clock import Clock

_MAX_ENTRIES: Final = 10_000
_FORGET_S: Final = 900.0
_MAX_NAME_LENGTH: Final = 256
#: How long to wait for the results of others.
_PENDING_S: Final = 1.0


class _Rule(NamedTuple):
    free: int
    most_s: float


_USER_AT_ADDRESS: Final = _Rule(3, 60.0)
_ADDRESS: Final = _Rule(30, 10.0)
_USER: Final = _Rule(30, 10.0)


@dataclass(slots=True)
class _Failures:
    count: int = 0
    last_s: float = 0.0
    until_s: float = 0.0


class Attempts:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures: OrderedDict[tuple[str, str], _Failures] = OrderedDict()
        self._pending: Counter[tuple[str, str]] = Counter()

    def wait_s(self, user: str, address: str, *, beside_pending: bool = False) -> float:
        """Return the seconds until the next attempt is possible; 0 if it is now.

        `beside_pending`: while others have no result yet, which then count as failures.
        """
        now = self._clock.monotonic()
        waits = [0.0]
        for key, rule in _keys(user, address):
            known = self._failures.get(key, _Failures())
            waits.append(known.until_s - now)
            if beside_pending and self._pending[key] and known.count + self._pending[key] > rule.free:
                waits.append(_PENDING_S)
        return max(waits)

    @contextmanager
    def pending(self, user: str, address: str) -> Iterator[None]:
        """Count an attempt until its result is known."""
        keys = [key for key, _ in _keys(user, address)]
        self._pending.update(keys)
        try:
            yield
        finally:
            self._pending.subtract(keys)
            for key in keys:
                if not self._pending[key]:
                    del self._pending[key]

    def failed(self, user: str, address: str) -> None:
        now = self._clock.monotonic()
        for key, rule in _keys(user, address):
            entry = self._failures.get(key)
            if entry is None or now - entry.last_s > _FORGET_S:
                entry = self._failures[key] = _Failures()
            entry.count += 1
            entry.last_s = now
            excess = entry.count - rule.free
            if excess > 0:
                entry.until_s = now + min(2.0 ** min(excess - 1, 30), rule.most_s)
            self._failures.move_to_end(key)
        while len(self._failures) > _MAX_ENTRIES:
            self._failures.popitem(last=False)

    def succeeded(self, user: str, address: str) -> None:
        """Forget the failures of this user at this address."""
        self._failures.pop(_keys(user, address)[0][0], None)


def _keys(user: str, address: str) -> tuple[tuple[tuple[str, str], _Rule], ...]:
    name = user[:_MAX_NAME_LENGTH]
    return ((name, address), _USER_AT_ADDRESS), (("", address), _ADDRESS), ((name, ""), _USER)
