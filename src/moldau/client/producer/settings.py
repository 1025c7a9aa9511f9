"""The configuration of a producer: Kafka's names and Java's defaults, translated for librdkafka."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moldau.client.librdkafka.properties import translate

#: Java's defaults where librdkafka's differ.
_DEFAULTS: Mapping[str, Any] = {
    "buffer.memory": 33_554_432,
    "delivery.timeout.ms": 120_000,
    # buffer.memory is the limit instead.
    "queue.buffering.max.messages": 0,
    "partitioner": "murmur2_random",
    "statistics.interval.ms": 1000,
}
_TRANSACTION_TIMEOUT_MS = 60_000


def producer_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    defaults = dict(_DEFAULTS)
    if config.get("transactional.id"):
        # librdkafka refuses a delivery timeout longer than the transaction timeout.
        limit = int(config.get("transaction.timeout.ms", _TRANSACTION_TIMEOUT_MS))
        defaults["delivery.timeout.ms"] = min(limit, defaults["delivery.timeout.ms"])
    settings = translate({**defaults, **config})
    if "enable.idempotence" not in config and _can_be_idempotent(config):
        settings["enable.idempotence"] = True
    return settings


def _can_be_idempotent(config: Mapping[str, Any]) -> bool:
    """Java's producer is idempotent unless another config excludes it."""
    return (
        str(config.get("acks", "all")) in ("all", "-1")
        and str(config.get("retries", 1)) != "0"
        and int(config.get("max.in.flight.requests.per.connection", 5)) <= 5
    )
