"""The options of the sink: those of Spark's Kafka connector, and `delivery`, `sinkId`, `failOnDataLoss`.

`topic` is the topic of rows without a column of that name; options that begin with `kafka.` are properties of
the producer.

`delivery` is `exactly-once` or `at-least-once`, by default `exactly-once` for streams and `at-least-once` for
batches. Only inside `foreachBatch` a batch may be `exactly-once`, because only there Spark replays it. Then
`sinkId` distinguishes several writes of one function to the same topic; and if the source has
`failOnDataLoss` false, the sink should have it, too (see `query_listener`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from moldau.client.wire.settings import ClientSettings
from moldau.pipelines.options import InvalidOption, check_names, client_properties, flag

Delivery = Literal["exactly-once", "at-least-once"]

NAMES = ("topic", "includeHeaders", "delivery", "sinkId", "failOnDataLoss")

_BYTES = "keys and values are written unchanged: encode them with Spark's functions"
_REFUSED = {
    "key.serializer": _BYTES,
    "value.serializer": _BYTES,
    "interceptor.classes": "interceptors could change records unnoticed",
    "partitioner.class": "the column 'partition' names the partition of a record; without it the hash of the "
    "key decides, as in Java",
}

#: The default of the brokers' transaction.max.timeout.ms: a task is one transaction of any number of rows.
TRANSACTION_TIMEOUT_MS = 900_000
#: Longer than the restart of a broker takes, also for the first contact of a task.
DELIVERY_TIMEOUT_MS = MAX_BLOCK_MS = 120_000
#: More memory does not make a task faster, only its worker larger.
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
        """The name that distinguishes this sink from others of the same query."""
        return self.sink_id if self.sink_id is not None else self.topic or ""


def read_sink_options(given: Mapping[str, str], *, stream: bool) -> SinkOptions:
    """Parse and check the options, without contacting the cluster."""
    options = {name.lower(): value for name, value in given.items()}
    check_names(options, NAMES)
    client = client_properties(options, _REFUSED)
    delivery = _delivery(options, "exactly-once" if stream else "at-least-once")
    _check_delivery(client, delivery)
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
    raise InvalidOption(f"The option 'delivery' must be exactly-once or at-least-once, not {text!r}.")


def _check_delivery(client: Mapping[str, str], delivery: Delivery) -> None:
    """Refuse producer properties that contradict the delivery guarantee."""
    if client.get("acks", "all") not in ("all", "-1") and delivery == "exactly-once":
        raise InvalidOption(
            "The option 'kafka.acks' must be all for delivery=exactly-once: a record that a broker loses "
            "would count as written."
        )
    if "transactional.id" in client:
        raise InvalidOption(
            "The option 'kafka.transactional.id' is not supported: each task has its own, derived from the "
            "query. Set delivery=exactly-once."
        )


def _choice(name: str, text: str, allowed: tuple[str, ...]) -> str:
    if text.strip().lower() not in allowed:
        raise InvalidOption(f"The option '{name}' must be one of {', '.join(allowed)}, not {text!r}.")
    return text.strip().lower()


def _number(client: Mapping[str, str], name: str, default: int) -> int:
    text = client.get(name, str(default)).strip()
    if not text.isdecimal():
        raise InvalidOption(f"The option 'kafka.{name}' must be a number, not {text!r}.")
    return int(text)
