"""Limits on connections: how many there may be, and how many may be created per second (KIP-402, KIP-612).

They apply to the node (`max.connections`, `max.connection.creation.rate`), to one listener (the same configs
with `listener.name.x.`), and to one address (`max.connections.per.ip`, and the quota
`connection_creation_rate` of the entity `ip`). The limits of the node do not apply to the inter-broker
listener if there is another one, so that clients cannot cut off the other brokers; over `max.connections` it
takes the place of a connection of another listener.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from moldau.metadata.image import QuotaEntity
from moldau.quotas.limits import IP
from moldau.quotas.rate import DEFAULT_WINDOWS, QuotaWindows, Rate

UNLIMITED: Final = 2**31 - 1
_KEY = "connection_creation_rate"
_MAX_ADDRESSES = 10_000


@dataclass(frozen=True, slots=True)
class ListenerLimits:
    max_connections: int = UNLIMITED
    max_creation_rate: int = UNLIMITED


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """The limits of a node by its configuration."""

    max_connections: int = UNLIMITED
    max_creation_rate: int = UNLIMITED
    listeners: Mapping[str, ListenerLimits] = field(default_factory=dict)
    max_per_ip: int = UNLIMITED
    per_ip_overrides: Mapping[str, int] = field(default_factory=dict)
    #: The listener to which the limits of the node do not apply; None if it is the only one.
    protected_listener: str | None = None

    def of(self, listener: str) -> ListenerLimits:
        return self.listeners.get(listener, _NO_LIMITS)


_NO_LIMITS = ListenerLimits()
NO_SETTINGS: Final = ConnectionSettings()


class ConnectionQuotas:
    """Counts the connections of a node and their creation."""

    def __init__(
        self, settings: ConnectionSettings = NO_SETTINGS, windows: QuotaWindows = DEFAULT_WINDOWS
    ) -> None:
        self.settings = settings
        self.count = 0
        self._windows = windows
        self._per_listener: Counter[str] = Counter()
        self._per_ip: Counter[str] = Counter()
        self._rate = Rate(windows)
        self._listener_rates: dict[str, Rate] = {}
        self._ip_limits: dict[str, float] = {}
        self._default_ip_limit: float | None = None
        self._ip_rates: OrderedDict[str, Rate] = OrderedDict()

    def apply(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """Take over the quotas of addresses."""
        self._ip_limits, self._default_ip_limit = {}, None
        for entity, values in quotas.items():
            names = dict(entity)
            if IP in names and _KEY in values:
                address = names[IP]
                if address is None:
                    self._default_ip_limit = values[_KEY]
                else:
                    self._ip_limits[_normal(address)] = values[_KEY]

    def is_protected(self, listener: str) -> bool:
        return listener == self.settings.protected_listener

    # Creation.

    def record(self, listener: str, now_ms: int) -> int:
        """Record a new connection; return how long it must wait before it is served."""
        throttle_ms = 0
        if not self.is_protected(listener):
            throttle_ms = self._record(self._rate, self.settings.max_creation_rate, now_ms)
        limit = self.settings.of(listener).max_creation_rate
        return max(throttle_ms, self._record(self._listener_rate(listener), limit, now_ms))

    def record_ip(self, listener: str, address: str, now_ms: int) -> int:
        """Record the address of a new connection; return how long to wait until it is closed, 0: it is not.

        A connection that is closed does not count, neither for its address nor for its listener.
        """
        limit = self._ip_limit(address)
        if limit is None:
            return 0
        rate = self._ip_rate(address)
        throttle_ms = self._record(rate, limit, now_ms)
        if throttle_ms > 0:
            rate.record(-1, now_ms)
            self._listener_rate(listener).record(-1, now_ms)
            if not self.is_protected(listener):
                self._rate.record(-1, now_ms)
        return throttle_ms

    def _record(self, rate: Rate, limit: float, now_ms: int) -> int:
        rate.record(1, now_ms)
        if limit <= 0:
            return self._windows.size_ms
        return min(rate.throttle_ms(limit, now_ms), self._windows.size_ms)

    def _listener_rate(self, listener: str) -> Rate:
        if listener not in self._listener_rates:
            self._listener_rates[listener] = Rate(self._windows)
        return self._listener_rates[listener]

    def _ip_limit(self, address: str) -> float | None:
        if not self._ip_limits:
            return self._default_ip_limit
        return self._ip_limits.get(_normal(address), self._default_ip_limit)

    def _ip_rate(self, address: str) -> Rate:
        rate = self._ip_rates.pop(address, None) or Rate(self._windows)
        self._ip_rates[address] = rate
        if len(self._ip_rates) > _MAX_ADDRESSES:
            self._ip_rates.popitem(last=False)
        return rate

    # Number.

    def has_slot(self, listener: str) -> bool:
        """Return whether the listener may have one more connection."""
        if self._per_listener[listener] >= self.settings.of(listener).max_connections:
            return False
        return self.is_protected(listener) or self.count < self.settings.max_connections

    def has_slot_for(self, address: str) -> bool:
        """Return whether the address may have one more connection."""
        settings = self.settings
        return self._per_ip[address] < settings.per_ip_overrides.get(address, settings.max_per_ip)

    def opened(self, listener: str, address: str) -> None:
        self.count += 1
        self._per_listener[listener] += 1
        self._per_ip[address] += 1

    def closed(self, listener: str, address: str) -> None:
        self.count -= 1
        self._per_listener[listener] -= 1
        self._per_ip[address] -= 1
        if not self._per_ip[address]:
            del self._per_ip[address]

    @property
    def excess(self) -> int:
        """How many connections of listeners that are not protected must be closed."""
        return max(0, self.count - self.settings.max_connections)


def _normal(address: str) -> str:
    """Return one form of an address: IPv6 addresses have several."""
    import ipaddress

    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        return address
