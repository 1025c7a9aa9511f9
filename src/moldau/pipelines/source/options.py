"""The options of a source: the names and rules of Spark's Kafka connector, and a few of our own.

Spark hands names over in lower case. What starts with `kafka.` goes to the client, by Kafka's own names;
what the source itself decides there (where to begin, how records are decoded) is refused with what to use
instead. A name that is not known is ignored, as Spark does, unless it looks like one that is: then it is a
mistake that would pass unnoticed.

Ours are `groupId` (the consumer group that shows how far a query is), `topicIds` (false: topics go by their
names alone, and checkpoints look as those of Spark's connector) and the default of `kafka.isolation.level`,
which is read_committed.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from moldau.client.wire.settings import ClientSettings
from moldau.pipelines.option_names import flag, refuse_strange_names
from moldau.pipelines.source.errors import InvalidOption
from moldau.pipelines.source.positions import Position, check_batch, read_position
from moldau.pipelines.source.subscription import Subscription, read_subscription

_log = logging.getLogger(__name__)

NAMES = (
    "subscribe",
    "subscribePattern",
    "assign",
    "startingOffsets",
    "endingOffsets",
    "startingTimestamp",
    "endingTimestamp",
    "startingOffsetsByTimestamp",
    "endingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "minPartitions",
    "maxRecordsPerPartition",
    "includeHeaders",
    "failOnDataLoss",
    "groupId",
    "topicIds",
    "groupIdPrefix",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "kafkaConsumer.pollTimeoutMs",
)

_DECODED = "keys and values come as they are, as binary columns: decode them with Spark's functions"
_REFUSED = {
    "auto.offset.reset": "set 'startingOffsets' to say where a new query begins; one that was there before "
    "goes on where its checkpoint says",
    "key.deserializer": _DECODED,
    "value.deserializer": _DECODED,
    "enable.auto.commit": "a query's offsets are in its checkpoint, and are shown in the group 'groupId'",
    "interceptor.classes": "interceptors could change records unseen",
}

#: A broker that goes away for a minute is waited for; an address that never answered is reported sooner. With
#: `kafka.default.api.timeout.ms` the user decides how long.
PATIENCE_MS = 180_000
FIRST_CONTACT_MS = 10_000
_PATIENCE = "default.api.timeout.ms"

_UNITS_MS = {"us": 0.001, "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True, slots=True)
class SourceOptions:
    settings: ClientSettings
    subscription: Subscription
    start: Position
    end: Position
    read_committed: bool = True
    include_headers: bool = False
    fail_on_data_loss: bool = True
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_ms: int = 900_000
    topic_ids: bool = True
    group_id: str | None = None
    group_id_prefix: str | None = None
    attempts: int = 3
    attempt_interval_ms: int = 1000

    @property
    def patient_settings(self) -> ClientSettings:
        """For a cluster that has answered before."""
        return replace(self.settings, bootstrap_timeout_ms=self.settings.api_timeout_ms)


def read_options(given: Mapping[str, str], *, stream: bool) -> SourceOptions:
    """Check everything that can be checked without the cluster."""
    options = {name.lower(): value for name, value in given.items()}
    refuse_strange_names(options, NAMES)
    if stream:
        _refuse_ends(options)
    client = {name[len("kafka.") :]: value for name, value in options.items() if name.startswith("kafka.")}
    _refuse_client_options(client)
    start = read_position(options, "starting", "latest" if stream else "earliest")
    end = Position("latest") if stream else read_position(options, "ending", "latest")
    if not stream:
        check_batch(start, end)
        _warn_of_limits(options)
    return _with_limits(
        SourceOptions(
            settings=_settings(client),
            subscription=read_subscription(options),
            start=start,
            end=end,
            read_committed=_isolation(client),
            include_headers=includes_headers(options),
            fail_on_data_loss=flag(options, "failOnDataLoss", default=True),
            topic_ids=flag(options, "topicIds", default=True),
            group_id=options.get("groupid") or client.get("group.id"),
            group_id_prefix=options.get("groupidprefix"),
        ),
        options,
    )


def includes_headers(options: Mapping[str, str]) -> bool:
    return flag(options, "includeHeaders", default=False)


def _settings(client: Mapping[str, str]) -> ClientSettings:
    defaults = {"client.id": "moldau-source", _PATIENCE: str(PATIENCE_MS)}
    read = ClientSettings.from_properties({**defaults, **client})
    return replace(read, bootstrap_timeout_ms=min(FIRST_CONTACT_MS, read.api_timeout_ms))


def _with_limits(read: SourceOptions, options: Mapping[str, str]) -> SourceOptions:
    least, most = _count(options, "minOffsetsPerTrigger"), _count(options, "maxOffsetsPerTrigger")
    if least is not None and most is not None and least > most:
        raise InvalidOption(f"minOffsetsPerTrigger ({least}) is higher than maxOffsetsPerTrigger ({most}).")
    # Brokers that do not answer are waited for as long as `kafka.default.api.timeout.ms` says.
    _count(options, "kafkaConsumer.pollTimeoutMs")
    delay = options.get("maxtriggerdelay")
    return replace(
        read,
        min_partitions=_count(options, "minPartitions"),
        max_records_per_partition=_count(options, "maxRecordsPerPartition"),
        max_offsets_per_trigger=most,
        min_offsets_per_trigger=least,
        max_trigger_delay_ms=read.max_trigger_delay_ms if delay is None else _duration_ms(delay),
        attempts=_count(options, "fetchOffset.numRetries") or read.attempts,
        attempt_interval_ms=_count(options, "fetchOffset.retryIntervalMs") or read.attempt_interval_ms,
    )


def _warn_of_limits(options: Mapping[str, str]) -> None:
    for name in ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay"):
        if name.lower() in options:
            _log.warning("The option '%s' is for streams: a topic that is read once is read whole.", name)


def _refuse_ends(options: Mapping[str, str]) -> None:
    for name in ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"):
        if name.lower() in options:
            raise InvalidOption(
                f"A stream has no end: the option '{name}' is for spark.read. A query that ends where its "
                "topics end now has trigger(availableNow=True)."
            )


def _refuse_client_options(client: Mapping[str, str]) -> None:
    for name, instead in _REFUSED.items():
        if name in client:
            raise InvalidOption(f"The option 'kafka.{name}' is not supported: {instead}.")


def _isolation(client: Mapping[str, str]) -> bool:
    level = client.get("isolation.level", "read_committed").strip().lower()
    if level not in ("read_committed", "read_uncommitted"):
        raise InvalidOption(
            f"The option 'kafka.isolation.level' is read_committed or read_uncommitted, not {level!r}."
        )
    return level == "read_committed"


def _count(options: Mapping[str, str], name: str) -> int | None:
    text = options.get(name.lower())
    if text is None:
        return None
    if not text.strip().isdecimal() or int(text) <= 0:
        raise InvalidOption(f"The option '{name}' must be a positive number, not {text!r}.")
    return int(text)


def _duration_ms(text: str) -> int:
    """Spark's durations: a number with a unit, milliseconds without."""
    found = re.fullmatch(r"(\d+)\s*([a-z]*)", text.strip().lower())
    unit = (found.group(2) or "ms") if found else ""
    if found is None or unit not in _UNITS_MS:
        raise InvalidOption(f"The option 'maxTriggerDelay' is a duration such as 15m or 30s, not {text!r}.")
    return int(int(found.group(1)) * _UNITS_MS[unit])
