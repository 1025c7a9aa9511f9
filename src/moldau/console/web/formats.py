"""Numbers, sizes and times as people read them. The filters of the templates."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

UNKNOWN: Final = "–"
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_MAX_MS: Final = 253_402_300_799_999


def count(value: int | float | None) -> str:
    """`1234567` as `1,234,567`."""
    return UNKNOWN if value is None else f"{value:,}"


def size(value: int | float | None) -> str:
    """Bytes with a binary unit."""
    if value is None:
        return UNKNOWN
    amount = float(value)
    for unit in _UNITS:
        if abs(amount) < 1024 or unit == _UNITS[-1]:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return UNKNOWN


def time(value: int | None) -> str:
    """Milliseconds since 1970 as UTC with milliseconds."""
    if value is None or not 0 <= value <= _MAX_MS:
        return UNKNOWN
    text = datetime.fromtimestamp(value / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return f"{text}.{value % 1000:03d}"


def duration(seconds: float | None) -> str:
    if seconds is None:
        return UNKNOWN
    if seconds < 1:
        return "0 s" if seconds == 0 else "< 1 s"
    whole = int(seconds)
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if whole >= length:
            return f"{whole // length} {unit}"
    return f"{whole} s"


def known(value: Any) -> Any:
    """A dash for None."""
    return UNKNOWN if value is None else value
