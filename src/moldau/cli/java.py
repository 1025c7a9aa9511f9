"""Text the way Java prints it, where tools of both worlds must agree."""

from __future__ import annotations

import ctypes


def java_double(value: float) -> str:
    """`Double.toString`: plain digits from 0.001 up to ten million, `1.0E7` outside of that."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    digits = repr(abs(value)).partition("e")[0].replace(".", "").strip("0")
    mantissa, _, exponent = f"{value:.{max(len(digits) - 1, 1)}e}".partition("e")
    return f"{mantissa}E{int(exponent)}"


def java_boolean(value: bool) -> str:
    return "true" if value else "false"


def java_float(value: float) -> str:
    """`Float.toString` of a number that came as 32 bits: the fewest digits that give it back."""
    for digits in range(1, 10):
        shorter = float(f"{value:.{digits}g}")
        if ctypes.c_float(shorter).value == value:
            return java_double(shorter)
    return java_double(value)
