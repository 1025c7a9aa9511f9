"""Java's `.properties` files, read and written exactly as `java.util.Properties` does.

Bytes are Latin-1, and other characters are written `\\uXXXX`. A line that ends in an odd number of
backslashes continues in the next one, whose leading blanks are dropped. A key ends at the first `=`, `:` or
blank without a backslash. Blanks around the separator are dropped, blanks at the end of a value are kept. Of
two lines with the same key the later one is used.

The package `javaproperties` does not fit: it writes escapes in lower case (Java: upper case), reads a comment
after an empty continued line as a key, keeps lone surrogates, reports invalid escapes without the line
number, and its import (with XML support) would delay the start of every node and command.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from os import PathLike

_BLANK = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class PropertiesError(ValueError):
    """The text is not a properties file; the message names the line."""


def load_properties(path: str | PathLike[str]) -> dict[str, str]:
    """Read a properties file; `OSError` if it cannot be read."""
    with open(path, encoding="latin-1", newline="") as file:
        return parse_properties(file.read())


def parse_properties(text: str) -> dict[str, str]:
    properties = {}
    for number, line in _logical_lines(text):
        key, value = _split(line)
        properties[_unescape(key, number)] = _unescape(value, number)
    return properties


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield numbered lines without comments and empty lines, joined with their continuations."""
    pending, start = "", 0
    for number, raw in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1):
        line = raw.lstrip(_BLANK)
        if not pending:
            if not line or line[0] in "#!":
                continue
            start = number
        if _continues(line):
            pending += line[:-1]
            continue
        yield start, pending + line
        pending = ""
    if pending:
        yield start, pending


def _continues(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split(line: str) -> tuple[str, str]:
    """Split a logical line into key and value, both still escaped."""
    end = 0
    while end < len(line) and line[end] not in "=: \t\f":
        end += 2 if line[end] == "\\" else 1
    rest = line[end:].lstrip(_BLANK)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANK)
    return line[:end], rest


def _unescape(text: str, line_number: int) -> str:
    if "\\" not in text:
        return text
    parts = []
    position = 0
    while (backslash := text.find("\\", position)) >= 0:
        parts.append(text[position:backslash])
        escaped = text[backslash + 1 : backslash + 2]
        position = backslash + 2
        if escaped == "u":
            parts.append(_unicode(text[position : position + 4], line_number))
            position += 4
        else:
            parts.append(_ESCAPES.get(escaped, escaped))
    parts.append(text[position:])
    joined = "".join(parts)
    return joined.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _unicode(digits: str, line_number: int) -> str:
    if len(digits) != 4 or any(digit not in "0123456789abcdefABCDEF" for digit in digits):
        raise PropertiesError(
            f"line {line_number}: \\u must be followed by four hexadecimal digits, not {digits!r}"
        )
    return chr(int(digits, 16))


def format_properties(properties: Mapping[str, str], comment: str, time_ms: int) -> str:
    """Return what Java's `Properties.store` writes: comment, date, then the pairs in the given order."""
    lines = [f"#{comment}", f"#{_date(time_ms)}"]
    lines += [f"{_escape(key, key=True)}={_escape(value, key=False)}" for key, value in properties.items()]
    return "\n".join(lines) + "\n"


def _date(time_ms: int) -> str:
    moment = time.gmtime(time_ms // 1000)
    day, month = _DAYS[moment.tm_wday], _MONTHS[moment.tm_mon - 1]
    return f"{day} {month} {moment.tm_mday:02} {time.strftime('%H:%M:%S', moment)} UTC {moment.tm_year}"


def _escape(text: str, *, key: bool) -> str:
    parts = []
    for position, character in enumerate(text):
        if character == " ":
            parts.append("\\ " if key or position == 0 else " ")
        elif character in "\\=:#!":
            parts.append("\\" + character)
        elif character in "\t\n\r\f":
            parts.append("\\" + "tnrf"["\t\n\r\f".index(character)])
        elif " " < character <= "~":
            parts.append(character)
        else:
            units = character.encode("utf-16-be")
            parts += [f"\\u{units[at] << 8 | units[at + 1]:04X}" for at in range(0, len(units), 2)]
    return "".join(parts)
