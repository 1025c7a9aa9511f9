"""Dates and times by the patterns of Java's SimpleDateFormat, in UTC and English.

Formatting knows every pattern letter. Parsing is lenient as in Java: fields may exceed their range and carry
over, and text after the last field is ignored; the letters `F`, `W`, `w`, `Y` and `u` are formatted but not
parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

LETTERS = frozenset("GyYMLwWDdFEuaHkKhmsSzZX")
_NOT_PARSED = frozenset("FWwYu")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_OFFSET = re.compile(r"(?:GMT|UTC)?([+-])([0-9]{1,2}):?([0-9]{2})?")
_ZONES = {
    "UTC": 0,
    "GMT": 0,
    "Z": 0,
    "EST": -5,
    "EDT": -4,
    "CST": -6,
    "CDT": -5,
    "MST": -7,
    "PST": -8,
    "PDT": -7,
}
_LONG_ZONES = {"Coordinated Universal Time": 0, "Greenwich Mean Time": 0}


@dataclass(frozen=True, slots=True)
class _Part:
    """A pattern letter with its count, or (without letter) literal text."""

    letter: str
    count: int
    text: str = ""

    @property
    def is_numeric(self) -> bool:
        if self.letter in ("M", "L"):
            return self.count <= 2
        return self.letter in LETTERS and self.letter not in "GEazZX"


def _parts(pattern: str) -> Iterator[_Part]:
    position = 0
    while position < len(pattern):
        char = pattern[position]
        if char == "'":
            text, position = _quoted(pattern, position)
            yield _Part("", 0, text)
        elif char.isascii() and char.isalpha():
            if char not in LETTERS:
                raise ValueError(f"Illegal pattern character '{char}'")
            count = len(pattern) - position - len(pattern[position:].lstrip(char))
            yield _Part(char, count)
            position += count
        else:
            yield _Part("", 0, char)
            position += 1


def _quoted(pattern: str, begin: int) -> tuple[str, int]:
    """Return the text between quotes and the position after them; two quotes are one."""
    if pattern.startswith("''", begin):
        return "'", begin + 2
    text, position = "", begin + 1
    while True:
        end = pattern.find("'", position)
        if end < 0:
            raise ValueError("Unterminated quote")
        text += pattern[position:end]
        if not pattern.startswith("''", end):
            return text, end + 1
        text += "'"
        position = end + 2


class DateFormat:
    """A compiled pattern; ValueError if it is not one."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._parts = list(_parts(pattern))

    def format(self, value: datetime) -> str:
        moment = value.astimezone(UTC)
        return "".join(part.text or _formatted(part, moment) for part in self._parts)

    def parse(self, text: str) -> datetime:
        """Return the moment; ValueError if the text does not match."""
        fields: dict[str, int] = {}
        position = 0
        for index, part in enumerate(self._parts):
            if not part.letter:
                if not text.startswith(part.text, position):
                    raise ValueError(text)
                position += len(part.text)
                continue
            following = self._parts[index + 1] if index + 1 < len(self._parts) else None
            exact = following is not None and following.is_numeric
            position = _parse_part(part, text, _after_blanks(text, position), exact, fields)
        return _moment(fields)


def _formatted(part: _Part, moment: datetime) -> str:
    if part.letter in ("M", "L") and part.count >= 3:
        name = _MONTHS[moment.month - 1]
        return name if part.count >= 4 else name[:3]
    if part.letter == "E":
        name = _DAYS[moment.weekday()]
        return name if part.count >= 4 else name[:3]
    if part.letter in ("y", "Y"):
        year = moment.year if part.letter == "y" else _week(moment)[0]
        return f"{year % 100:02}" if part.count == 2 else f"{year:0{part.count}}"
    if part.letter == "z":
        return "Coordinated Universal Time" if part.count >= 4 else "UTC"
    if part.letter in ("G", "a", "Z", "X"):
        return {"G": "AD", "a": "AM" if moment.hour < 12 else "PM", "Z": "+0000", "X": "Z"}[part.letter]
    return f"{_number(part.letter, moment):0{part.count}}"


def _number(letter: str, moment: datetime) -> int:
    match letter:
        case "M" | "L":
            return moment.month
        case "d":
            return moment.day
        case "H" | "k":
            return moment.hour or (24 if letter == "k" else 0)
        case "K" | "h":
            return moment.hour % 12 or (12 if letter == "h" else 0)
        case "m":
            return moment.minute
        case "s":
            return moment.second
        case "S":
            return moment.microsecond // 1000
        case "D":
            return moment.timetuple().tm_yday
        case "F":
            return (moment.day - 1) // 7 + 1
        case "u":
            return moment.isoweekday()
        case "W":
            first = moment.replace(day=1).isoweekday() % 7
            return (moment.day - 1 + first) // 7 + 1
    return _week(moment)[1]


def _week(moment: datetime) -> tuple[int, int]:
    """Return the week's year and number; weeks begin on Sunday, the first one contains January 1."""
    saturday = moment + timedelta(days=6 - moment.isoweekday() % 7)
    return saturday.year, (saturday.timetuple().tm_yday - 1) // 7 + 1


def _after_blanks(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t":
        position += 1
    return position


def _parse_part(part: _Part, text: str, position: int, exact: bool, fields: dict[str, int]) -> int:
    """Read one field into `fields`; return the position after it."""
    if part.letter in _NOT_PARSED:
        raise ValueError(f"The letter {part.letter} of a date pattern cannot be parsed")
    if part.is_numeric:
        return _parse_number(part, text, position, exact, fields)
    if part.letter in ("M", "L", "E", "a", "G"):
        return _parse_name(part.letter, text, position, fields)
    return _parse_zone(part.letter, text, position, fields)


def _parse_number(part: _Part, text: str, position: int, exact: bool, fields: dict[str, int]) -> int:
    found = re.compile(r"-?[0-9]+").match(text, position, position + part.count if exact else len(text))
    if found is None or (exact and position + part.count > len(text)):
        raise ValueError(text)
    value = int(found[0])
    if part.letter == "y" and part.count <= 2 and found.end() - position == 2 and found[0].isdigit():
        value = _two_digit_year(value)
    fields[part.letter] = value
    return found.end()


def _two_digit_year(value: int) -> int:
    """Return the year within 80 years before and 20 years after now."""
    first = datetime.now(UTC).year - 80
    year = first - first % 100 + value
    return year if year >= first else year + 100


def _parse_name(letter: str, text: str, position: int, fields: dict[str, int]) -> int:
    names = {"M": _MONTHS, "L": _MONTHS, "E": _DAYS, "a": ("AM", "PM"), "G": ("BC", "AD")}[letter]
    lower = text[position:].lower()
    for length in (None, 3):
        for index, name in enumerate(names):
            if lower.startswith(name[:length].lower()):
                fields["M" if letter == "L" else letter] = index + 1 if letter in "ML" else index
                return position + len(name[:length])
    raise ValueError(text)


def _parse_zone(letter: str, text: str, position: int, fields: dict[str, int]) -> int:
    zones = _ZONES if letter != "X" else {"Z": 0}
    for name, hours in (_LONG_ZONES | zones).items():
        if text.startswith(name, position) and not text[position + len(name) :].startswith(("+", "-")):
            fields["z"] = hours * 60
            return position + len(name)
    found = _OFFSET.match(text, position)
    if found is None:
        raise ValueError(text)
    minutes = int(found[2]) * 60 + int(found[3] or 0)
    fields["z"] = -minutes if found[1] == "-" else minutes
    return found.end()


def _moment(fields: dict[str, int]) -> datetime:
    """Return the moment of lenient fields: each may exceed its range, and carries over."""
    hour = fields.get("H", fields.get("k", 0) % 24)
    if "h" in fields or "K" in fields:
        hour = fields.get("K", fields.get("h", 0) % 12) + 12 * fields.get("a", 0)
    year, month = divmod(fields.get("y", 1970) * 12 + fields.get("M", fields.get("L", 1)) - 1, 12)
    day = fields.get("d", 1)
    if "D" in fields and "d" not in fields:
        month, day = 0, fields["D"]
    try:
        return datetime(year, month + 1, 1, tzinfo=UTC) + timedelta(
            days=day - 1,
            hours=hour,
            minutes=fields.get("m", 0) - fields.get("z", 0),
            seconds=fields.get("s", 0),
            milliseconds=fields.get("S", 0),
        )
    except (OverflowError, ValueError):
        raise ValueError("The date is outside the years 1 to 9999") from None
