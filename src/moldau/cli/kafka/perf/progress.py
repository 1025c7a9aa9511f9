"""Output that the performance tools share: a progress line, client metrics, Java's date formats."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

MEGABYTE = 1024 * 1024


class ProgressLine:
    """A line on the terminal that is updated in place; without a terminal nothing is printed."""

    INTERVAL_SECONDS = 0.5

    def __init__(self, total: int) -> None:
        self._total = total
        self._visible = sys.stderr.isatty()
        self._shown = False
        self._begin = time.monotonic()
        self._next = self._begin + self.INTERVAL_SECONDS

    def update(self, records: int, size: int) -> None:
        now = time.monotonic()
        if not self._visible or now < self._next:
            return
        self._next = now + self.INTERVAL_SECONDS
        seconds = now - self._begin
        share = 100 * records / self._total if self._total > 0 else 0
        sys.stderr.write(
            f"\r{records:,} of {self._total:,} records ({share:.0f}%), "
            f"{records / seconds:,.0f} records/sec, {size / seconds / MEGABYTE:.2f} MB/sec \x1b[K"
        )
        sys.stderr.flush()
        self._shown = True

    def clear(self) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._shown = False


class Statistics:
    """Keeps the latest statistics of librdkafka and prints them like the metrics of Kafka's tools."""

    def __init__(self) -> None:
        self._last = "{}"

    def __call__(self, text: str) -> None:
        self._last = text

    def wait(self, poll: Callable[[float], object]) -> None:
        """Poll the client until it has reported statistics at least once."""
        deadline = time.monotonic() + 2.0
        while self._last == "{}" and time.monotonic() < deadline:
            poll(0.1)

    def print(self) -> None:
        metrics: dict[str, float | str] = {}
        _flatten("librdkafka", json.loads(self._last), metrics)
        width = max(map(len, metrics), default=11)
        print(f"\n{'Metric Name':<{width}}   Value")
        for name in sorted(metrics):
            value = metrics[name]
            print(
                f"{name:<{width}} : {value:.3f}" if isinstance(value, float) else f"{name:<{width}} : {value}"
            )


def _flatten(prefix: str, value: Any, metrics: dict[str, float | str]) -> None:
    if isinstance(value, dict):
        for name, item in value.items():
            _flatten(f"{prefix}:{name}", item, metrics)
    elif isinstance(value, int | float | str) and not isinstance(value, bool):
        metrics[prefix] = value


_DATE_LETTERS = {
    "yyyy": "%Y",
    "yy": "%y",
    "MM": "%m",
    "dd": "%d",
    "HH": "%H",
    "hh": "%I",
    "mm": "%M",
    "ss": "%S",
    "a": "%p",
    "EEE": "%a",
    "MMM": "%b",
}


def format_date(pattern: str, time_ms: int) -> str:
    """Format a time with a pattern of Java's SimpleDateFormat; only common letters are supported."""
    moment = datetime.fromtimestamp(time_ms / 1000)

    def replace(match: re.Match[str]) -> str:
        quoted, letters = match[1], match[2]
        if quoted is not None:
            return str(quoted) or "'"
        if set(letters) == {"S"}:
            return f"{time_ms % 1000:0{len(letters)}d}"
        code = _DATE_LETTERS.get(letters)
        return moment.strftime(code) if code else str(letters)

    return re.sub(r"'([^']*)'|(([a-zA-Z])\3*)", replace, pattern)
