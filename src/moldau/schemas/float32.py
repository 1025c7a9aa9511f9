"""Numbers of 32-bit precision as Java prints them."""

from __future__ import annotations

import struct


def rounded(value: float) -> float:
    """Return the nearest 32-bit number; an infinity beyond its range."""
    try:
        return struct.unpack(">f", struct.pack(">f", value))[0]  # type: ignore[no-any-return]
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def shortest(value: float) -> float:
    """Return the number with the fewest decimal digits that has the same 32-bit value."""
    nearest = rounded(value)
    if nearest in (float("inf"), float("-inf")):
        return nearest
    for digits in range(1, 10):
        short = float(f"{nearest:.{digits}g}")
        if rounded(short) == nearest:
            return short
    return nearest
