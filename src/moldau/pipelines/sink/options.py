"""The options of a sink: the names of Spark's Kafka connector, and a few of our own.

`topic` says where rows go that have no column of that name; what starts with `kafka.` is for the producer,
by Kafka's own names. Ours are `delivery`, `sinkId` and `failOnDataLoss`.

`delivery` is `exactly-once` or `at-least-once`. Streams are exactly once unless told otherwise. A batch is
at least once: only inside `foreachBatch` there is a batch that Spark would run again, and there `delivery`
may be `exactly-once`. Then `sinkId` tells the writes of one function apart, if several go to the same
topic; and if its source has `failOnDataLoss` false, so should the sink (`lost_input` says why).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from moldau.client.wire.settings import ClientSettings
from moldau.pipelines.option_names import flag, refuse_strange_names
from moldau.pipelines.source.errors import InvalidOption

Delivery = Literal["exactly-once", "at-least-once"]

NAMES = ("topic", "includeHeaders", "delivery", "sinkId", "failOnDataLoss")

_BYTES = "keys and values are written as they are: encode them with Spark's functions"
_REFUSED = {
    "key.serializer": _BYTES,
    "value.serializer": _BYTES,
    "interceptor.classes": "interceptors could change records unseen",
    "partitioner.class": "the column 'partition' says where a record goes; without it the key does, as in "
    "Java",
}

#: The longest that brokers allow unless told otherwise: a task is one transaction, however many rows it has.
TRANSACTION_TIMEOUT_MS = 900_000
#: Brokers that are away for a minute or more are waited for, also by a task that has not met them yet.
DELIVERY_TIMEOUT_MS = MAX_BLOCK_MS = 120_000
#: What a task has on its way to the brokers: more makes no task quicker, and every worker larger.
BUFFER_MEMORY = 16 << 20
_COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")


@dataclass(frozen=True, slots=True)
class SinkOptions:
    settings: ClientSettings
    topic: str | None
    delivery: Delivery
    sink_id: str | None = None
    fail_on_data_loss: bool = True
    compression: str = "none"
    batch_size: int | None = None
    buffer_memory: int = BUFFER_MEMORY
    delivery_timeout_ms: int = DELIVERY_TIMEOUT_MS
    transaction_timeout_ms: int = TRANSACTION_TIMEOUT_MS

    @property
    def exactly_once(self) -> bool:
        return self.delivery == "exactly-once"

    @property
    def name(self) -> str:
        """What tells this sink from others of the same query."""
        return self.sink_id if self.sink_id is not None else self.topic or ""


def read_sink_options(given: Mapping[str, str], *, stream: bool) -> SinkOptions:
    """Check everything that can be checked without the cluster."""
    options = {name.lower(): value for name, value in given.items()}
    refuse_strange_names(options, NAMES)
    client = {name[len("kafka.") :]: value for name, value in options.items() if name.startswith("kafka.")}
    for name, instead in _REFUSED.items():
        if name in client:
            raise InvalidOption(f"The option 'kafka.{name}' is not supported: {instead}.")
    delivery = _delivery(options, "exactly-once" if stream else "at-least-once")
    _check_promises(client, delivery)
    settings = ClientSettings.from_properties({"client.id": "moldau-sink", **client})
    return SinkOptions(
        settings=replace(settings, bootstrap_timeout_ms=_number(client, "max.block.ms", MAX_BLOCK_MS)),
        topic=(options.get("topic") or "").strip() or None,
        delivery=delivery,
        sink_id=options.get("sinkid"),
        fail_on_data_loss=flag(options, "failOnDataLoss", default=True),
        compression=_choice("kafka.compression.type", client.get("compression.type", "none"), _COMPRESSIONS),
        batch_size=_number(client, "batch.size", 0) or None,
        buffer_memory=_number(client, "buffer.memory", BUFFER_MEMORY),
        delivery_timeout_ms=_number(client, "delivery.timeout.ms", DELIVERY_TIMEOUT_MS),
        transaction_timeout_ms=_number(client, "transaction.timeout.ms", TRANSACTION_TIMEOUT_MS),
    )


def _delivery(options: Mapping[str, str], default: Delivery) -> Delivery:
    text = options.get("delivery", default).strip().lower().replace("_", "-")
    if text == "exactly-once":
        return "exactly-once"
    if text == "at-least-once":
        return "at-least-once"
    raise InvalidOption(f"The option 'delivery' is exactly-once or at-least-once, not {text!r}.")


def _check_promises(client: Mapping[str, str], delivery: Delivery) -> None:
    """Settings that contradict what the producer does in any case."""
    if client.get("acks", "all") not in ("all", "-1") and delivery == "exactly-once":
        raise InvalidOption(
            "The option 'kafka.acks' must be all for delivery=exactly-once: a record that a broker loses "
            "would be counted as written."
        )
    if "transactional.id" in client:
        raise InvalidOption(
            "The option 'kafka.transactional.id' is not supported: each task has its own, named after the "
            "query. Say delivery=exactly-once."
        )


def _choice(name: str, text: str, allowed: tuple[str, ...]) -> str:
    if text.strip().lower() not in allowed:
        raise InvalidOption(f"The option '{name}' is one of {', '.join(allowed)}, not {text!r}.")
    return text.strip().lower()


def _number(client: Mapping[str, str], name: str, default: int) -> int:
    text = client.get(name, str(default)).strip()
    if not text.isdecimal():
        raise InvalidOption(f"The option 'kafka.{name}' must be a number, not {text!r}.")
    return int(text)
