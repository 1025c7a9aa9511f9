"""Text formats of `--reset-offsets`: CSV files of offsets, times and durations."""

from __future__ import annotations

import csv
import re
from datetime import UTC, datetime, timedelta, timezone

from moldau.base.ids import TopicPartition
from moldau.cli.shared.tool import ToolError

#: Jackson, which writes CSV for Kafka's tools, quotes every longer text.
_MAX_UNQUOTED_LENGTH = 24
#: Jackson quotes text with a character up to the comma, the last one with a meaning in CSV.
_FIRST_SAFE = "-"
_DATETIME = re.compile(r"\d{1,4}-\d{1,2}-\d{1,2}T\d{1,2}:\d{1,2}:\d{1,2}\.\d{1,3}(Z|[+-]\d{2}(:?\d{2})?)")
_DURATION = re.compile(
    r"([+-]?)P(?:([+-]?\d+)D)?"
    r"(T(?=.)(?:([+-]?\d+)H)?(?:([+-]?\d+)M)?(?:([+-]?\d+)(?:[.,](\d{0,9}))?S)?)?",
    re.IGNORECASE,
)

Plan = dict[str, dict[TopicPartition, int]]


def csv_line(*cells: str | int) -> str:
    return ",".join(_quoted(cell) if isinstance(cell, str) else str(cell) for cell in cells) + "\n"


def _quoted(text: str) -> str:
    if len(text) <= _MAX_UNQUOTED_LENGTH and all(character >= _FIRST_SAFE for character in text):
        return text
    return '"' + text.replace('"', '""') + '"'


def parse_plan(text: str, only_group: str | None) -> Plan:
    """Parse lines of group,topic,partition,offset; for a single group also of topic,partition,offset."""
    plan: Plan = {}
    for number, row in enumerate(csv.reader(text.splitlines()), 1):
        if not row:
            continue
        if only_group is not None and len(row) == 3:
            row = [only_group, *row]
        try:
            group, topic, partition, offset = row
            plan.setdefault(group, {})[TopicPartition(topic.strip(), int(partition))] = int(offset)
        except ValueError:
            columns = "topic,partition,offset" if only_group is not None else "group,topic,partition,offset"
            raise ToolError(f"Line {number} of the reset plan is not {columns}: {','.join(row)}") from None
    return plan


def parse_datetime(text: str) -> int:
    """Return the timestamp in ms of `YYYY-MM-DDThh:mm:ss.sss`, which is UTC unless a zone follows."""
    if "T" not in text:
        raise ToolError("Error parsing timestamp. It does not contain a 'T' according to ISO8601 format")
    zone = "" if re.search(r"[+Z-]", text.partition("T")[2]) else "Z"
    match = _DATETIME.fullmatch(text + zone)
    if match is None:
        raise ToolError(f'Unparseable date: "{text}{zone}" (write it as 2026-01-31T12:00:00.000)')
    date, _, rest = (text + zone).removesuffix(match[1]).partition("T")
    clock, _, fraction = rest.partition(".")
    year, month, day = map(int, date.split("-"))
    hour, minute, second = map(int, clock.split(":"))
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=_zone(match[1]))
    except ValueError as error:
        raise ToolError(f'Unparseable date: "{text}{zone}" ({error})') from error
    return int(moment.timestamp()) * 1000 + int(fraction)


def _zone(text: str) -> timezone:
    if text == "Z":
        return UTC
    digits = text[1:].replace(":", "").ljust(4, "0")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return timezone(-offset if text[0] == "-" else offset)


def parse_duration(text: str) -> int:
    """Return the milliseconds of an ISO 8601 duration `PnDTnHnMnS`."""
    match = _DURATION.fullmatch(text)
    if match is None or (match[2] is None and match[3] is None):
        raise ToolError(f"Text cannot be parsed to a Duration: {text} (write it as P1DT2H3M4S)")
    sign, days, _, hours, minutes, seconds, fraction = match.groups()
    whole = ((int(days or 0) * 24 + int(hours or 0)) * 60 + int(minutes or 0)) * 60 + int(seconds or 0)
    part = int((fraction or "").ljust(3, "0")[:3]) * (-1 if (seconds or "").startswith("-") else 1)
    return (-1 if sign == "-" else 1) * (whole * 1000 + part)
