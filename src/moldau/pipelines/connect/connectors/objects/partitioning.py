"""Partitioners of Confluent's storage connectors: the folder of a record below its topic."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from moldau.pipelines.connect.connectors.lake.rows.keys import nested
from moldau.pipelines.connect.connectors.lake.rows.values import text
from moldau.pipelines.connect.data.errors import ConfigError, DataError
from moldau.pipelines.connect.data.logical import datetime_of, millis_of
from moldau.pipelines.connect.data.records import SinkRecord

#: Default, Field, TimeBased, Daily, Hourly; also by the names of Confluent's classes.
PARTITIONERS: Final = ("Default", "Field", "TimeBased", "Daily", "Hourly")
EXTRACTORS: Final = ("Wallclock", "Record", "RecordField")
_DAY_MS, _HOUR_MS = 86_400_000, 3_600_000
_DAILY: Final = "'year'=YYYY/'month'=MM/'day'=dd"
#: Literal text; two quotes are one.
_QUOTED: Final = re.compile("'((?:[^']|'')*)'")
_WIDTHS: Final[Mapping[str, str]] = {"M": "month", "d": "day", "H": "hour", "m": "minute", "s": "second"}


def short_name(name: str, suffix: str) -> str:
    """Return the short form of a class name: `io.confluent...DailyPartitioner` is Daily."""
    simple = name.rpartition(".")[2].rpartition("$")[2]
    return simple.removesuffix(suffix)


class Partitioner:
    """Encodes the folder of records. `is_timed` partitioners know the time of a record."""

    is_timed = False
    #: Whether the same record always has the same folder.
    is_deterministic = True

    def folder(self, record: SinkRecord) -> str:
        return f"partition={record.original_partition}"

    def time_ms(self, record: SinkRecord) -> int | None:
        return None


class FieldPartitioner(Partitioner):
    def __init__(self, fields: list[str], delimiter: str) -> None:
        if not fields:
            raise ConfigError(
                'Missing required configuration "partition.field.name" for the field partitioner.'
            )
        self._fields = fields
        self._delimiter = delimiter

    def folder(self, record: SinkRecord) -> str:
        parts = []
        for name in self._fields:
            value = nested(record.value, name)
            if value is None or isinstance(value, (dict, list)):
                raise DataError(f"The record has no value for the partition field {name}.")
            # A value cannot add folders.
            parts.append(f"{name}={text(value).replace('/', '%2F')}")
        return self._delimiter.join(parts)


class TimePartitioner(Partitioner):
    is_timed = True

    def __init__(self, path_format: str, duration_ms: int, zone: tzinfo, extractor: str, field: str) -> None:
        self._format = path_format
        self._duration_ms = duration_ms
        self._zone = zone
        self._extractor = extractor
        self._field = field
        self.is_deterministic = extractor != "Wallclock"
        time_text(path_format, datetime.now(UTC))

    def folder(self, record: SinkRecord) -> str:
        found = self.time_ms(record)
        if found is None:
            raise DataError("The record has no timestamp to partition by.")
        local = datetime_of(found).astimezone(self._zone)
        offset = local.utcoffset()
        shift_ms = 0 if offset is None else int(offset.total_seconds() * 1000)
        bucket = (found + shift_ms) // self._duration_ms * self._duration_ms - shift_ms
        return time_text(self._format, datetime_of(bucket).astimezone(self._zone))

    def time_ms(self, record: SinkRecord) -> int | None:
        if self._extractor == "Wallclock":
            return int(time.time() * 1000)
        if self._extractor == "Record":
            return record.timestamp
        value = nested(record.value, self._field)
        if isinstance(value, datetime):
            return millis_of(value)
        if isinstance(value, str):
            return _parsed_ms(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        raise DataError(f"The field {self._field} of the record is no time.")


def _parsed_ms(value: str) -> int:
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        raise DataError(f"{value} is no time in ISO 8601.") from None
    return millis_of(found if found.tzinfo else found.replace(tzinfo=UTC))


def time_text(pattern: str, moment: datetime) -> str:
    """Format a time by a pattern of Joda-Time; the letters of years, months, days and times are known."""
    found, position = [], 0
    while position < len(pattern):
        letter = pattern[position]
        end = position + 1
        if letter == "'":
            quoted = _QUOTED.match(pattern, position)
            if quoted is None:
                raise ConfigError(f"path.format has a quote without end: {pattern}")
            end = quoted.end()
            found.append(quoted[1].replace("''", "'") or "'")
        elif letter.isascii() and letter.isalpha():
            while end < len(pattern) and pattern[end] == letter:
                end += 1
            found.append(_letters(letter, end - position, moment, pattern))
        else:
            found.append(letter)
        position = end
    return "".join(found)


def _letters(letter: str, count: int, moment: datetime, pattern: str) -> str:
    if letter in "yY":
        return f"{moment.year % 100:02}" if count == 2 else f"{moment.year:0{count}}"
    if letter == "M" and count > 2:
        return moment.strftime("%b" if count == 3 else "%B")
    if letter == "E":
        return moment.strftime("%a" if count < 4 else "%A")
    if letter == "D":
        return f"{moment.timetuple().tm_yday:0{count}}"
    if letter == "S":
        return f"{moment.microsecond:06}"[:count]
    if letter not in _WIDTHS:
        raise ConfigError(f"path.format has the letter {letter}, which is not supported: {pattern}")
    return f"{getattr(moment, _WIDTHS[letter]):0{count}}"


def partitioner_of(settings: Mapping[str, Any]) -> Partitioner:
    """Return the configured partitioner; `ConfigError` if its settings are not valid."""
    kind = short_name(settings["partitioner.class"], "Partitioner")
    delimiter: str = settings["directory.delim"]
    if kind == "Default":
        return Partitioner()
    if kind == "Field":
        return FieldPartitioner([each for each in settings["partition.field.name"] if each], delimiter)
    if kind not in PARTITIONERS:
        raise ConfigError(f"Unknown partitioner.class {kind}. Valid are: {', '.join(PARTITIONERS)}")
    extractor = short_name(settings["timestamp.extractor"], "TimestampExtractor")
    if extractor not in EXTRACTORS:
        raise ConfigError(f"Unknown timestamp.extractor {extractor}. Valid are: {', '.join(EXTRACTORS)}")
    patterns = {"Daily": (_DAILY, _DAY_MS), "Hourly": (f"{_DAILY}/'hour'=HH", _HOUR_MS)}
    given = (settings["path.format"], settings["partition.duration.ms"])
    path_format, duration_ms = patterns.get(kind, given)
    if not path_format or duration_ms <= 0:
        raise ConfigError("The time-based partitioner needs path.format and partition.duration.ms.")
    field = settings["timestamp.field"]
    return TimePartitioner(
        path_format.rstrip(delimiter), duration_ms, zone_of(settings["timezone"]), extractor, field
    )


def zone_of(name: str) -> tzinfo:
    if not name:
        raise ConfigError('Missing required configuration "timezone".')
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise ConfigError(f"Unknown timezone {name}.") from None
