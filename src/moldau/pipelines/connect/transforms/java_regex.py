"""Java's regular expressions and replacement texts, by Python's.

Translated are named groups, `\\Q…\\E`, `\\z`, `\\Z`, `\\h`, `\\R` and the ASCII classes of `\\p`. Unions and
intersections of classes (`[a-z&&[^b]]`) and Unicode properties are refused.
"""

from __future__ import annotations

import re
import warnings
from typing import Any

from moldau.pipelines.connect.data.errors import ConfigError

_TOKEN = re.compile(
    r"\\Q(?P<quoted>.*?)(?:\\E|$)|\\p\{(?P<property>\w+)\}|\\(?P<escape>.)|(?P<group>\(\?<(?=[A-Za-z]))", re.S
)
_CLASSES = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": r"!-/:-@\[-`{-~",
    "Space": r" \t\n\x0b\f\r",
    "XDigit": "0-9a-fA-F",
    "ASCII": r"\x00-\x7f",
    "Blank": r" \t",
}
_ESCAPES = {
    "z": r"\Z",
    "Z": r"(?=\n?\Z)",
    "h": r"[ \t\xa0]",
    "R": r"(?:\r\n|[\n\r\x0b\x0c\x85])",
    "e": r"\x1b",
}
_REFERENCE = re.compile(r"\\(.)|\$\{(\w+)\}|\$([0-9]+)|([$\\])", re.S)


def compile_java(expression: str) -> re.Pattern[str]:
    """Compile the expression; re.error if it is not one, or not supported."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return re.compile(_TOKEN.sub(_translated, expression), re.ASCII)
        except (FutureWarning, DeprecationWarning) as warning:
            raise re.error(f"{warning}: sets of characters cannot be combined here") from None


def _translated(found: re.Match[str]) -> str:
    if found["quoted"] is not None:
        return re.escape(found["quoted"])
    if found["group"]:
        return "(?P<"
    if found["property"]:
        if found["property"] not in _CLASSES:
            raise re.error(f"The property {found['property']} is not supported")
        chars = _CLASSES[found["property"]]
        return chars if _inside_class(found.string[: found.start()]) else f"[{chars}]"
    return _ESCAPES.get(found["escape"], found[0])


def _inside_class(before: str) -> bool:
    plain = re.sub(r"\\.", "", before)
    return plain.rfind("[") > plain.rfind("]")


def regex_validator(name: str, value: Any) -> None:
    """A validator: the text is a regular expression."""
    try:
        compile_java(value or "")
    except (re.error, OverflowError) as error:
        raise ConfigError.invalid(name, value, f"Invalid regex: {error}") from None


class Replacement:
    """A replacement text with references to groups, `$1` or `${name}`."""

    def __init__(self, text: str, pattern: re.Pattern[str]) -> None:
        self._parts: list[str | int] = []
        position = 0
        for found in _REFERENCE.finditer(text):
            self._parts.append(text[position : found.start()])
            position = found.end()
            self._parts.extend(_reference(found, pattern))
        self._parts.append(text[position:])

    def expand(self, found: re.Match[str]) -> str:
        return "".join(part if isinstance(part, str) else found[part] or "" for part in self._parts)


def _reference(found: re.Match[str], pattern: re.Pattern[str]) -> list[str | int]:
    escaped, name, digits, lone = found.groups()
    if escaped is not None:
        return [escaped]
    if lone is not None:
        raise ConfigError("Illegal group reference in the replacement: write \\$ for a dollar")
    if name is not None:
        if name not in pattern.groupindex:
            raise ConfigError(f"No group with name {{{name}}}")
        return [pattern.groupindex[name]]
    # As many digits as name a group; the others are text.
    length = len(digits)
    while length > 1 and int(digits[:length]) > pattern.groups:
        length -= 1
    if int(digits[:length]) > pattern.groups:
        raise ConfigError(f"No group {digits[:length]}")
    return [int(digits[:length]), digits[length:]]
