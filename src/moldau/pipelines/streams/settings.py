"""The configuration of a streams application, by the names of Kafka Streams."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from moldau.pipelines.streams.dsl.parameters import checked_name
from moldau.pipelines.streams.dsl.serdes import Serde, as_serde
from moldau.pipelines.streams.errors import StreamsException

Handler = Literal["fail", "continue"]

_GUARANTEES = {"exactly_once_v2": True, "exactly_once": True, "at_least_once": False}
#: Configs of Kafka Streams, including those that have no effect because Spark does that work. All others
#: are configs of the client.
_KNOWN = frozenset(
    {
        "acceptable.recovery.lag",
        "application.id",
        "application.server",
        "auto.offset.reset",
        "bootstrap.servers",
        "commit.interval.ms",
        "default.key.serde",
        "default.value.serde",
        "deserialization.exception.handler",
        "errors.dead.letter.queue.topic.name",
        "max.offsets.per.trigger",
        "num.partitions",
        "num.standby.replicas",
        "num.stream.threads",
        "processing.exception.handler",
        "processing.guarantee",
        "repartition.purge.interval.ms",
        "replication.factor",
        "state.dir",
        "statestore.cache.max.bytes",
        "windowstore.changelog.additional.retention.ms",
    }
)
_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class StreamsSettings:
    """The parsed configuration. `client` holds the configs of the client, such as `security.protocol`."""

    application_id: str
    bootstrap_servers: str
    state_dir: str
    exactly_once: bool = True
    commit_interval_ms: int = 1000
    default_key_serde: Serde | None = None
    default_value_serde: Serde | None = None
    on_deserialization_error: Handler = "fail"
    on_processing_error: Handler = "fail"
    dead_letter_topic: str | None = None
    #: The number of partitions of internal topics whose number is not determined by their inputs.
    partitions: int | None = None
    #: -1 stands for the broker's default.
    replication_factor: int = -1
    window_retention_ms: int = _DAY_MS
    max_offsets_per_trigger: int | None = None
    purge_interval_ms: int = 30_000
    #: The start of sources without a reset policy of their own.
    offset_reset: Literal["earliest", "latest"] = "earliest"
    client: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> StreamsSettings:
        for needed in ("application.id", "bootstrap.servers"):
            if not config.get(needed):
                raise StreamsException(
                    f"{needed} is missing from the configuration of the streams application"
                )
        guarantee = str(config.get("processing.guarantee", "exactly_once_v2"))
        if guarantee not in _GUARANTEES:
            raise StreamsException(
                f"processing.guarantee must be exactly_once_v2 or at_least_once, not {guarantee!r}"
            )
        partitions = config.get("num.partitions")
        per_trigger = config.get("max.offsets.per.trigger")
        folder = Path(tempfile.gettempdir()) / "moldau-streams"
        return cls(
            application_id=checked_name(str(config["application.id"])),
            bootstrap_servers=str(config["bootstrap.servers"]),
            state_dir=str(config.get("state.dir", folder)),
            exactly_once=_GUARANTEES[guarantee],
            commit_interval_ms=int(config.get("commit.interval.ms", 1000)),
            default_key_serde=as_serde(config.get("default.key.serde")),
            default_value_serde=as_serde(config.get("default.value.serde")),
            on_deserialization_error=_handler(config, "deserialization.exception.handler"),
            on_processing_error=_handler(config, "processing.exception.handler"),
            dead_letter_topic=config.get("errors.dead.letter.queue.topic.name"),
            partitions=None if partitions is None else int(partitions),
            replication_factor=int(config.get("replication.factor", -1)),
            window_retention_ms=int(config.get("windowstore.changelog.additional.retention.ms", _DAY_MS)),
            max_offsets_per_trigger=None if per_trigger is None else int(per_trigger),
            purge_interval_ms=int(config.get("repartition.purge.interval.ms", 30_000)),
            offset_reset=_offset_reset(config),
            client={key: str(value) for key, value in config.items() if key not in _KNOWN},
        )

    def internal(self, topic: str) -> str:
        """Return the full name of an internal topic."""
        return f"{self.application_id}-{topic}"

    def checkpoint(self, stage: str) -> str:
        return str(Path(self.state_dir) / self.application_id / stage)


def _offset_reset(config: Mapping[str, Any]) -> Literal["earliest", "latest"]:
    given = str(config.get("auto.offset.reset", "earliest")).lower()
    if given == "earliest":
        return "earliest"
    if given == "latest":
        return "latest"
    raise StreamsException(f"auto.offset.reset must be earliest or latest, not {given!r}")


def _handler(config: Mapping[str, Any], key: str) -> Handler:
    """Parse `fail`, `continue`, or the class name of Java's exception handler."""
    given = str(config.get(key, "fail"))
    short = given.rpartition(".")[2].lower()
    if short in ("fail", "logandfailexceptionhandler", "logandfailprocessingexceptionhandler"):
        return "fail"
    if short in ("continue", "logandcontinueexceptionhandler", "logandcontinueprocessingexceptionhandler"):
        return "continue"
    raise StreamsException(f"{key} must be fail or continue, not {given!r}")
