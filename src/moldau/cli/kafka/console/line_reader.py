"""Parse lines into records like Kafka's LineMessageReader: optional headers, optional key, value.

A line is split as bytes at the separators; the parts are sent unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from moldau.cli.shared.tool import ToolError


class LineRecord(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]] | None


class LineReader:
    def __init__(self, properties: Mapping[str, str]) -> None:
        self._parse_key = _is_true(properties, "parse.key")
        self._parse_headers = _is_true(properties, "parse.headers")
        self._ignore_error = _is_true(properties, "ignore.error")
        self._key_separator = properties.get("key.separator", "\t").encode()
        self._headers_delimiter = properties.get("headers.delimiter", "\t").encode()
        self._headers_separator = properties.get("headers.separator", ",").encode()
        self._headers_key_separator = properties.get("headers.key.separator", ":").encode()
        marker = properties.get("null.marker")
        self._null_marker = None if marker is None else marker.encode()
        self._check()
        try:
            self._split_headers = re.compile(self._headers_separator).split
        except re.error as error:
            raise ToolError(f"headers.separator is not a regular expression: {error}") from error
        self._line_number = 0

    def _check(self) -> None:
        names = {
            "headers.delimiter": self._headers_delimiter,
            "headers.separator": self._headers_separator,
            "headers.key.separator": self._headers_key_separator,
        }
        pairs = [
            ("headers.delimiter", "headers.separator"),
            ("headers.delimiter", "headers.key.separator"),
            ("headers.separator", "headers.key.separator"),
        ]
        for first, second in pairs:
            if names[first] == names[second]:
                raise ToolError(f"{first} and {second} may not be equal")
        for name, separator in {"key.separator": self._key_separator, **names}.items():
            if separator == self._null_marker:
                raise ToolError(f"null.marker and {name} may not be equal")
            if not separator:
                raise ToolError(f"{name} may not be empty")

    def parse(self, line: bytes) -> LineRecord:
        """Parse a line without its line ending; raise `ToolError` if a separator is missing."""
        self._line_number += 1
        headers: list[tuple[str, bytes | None]] | None = None
        key: bytes | None = None
        if self._parse_headers:
            text, line = self._split(line, self._headers_delimiter, "headers delimiter")
            if text is not None and text != self._null_marker:
                headers = self._headers(text)
        if self._parse_key:
            text, line = self._split(line, self._key_separator, "key separator")
            key = self._nullable(text)
        return LineRecord(key, self._nullable(line), headers)

    def _split(self, line: bytes, separator: bytes, name: str) -> tuple[bytes | None, bytes]:
        before, found, after = line.partition(separator)
        if found:
            return before, after
        if self._ignore_error:
            return None, line
        shown = line.decode("utf-8", "replace")
        raise ToolError(f"No {name} found on line number {self._line_number}: '{shown}'")

    def _nullable(self, text: bytes | None) -> bytes | None:
        return None if text is None or text == self._null_marker else text

    def _headers(self, text: bytes) -> list[tuple[str, bytes | None]]:
        pairs = self._split_headers(text)
        while len(pairs) > 1 and not pairs[-1]:
            pairs.pop()
        return [self._header(pair) for pair in pairs]

    def _header(self, pair: bytes) -> tuple[str, bytes | None]:
        name, found, value = pair.partition(self._headers_key_separator)
        shown = name.decode("utf-8", "replace")
        if not found:
            if self._ignore_error:
                return shown, None
            raise ToolError(
                f"No header key separator found in pair '{shown}' on line number {self._line_number}"
            )
        if name == self._null_marker:
            raise ToolError(
                f"Header keys should not be equal to the null marker '{shown}' as they can't be null"
            )
        return shown, self._nullable(value)


def _is_true(properties: Mapping[str, str], name: str) -> bool:
    return properties.get(name, "").strip().lower() == "true"
