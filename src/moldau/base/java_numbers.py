"""Java's text forms of floating-point numbers."""

from __future__ import annotations

import ctypes


def java_double(value: float) -> str:
    """Format like `Double.toString`: plain digits from 0.001 up to ten million, `1.0E7` outside of that."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return float.__repr__(value)
    digits = float.__repr__(abs(value)).partition("e")[0].replace(".", "").strip("0")
    mantissa, _, exponent = f"{value:.{max(len(digits) - 1, 1)}e}".partition("e")
    return f"{mantissa}E{int(exponent)}"


def java_float(value: float) -> str:
    """Format a 32-bit number like `Float.toString`: with the fewest digits that identify it."""
    for digits in range(1, 10):
        shorter = float(f"{value:.{digits}g}")
        if ctypes.c_float(shorter).value == value:
            return java_double(shorter)
    return java_double(value)
