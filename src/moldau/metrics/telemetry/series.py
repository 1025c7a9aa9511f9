"""The last values that clients have pushed, as metric families.

Growth since the last push (delta temporality) is summed up, so that a counter is a counter. Memory is bounded
in three ways: by the number of series, by the characters of their names and labels, and in time. A series
that was not pushed for a while is forgotten, also if its client still pushes others; `add` sees to that, so
that it does not depend on scrapes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from moldau.metrics.exposition import Scrape, labels_text, number_text
from moldau.metrics.family import Family, Kind
from moldau.metrics.telemetry.otlp import MAX_LABEL_VALUE, Point

MAX_SERIES: Final = 20_000
#: Characters in the names and labels of all series, with the labels of the client in each of them.
MAX_CHARACTERS: Final = 8 * 1024 * 1024
#: How often `add` looks for series to forget.
_EXPIRE_SECONDS: Final = 10.0
_SAMPLES_PER_STEP: Final = 100
_PREFIX: Final = "org_apache_kafka_"
_TOTAL: Final = "_total"
Labels = tuple[tuple[str, str], ...]
#: The name of a series, and its labels without those of the client.
_Key = tuple[str, Labels]


class _Client:
    """The series of one client instance: the value of each, and when it expires."""

    __slots__ = ("labels", "size", "values")

    def __init__(self, labels: Labels) -> None:
        self.labels: Labels = tuple((name, value[:MAX_LABEL_VALUE]) for name, value in labels)
        self.size = _characters(self.labels)
        self.values: dict[_Key, tuple[float, float]] = {}

    def cost(self, key: _Key) -> int:
        return len(key[0]) + _characters(key[1]) + self.size


class ClientSeries:
    def __init__(self, max_series: int = MAX_SERIES, max_characters: int = MAX_CHARACTERS) -> None:
        self._max_series = max_series
        self._max_characters = max_characters
        #: Clients with at least one series.
        self._clients: dict[bytes, _Client] = {}
        self._count = 0
        self._characters = 0
        self._expired_at = 0.0
        #: Points that found no room.
        self.dropped = 0

    def __len__(self) -> int:
        return self._count

    @property
    def characters(self) -> int:
        return self._characters

    def add(
        self, instance_id: bytes, labels: Labels, points: Iterable[Point], now: float, keep_seconds: float
    ) -> None:
        """Take over the points of a push; `labels` name the client."""
        if now - self._expired_at >= _EXPIRE_SECONDS:
            self.expire(now)
        client = self._clients.get(instance_id) or _Client(labels)
        for point in points:
            key = (_name(point), point.labels)
            known = client.values.get(key)
            if known is None and not self._take_room(client.cost(key)):
                self.dropped += 1
                continue
            before = 0.0 if known is None or not point.delta else known[0]
            client.values[key] = (before + point.value, now + keep_seconds)
        if client.values:
            self._clients[instance_id] = client

    def _take_room(self, cost: int) -> bool:
        if self._count >= self._max_series or self._characters + cost > self._max_characters:
            return False
        self._count += 1
        self._characters += cost
        return True

    def expire(self, now: float) -> None:
        """Forget series that were not pushed for a while, and clients without series."""
        self._expired_at = now
        for instance_id, client in list(self._clients.items()):
            for key in [key for key, (_, expires_at) in client.values.items() if expires_at <= now]:
                del client.values[key]
                self._count -= 1
                self._characters -= client.cost(key)
            if not client.values:
                del self._clients[instance_id]

    def collect(self, scrape: Scrape) -> Iterator[None]:
        """Add a family for each metric: a counter if its name ends with `_total`, else a gauge.

        Yields after every few samples, so that the caller can pause; pushes may arrive meanwhile. A gauge
        that is named as a counter without that ending is left out: OpenMetrics has one name for both.
        """
        names: set[str] = set()
        for client in list(self._clients.values()):
            names.update(name for name, _ in client.values)
            yield
        families: dict[str, Family] = {}
        for client in list(self._clients.values()):
            for number, ((name, labels), (value, _)) in enumerate(list(client.values.items())):
                if f"{name}{_TOTAL}" in names:
                    continue
                family = families.get(name)
                if family is None:
                    family = families[name] = _family(name)
                    scrape.add_family(family)
                label_names, label_values = zip(*_merged(client.labels, labels), strict=True)
                text = labels_text(label_names, label_values)
                scrape.lines(family).append(f"{name}{text} {number_text(value)}")
                if number % _SAMPLES_PER_STEP == 0:
                    yield


def _name(point: Point) -> str:
    name = point.name if point.name.startswith(_PREFIX) else f"{_PREFIX}{point.name}"
    return f"{name}{_TOTAL}" if point.monotonic and not name.endswith(_TOTAL) else name


def _family(name: str) -> Family:
    kind = Kind.COUNTER if name.endswith(_TOTAL) else Kind.GAUGE
    return Family(name, kind, f"Pushed by clients (KIP-714): {name}.", has_total=False)


def _characters(labels: Labels) -> int:
    return sum(len(name) + len(value) for name, value in labels)


def _merged(client: Labels, point: Labels) -> Labels:
    """Return the labels of a sample; those of the client win."""
    return tuple({**dict(point), **dict(client)}.items())
