"""What stands in WITH (…), and what can be SET."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from moldau.pipelines.formats.serialization import FORMATS
from moldau.pipelines.sql.errors import Place, SqlError, suggestion
from moldau.pipelines.sql.parse.cursor import Cursor
from moldau.pipelines.sql.parse.dialect import tokenize
from moldau.pipelines.sql.parse.statements import Properties, Window

#: Name -> what it is for.
KNOWN = {
    "topic": "the topic; its name is that of the stream or table unless given",
    "value_format": "JSON (unless given), KAFKA, DELIMITED, AVRO, BYTES",
    "key_format": "KAFKA (unless given), JSON, NONE, or what a value may be",
    "partitions": "how many partitions a topic gets that has to be created",
    "replicas": "how many replicas, then",
    "retention_ms": "how long it keeps records, then",
    "timestamp": "the column that is the time of a record",
    "timestamp_format": "how that is written if it is text, such as yyyy-MM-dd HH:mm:ss",
    "value_delimiter": "what separates values of DELIMITED: a character, TAB or SPACE",
    "wrap_single_value": "false: the only column is the whole value",
    "avro_schema": "the Avro schema of the values, as JSON",
    "avro_schema_file": "the same, in a file",
    "window_type": "TUMBLING, HOPPING or SESSION if the keys are windowed",
    "window_size": "how long those windows are, such as 1 MINUTE",
    "dead_letter_topic": "where records go that cannot be read",
}
_NUMBERS = ("partitions", "replicas", "retention_ms")
ALIASES = {"kafka_topic": "topic", "format": "value_format"}
_KEPT = (
    "timestamp",
    "timestamp_format",
    "value_delimiter",
    "wrap_single_value",
    "avro_schema",
    "avro_schema_file",
    "dead_letter_topic",
)


def checked(given: Properties) -> dict[str, str]:
    """Properties by their usual names."""
    found = {}
    for name, value in given.items():
        usual, place = ALIASES.get(name, name), given.places.get(name)
        if usual not in KNOWN:
            hint = suggestion(name, [*KNOWN, *ALIASES]) or f"There are {', '.join(KNOWN)}."
            raise SqlError(f"There is no property {name}", place, hint)
        if usual in _NUMBERS and not value.isdigit():
            raise SqlError(f"{name} is a number, and not {value!r}", place, f"Write: {name}=1")
        if usual in ("value_format", "key_format") and value.upper() not in FORMATS:
            hint = suggestion(value, FORMATS) or f"There are {', '.join(FORMATS)}."
            raise SqlError(f"There is no format {value}", place, hint)
        found[usual] = value
    return found


def kept(properties: Mapping[str, str]) -> dict[str, str]:
    """Those that a source needs later."""
    return {name: value for name, value in properties.items() if name in _KEPT}


def window(properties: Mapping[str, str], place: Place) -> Window | None:
    kind = properties.get("window_type", "").upper()
    if not kind:
        return None
    if kind not in ("TUMBLING", "HOPPING", "SESSION"):
        raise SqlError(f"There is no window_type {kind}", place, "Write TUMBLING, HOPPING or SESSION.")
    size = properties.get("window_size")
    if size is None and kind != "SESSION":
        raise SqlError("window_size is missing", place, "Write window_size='1 MINUTE', for example.")
    size_ms = Cursor(size, tokenize(size)).duration_ms() if size else 0
    return Window(kind, size_ms)  # type: ignore[arg-type]


#: What can be SET, with what holds until then.
SETTINGS = {
    "auto.offset.reset": "latest",
    "exactly.once": "true",
    "trigger": "1 second",
}
#: Settings of ksqlDB that decide nothing here, as they begin.
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
    given: dict[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> str:
        return self.given.get(name, SETTINGS[name])

    def set(self, name: str, value: str | None) -> str:
        """Set something, or take that back; what is to be said about it."""
        name = name.lower().removeprefix("ksql.streams.")
        if name.startswith(_WITHOUT_EFFECT):
            return f"{name} decides nothing here: Spark runs the queries."
        if name == "processing.guarantee":
            name, value = "exactly.once", value and str(value.startswith("exactly_once")).lower()
        if name not in SETTINGS:
            hint = suggestion(name, SETTINGS) or f"There are {', '.join(SETTINGS)}."
            raise SqlError(f"There is no setting {name}", hint=hint, word=name)
        if value is None:
            self.given.pop(name, None)
            return f"{name} is {self[name]}, as by default."
        if value.lower() not in _CHOICES.get(name, (value.lower(),)):
            choices = " or ".join(f"'{choice}'" for choice in _CHOICES[name])
            raise SqlError(f"{name} cannot be {value}", hint=f"It is {choices}.", word=value)
        self.given[name] = value
        return f"{name} is {value}."
