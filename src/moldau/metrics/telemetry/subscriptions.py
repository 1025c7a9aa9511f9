"""Which metrics a client pushes, and how often: the union of the subscriptions that match it (KIP-714).

A subscription is a `client-metrics` resource with `metrics`, `interval.ms` and `match`. A client asks for its
subscriptions at most once per push interval, and pushes once; earlier requests are refused. As in Kafka, a
client is forgotten when its connection closes, and after three push intervals without a request.
"""

from __future__ import annotations

import re
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from moldau.base.errors import ErrorCode, KafkaError

DEFAULT_INTERVAL_MS: Final = 300_000
ALL_METRICS: Final = "*"
MAX_CLIENTS: Final = 16_384
_INTERVALS_KEPT: Final = 3
_MIN_KEPT_MS: Final = 60_000
#: How often `client` looks for clients to forget.
_EXPIRE_MS: Final = 10_000
#: After these errors of a push a client may ask for its subscriptions at once.
_ASK_AGAIN: Final = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
_EARLY: Final = "The request arrived before the next push interval."


class Subscription(NamedTuple):
    metrics: tuple[str, ...]
    interval_ms: int
    #: Patterns that must match the whole value, by parameter (`client_id`, …).
    match: Mapping[str, re.Pattern[str]]

    def matches(self, client: Mapping[str, str]) -> bool:
        return all(pattern.fullmatch(client.get(name, "")) for name, pattern in self.match.items())


class ClientInstance:
    """A client by its instance id, with the subscriptions of one generation of the metadata."""

    __slots__ = (
        "asked_ms",
        "connection",
        "expires_ms",
        "generation",
        "interval_ms",
        "last_error",
        "metrics",
        "pushed_ms",
        "subscription_id",
        "terminating",
    )

    def __init__(self) -> None:
        self.generation = -1
        self.interval_ms = DEFAULT_INTERVAL_MS
        self.metrics: tuple[str, ...] = ()
        self.subscription_id = 0
        self.asked_ms = self.pushed_ms = float("-inf")
        self.terminating = False
        self.last_error = ErrorCode.NONE
        #: Of the last request, and when the client is forgotten without another one.
        self.connection: object = None
        self.expires_ms = float("inf")

    @property
    def kept_ms(self) -> int:
        """How long a client without requests is kept, and its metrics."""
        return max(_MIN_KEPT_MS, _INTERVALS_KEPT * self.interval_ms)

    def check_ask(self, now_ms: float) -> None:
        """Raise THROTTLING_QUOTA_EXCEEDED if the client asks too early."""
        early = now_ms - max(self.asked_ms, self.pushed_ms) < self.interval_ms
        if early and self.last_error not in _ASK_AGAIN:
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, _EARLY)
        if not early:
            self.asked_ms = now_ms
        self.last_error = ErrorCode.NONE

    def check_push(self, now_ms: float, subscription_id: int, *, terminating: bool) -> None:
        """Raise the error of a push that is not accepted; the first after an answer is never early."""
        if self.terminating:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "The client has announced that it terminates.")
        accepted = self.asked_ms > self.pushed_ms or now_ms - self.pushed_ms >= self.interval_ms
        if accepted:
            self.pushed_ms = now_ms
        elif not terminating:
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, _EARLY)
        if subscription_id != self.subscription_id:
            raise KafkaError(ErrorCode.UNKNOWN_SUBSCRIPTION_ID)


class ClientSubscriptions:
    """The subscriptions of the cluster, and the clients that use them, the least recent forgotten first."""

    def __init__(self) -> None:
        self._subscriptions: tuple[Subscription, ...] = ()
        self._generation = 0
        self._clients: OrderedDict[bytes, ClientInstance] = OrderedDict()
        self._expired_ms = float("-inf")

    def __len__(self) -> int:
        return len(self._clients)

    def __contains__(self, instance_id: bytes) -> bool:
        return instance_id in self._clients

    def replace(self, subscriptions: Iterable[Subscription]) -> None:
        """Take over changed subscriptions; clients are told with their next request."""
        self._subscriptions = tuple(subscriptions)
        self._generation += 1

    def client(
        self, instance_id: bytes, parameters: Mapping[str, str], now_ms: float, connection: object = None
    ) -> ClientInstance:
        """Return the client of a request with its present subscriptions; a changed one may ask at once."""
        if now_ms - self._expired_ms >= _EXPIRE_MS:
            self.expire(now_ms)
        found = self._clients.get(instance_id)
        if found is None or found.generation != self._generation:
            found = self._clients[instance_id] = self._evaluated(instance_id, parameters)
            if len(self._clients) > MAX_CLIENTS:
                self._clients.popitem(last=False)
        self._clients.move_to_end(instance_id)
        found.connection, found.expires_ms = connection, now_ms + found.kept_ms
        return found

    def expire(self, now_ms: float) -> None:
        """Forget clients that have sent no request for a while."""
        self._expired_ms = now_ms
        for instance_id in [each for each, client in self._clients.items() if client.expires_ms <= now_ms]:
            del self._clients[instance_id]

    def forget(self, instance_id: bytes, connection: object) -> None:
        """Forget a client whose connection is closed, unless it has another one since."""
        client = self._clients.get(instance_id)
        if client is not None and client.connection is connection:
            del self._clients[instance_id]

    def _evaluated(self, instance_id: bytes, parameters: Mapping[str, str]) -> ClientInstance:
        client = ClientInstance()
        client.generation = self._generation
        metrics: dict[str, None] = {}
        for subscription in self._subscriptions:
            if subscription.matches(parameters):
                metrics.update(dict.fromkeys(subscription.metrics))
                client.interval_ms = min(client.interval_ms, subscription.interval_ms)
        client.metrics = (ALL_METRICS,) if ALL_METRICS in metrics else tuple(metrics)
        checksum = zlib.crc32(
            f"{sorted(client.metrics)}{client.interval_ms}".encode(), zlib.crc32(instance_id)
        )
        client.subscription_id = checksum - (1 << 32) if checksum >= 1 << 31 else checksum
        return client
