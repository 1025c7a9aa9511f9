"""The last values that clients have pushed, as metric families.

Growth since the last push (delta temporality) is summed up, so that a counter is a counter. Series of a
client that has not pushed for a while are forgotten, and their number is bounded.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from moldau.metrics.exposition import Scrape, labels_text, number_text
from moldau.metrics.family import Family, Kind
from moldau.metrics.telemetry.otlp import Point

MAX_SERIES: Final = 20_000
_PREFIX: Final = "org_apache_kafka_"
_TOTAL: Final = "_total"
Labels = tuple[tuple[str, str], ...]


class _Client:
    """The series of one client instance, until `expires_at`."""

    __slots__ = ("expires_at", "labels", "values")

    def __init__(self, labels: Labels) -> None:
        self.labels = labels
        self.expires_at = 0.0
        #: By name and labels.
        self.values: dict[tuple[str, Labels], float] = {}


class ClientSeries:
    def __init__(self, max_series: int = MAX_SERIES) -> None:
        self._max_series = max_series
        self._clients: dict[bytes, _Client] = {}
        self._count = 0
        #: Points that found no room.
        self.dropped = 0

    def __len__(self) -> int:
        return self._count

    def add(
        self, instance_id: bytes, labels: Labels, points: Iterable[Point], now: float, keep_seconds: float
    ) -> None:
        """Take over the points of a push; `labels` name the client."""
        client = self._clients.get(instance_id)
        if client is None:
            client = self._clients[instance_id] = _Client(labels)
        client.expires_at = now + keep_seconds
        for point in points:
            name = point.name if point.name.startswith(_PREFIX) else f"{_PREFIX}{point.name}"
            if point.monotonic and not name.endswith(_TOTAL):
                name += _TOTAL
            key = (name, point.labels)
            before = client.values.get(key)
            if before is None:
                if self._count >= self._max_series:
                    self.dropped += 1
                    continue
                self._count += 1
                before = 0.0
            client.values[key] = before + point.value if point.delta else point.value

    def expire(self, now: float) -> None:
        """Forget clients that have not pushed for a while."""
        for instance_id in [key for key, client in self._clients.items() if client.expires_at <= now]:
            self._count -= len(self._clients.pop(instance_id).values)

    def collect(self, scrape: Scrape) -> None:
        """Add a family for each metric: a counter if its name ends with `_total`, else a gauge.

        A gauge that is named as a counter without that ending is left out: OpenMetrics has one name for both.
        """
        families: dict[str, Family] = {}
        all_names = {name for client in self._clients.values() for name, _ in client.values}
        for client in self._clients.values():
            for (name, labels), value in client.values.items():
                if f"{name}{_TOTAL}" in all_names:
                    continue
                family = families.get(name)
                if family is None:
                    kind = Kind.COUNTER if name.endswith(_TOTAL) else Kind.GAUGE
                    help_text = f"Pushed by clients (KIP-714): {name}."
                    family = families[name] = Family(name, kind, help_text, has_total=False)
                    scrape.add_family(family)
                names, values = zip(*_merged(client.labels, labels), strict=True)
                scrape.lines(family).append(f"{name}{labels_text(names, values)} {number_text(value)}")


def _merged(client: Labels, point: Labels) -> Labels:
    """Return the labels of a sample; those of the client win."""
    return tuple({**dict(point), **dict(client)}.items())
