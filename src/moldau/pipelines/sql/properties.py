"""The properties of WITH (…), and the settings of SET."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from moldau.pipelines.formats.serialization import FORMATS
from moldau.pipelines.sql.errors import Place, SqlError, suggestion
from moldau.pipelines.sql.parse.cursor import Cursor
from moldau.pipelines.sql.parse.dialect import tokenize
from moldau.pipelines.sql.parse.statements import Properties, Window

#: The properties of WITH (…), and their meanings.
KNOWN = {
    "topic": "the topic; by default the name of the stream or table",
    "value_format": "JSON (default), KAFKA, DELIMITED, AVRO, JSON_SR, PROTOBUF, PROTOBUF_NOSR or BYTES",
    "key_format": "KAFKA (default), JSON, NONE, or another format of values",
    "partitions": "the number of partitions; creates the topic if it does not exist",
    "replicas": "the replication factor of a created topic",
    "retention_ms": "the retention of a created topic, in milliseconds",
    "timestamp": "the column that holds the timestamp of a record",
    "timestamp_format": "the format of a timestamp in text, such as yyyy-MM-dd HH:mm:ss",
    "value_delimiter": "the delimiter of the format DELIMITED: a character, TAB or SPACE",
    "wrap_single_value": "false if the only column is the whole value",
    "avro_schema": "the Avro schema of the values, as JSON",
    "avro_schema_file": "a file with the Avro schema of the values",
    "schema.registry.url": "the schema registry of AVRO, JSON_SR and PROTOBUF; by default the setting",
    "value_schema_id": "the id of the schema of the values; by default the latest of the subject",
    "key_schema_id": "the id of the schema of the keys",
    "window_type": "TUMBLING, HOPPING or SESSION if the keys are windowed",
    "window_size": "the size of the windows, such as 1 MINUTE",
    "dead_letter_topic": "the topic for records that cannot be deserialized",
}
_NUMBERS = ("partitions", "replicas", "retention_ms", "value_schema_id", "key_schema_id")
ALIASES = {"kafka_topic": "topic", "format": "value_format", "registry": "schema.registry.url"}
_KEPT = (
    "timestamp",
    "timestamp_format",
    "value_delimiter",
    "wrap_single_value",
    "avro_schema",
    "avro_schema_file",
    "schema.registry.url",
    "value_schema_id",
    "key_schema_id",
    "dead_letter_topic",
)


def checked_properties(given: Properties) -> dict[str, str]:
    """Check properties, and return them by their canonical names."""
    found = {}
    for name, value in given.items():
        usual, place = ALIASES.get(name, name), given.places.get(name)
        if usual not in KNOWN:
            hint = suggestion(name, [*KNOWN, *ALIASES]) or f"The properties are {', '.join(KNOWN)}."
            raise SqlError(f"Unknown property {name}", place, hint)
        if usual in _NUMBERS and not value.isdigit():
            raise SqlError(f"{name} must be a number, not {value!r}", place, f"Write: {name}=1")
        if usual in ("value_format", "key_format") and value.upper() not in FORMATS:
            hint = suggestion(value, FORMATS) or f"The formats are {', '.join(FORMATS)}."
            raise SqlError(f"Unknown format {value}", place, hint)
        found[usual] = value
    return found


def source_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that are stored with a source."""
    return {name: value for name, value in properties.items() if name in _KEPT}


def key_window(properties: Mapping[str, str], place: Place) -> Window | None:
    """Return the window of the keys, from window_type and window_size."""
    kind = properties.get("window_type", "").upper()
    if not kind:
        return None
    if kind not in ("TUMBLING", "HOPPING", "SESSION"):
        raise SqlError(f"Unknown window_type {kind}", place, "Write TUMBLING, HOPPING or SESSION.")
    size = properties.get("window_size")
    if size is None and kind != "SESSION":
        raise SqlError("window_size is missing", place, "Write window_size='1 MINUTE', for example.")
    size_ms = Cursor(size, tokenize(size)).duration_ms() if size else 0
    return Window(kind, size_ms)  # type: ignore[arg-type]


#: The settings of SET, and their defaults.
SETTINGS = {
    "auto.offset.reset": "latest",
    "exactly.once": "true",
    "schema.registry.url": "",
    "trigger": "1 second",
}
#: Prefixes of ksqlDB settings that have no effect here.
_WITHOUT_EFFECT = (
    "cache.max.bytes.buffering",
    "commit.interval.ms",
    "ksql.query.pull.",
    "num.stream.threads",
    "statestore.cache.max.bytes",
)
_CHOICES = {"auto.offset.reset": ("earliest", "latest"), "exactly.once": ("true", "false")}


@dataclass(slots=True)
class Settings:
    """The settings of an engine."""

    given: dict[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> str:
        return self.given.get(name, SETTINGS[name])

    def set(self, name: str, value: str | None) -> str:
        """Set a value, or reset it to the default with None. Return the message for the user."""
        name = name.lower().removeprefix("ksql.streams.")
        if name == "ksql.schema.registry.url":
            name = "schema.registry.url"
        if name.startswith(_WITHOUT_EFFECT):
            return f"{name} has no effect: Spark runs the queries."
        if name == "processing.guarantee":
            name, value = "exactly.once", value and str(value.startswith("exactly_once")).lower()
        if name not in SETTINGS:
            hint = suggestion(name, SETTINGS) or f"The settings are {', '.join(SETTINGS)}."
            raise SqlError(f"Unknown setting {name}", hint=hint, word=name)
        if value is None:
            self.given.pop(name, None)
            return f"{name} is {self[name]} (default)."
        if value.lower() not in _CHOICES.get(name, (value.lower(),)):
            choices = " or ".join(f"'{choice}'" for choice in _CHOICES[name])
            raise SqlError(f"{name} cannot be {value}", hint=f"Use {choices}.", word=value)
        self.given[name] = value
        return f"{name} is {value}."
