"""The sensors of clients, one for each user and client id that share a limit.

The table is bounded: sensors that were not used for an hour are dropped, as in Kafka, and the least recently
used ones when there are too many. A client id is chosen by the client, so without a bound a client could fill
the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

from moldau.metadata.image import QuotaEntity
from moldau.quotas.limits import QuotaClient, QuotaLimits

S = TypeVar("S")

EXPIRY_MS = 3_600_000
MAX_SENSORS = 10_000
#: Longer client ids are replaced by a digest: a client id has up to 32 KiB.
MAX_CLIENT_ID = 1_000


class Sensor(Generic[S]):
    """What a client has used, and its limit per second."""

    __slots__ = ("last_used_ms", "limit", "used")

    def __init__(self, used: S, limit: float, now_ms: int) -> None:
        self.used = used
        self.limit = limit
        self.last_used_ms = now_ms


class Sensors(Generic[S]):
    """The sensors of one quota, identified by `key`."""

    def __init__(self, key: str, create: Callable[[], S], max_sensors: int = MAX_SENSORS) -> None:
        self.key = key
        #: Whether any client has a limit.
        self.enabled = False
        self._create = create
        self._max_sensors = max_sensors
        self._limits = QuotaLimits({}, key)
        self._sensors: dict[QuotaClient, Sensor[S]] = {}
        #: The sensors by user and client id of the request; None if the client is not limited.
        self._resolved: dict[tuple[str, str], Sensor[S] | None] = {}

    def __len__(self) -> int:
        return len(self._sensors)

    def __iter__(self) -> Iterator[tuple[QuotaClient, Sensor[S]]]:
        """Iterate over user and client id, empty if the limit does not depend on it, and their sensors."""
        return iter(list(self._sensors.items()))

    def apply(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """Take over changed limits; what clients have used so far still counts."""
        self._limits = QuotaLimits(quotas, self.key)
        self.enabled = bool(self._limits)
        self._resolved.clear()
        for client, sensor in list(self._sensors.items()):
            limit = self._limits.limit(client)
            if limit is None:
                del self._sensors[client]
            else:
                sensor.limit = limit

    def of(self, user: str, client_id: str | None, now_ms: int) -> Sensor[S] | None:
        """Return the sensor of a client; None if the client is not limited."""
        name = (user, _bounded(client_id or ""))
        try:
            sensor = self._resolved[name]
        except KeyError:
            sensor = self._resolve(name, now_ms)
        if sensor is not None:
            sensor.last_used_ms = now_ms
        return sensor

    def _resolve(self, name: tuple[str, str], now_ms: int) -> Sensor[S] | None:
        if len(self._resolved) >= 2 * self._max_sensors:
            self._resolved.clear()
        client = self._limits.client(*name)
        limit = self._limits.limit(client)
        sensor = None
        if limit is not None:
            sensor = self._sensors.get(client)
            if sensor is None:
                self._make_room()
                sensor = self._sensors[client] = Sensor(self._create(), limit, now_ms)
        self._resolved[name] = sensor
        return sensor

    def _make_room(self) -> None:
        if len(self._sensors) < self._max_sensors:
            return
        by_use = sorted(self._sensors, key=lambda client: self._sensors[client].last_used_ms)
        self._drop(by_use[: max(1, self._max_sensors // 10)])

    def expire(self, now_ms: int) -> None:
        self._drop(
            [client for client, sensor in self._sensors.items() if now_ms - sensor.last_used_ms >= EXPIRY_MS]
        )

    def _drop(self, clients: list[QuotaClient]) -> None:
        if clients:
            self._resolved.clear()
        for client in clients:
            del self._sensors[client]


def _bounded(client_id: str) -> str:
    if len(client_id) <= MAX_CLIENT_ID:
        return client_id
    import hashlib

    return hashlib.sha256(client_id.encode("utf-8", "surrogatepass")).hexdigest()
