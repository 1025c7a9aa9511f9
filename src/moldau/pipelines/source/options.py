"""The options of the source: those of Spark's Kafka connector with its rules, and a few additions.

Spark passes names in lower case. Options that begin with `kafka.` are properties of the client; properties
that the source itself controls (starting offsets, deserializers) are refused with the option to use instead.

The additions are `groupId` (the consumer group that shows the progress of a query), `topicIds` (false: topics
are identified by name only, and checkpoints are those of Spark's Kafka connector), and the default of
`kafka.isolation.level`, which is read_committed.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from moldau.client.wire.settings import ClientSettings
from moldau.pipelines.options import InvalidOption, check_names, client_properties, flag
from moldau.pipelines.source.positions import Position, check_batch, read_position
from moldau.pipelines.source.subscription import Subscription, read_subscription

logger = logging.getLogger(__name__)

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

_DECODED = "keys and values are binary columns: decode them with Spark's functions"
_REFUSED = {
    "auto.offset.reset": "'startingOffsets' sets where a new query starts; later runs continue from the "
    "checkpoint",
    "key.deserializer": _DECODED,
    "value.deserializer": _DECODED,
    "enable.auto.commit": "the offsets of a query are in its checkpoint, and are also committed to the "
    "group 'groupId'",
    "interceptor.classes": "interceptors could change records unnoticed",
}

#: Longer than the restart of a broker takes; an address that has never answered is reported sooner.
#: `kafka.default.api.timeout.ms` overrides both.
API_TIMEOUT_MS = 180_000
BOOTSTRAP_TIMEOUT_MS = 10_000
_API_TIMEOUT = "default.api.timeout.ms"

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
    def connected_settings(self) -> ClientSettings:
        """The client settings after the first response of the cluster."""
        return replace(self.settings, bootstrap_timeout_ms=self.settings.api_timeout_ms)


def read_options(given: Mapping[str, str], *, stream: bool) -> SourceOptions:
    """Parse and check the options, without contacting the cluster."""
    options = {name.lower(): value for name, value in given.items()}
    check_names(options, NAMES)
    if stream:
        _refuse_ends(options)
    client = client_properties(options, _REFUSED)
    start = read_position(options, "starting", "latest" if stream else "earliest")
    end = Position("latest") if stream else read_position(options, "ending", "latest")
    if not stream:
        check_batch(start, end)
        _warn_about_limits(options)
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
    defaults = {"client.id": "moldau-source", _API_TIMEOUT: str(API_TIMEOUT_MS)}
    read = ClientSettings.from_properties({**defaults, **client})
    return replace(read, bootstrap_timeout_ms=min(BOOTSTRAP_TIMEOUT_MS, read.api_timeout_ms))


def _with_limits(read: SourceOptions, options: Mapping[str, str]) -> SourceOptions:
    least, most = _count(options, "minOffsetsPerTrigger"), _count(options, "maxOffsetsPerTrigger")
    if least is not None and most is not None and least > most:
        raise InvalidOption(f"minOffsetsPerTrigger ({least}) is higher than maxOffsetsPerTrigger ({most}).")
    # Checked but not used: `kafka.default.api.timeout.ms` limits the wait for brokers.
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


def _warn_about_limits(options: Mapping[str, str]) -> None:
    for name in ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay"):
        if name.lower() in options:
            logger.warning("The option '%s' is for streams; a batch reads all records.", name)


def _refuse_ends(options: Mapping[str, str]) -> None:
    for name in ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"):
        if name.lower() in options:
            raise InvalidOption(
                f"The option '{name}' is for spark.read; a stream has no end. To stop a query at the current "
                "end of its topics, use trigger(availableNow=True)."
            )


def _isolation(client: Mapping[str, str]) -> bool:
    level = client.get("isolation.level", "read_committed").strip().lower()
    if level not in ("read_committed", "read_uncommitted"):
        raise InvalidOption(
            f"The option 'kafka.isolation.level' must be read_committed or read_uncommitted, not {level!r}."
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
    """Parse a duration of Spark: a number with a unit, in milliseconds without one."""
    found = re.fullmatch(r"(\d+)\s*([a-z]*)", text.strip().lower())
    unit = (found.group(2) or "ms") if found else ""
    if found is None or unit not in _UNITS_MS:
        raise InvalidOption(
            f"The option 'maxTriggerDelay' must be a duration such as 15m or 30s, not {text!r}."
        )
    return int(int(found.group(1)) * _UNITS_MS[unit])
