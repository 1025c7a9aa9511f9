"""Text the way Java prints it, where tools of both worlds must agree."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moldau.base.errors import KafkaError

#: Exceptions of Java's clients that are not named like the error code.
_EXCEPTIONS = {
    "NON_EMPTY_GROUP": "GroupNotEmpty",
    "REQUEST_TIMED_OUT": "Timeout",
    "UNKNOWN_SERVER_ERROR": "UnknownServer",
}


def java_class(error: KafkaError) -> str:
    """The exception that Java's clients raise for an error."""
    name = error.code.name
    simple = _EXCEPTIONS.get(name) or name.removesuffix("_FAILED").removesuffix("_EXCEPTION").title()
    return f"org.apache.kafka.common.errors.{simple.replace('_', '')}Exception"


def java_error(error: KafkaError) -> str:
    """An error as a tool in Java prints the exception: scripts look for the name of its class."""
    return f"{java_class(error)}: {error.message}" if error.message else java_class(error)


def print_columns(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table as wide as its cells, with a tab behind each of them."""
    lines = [header, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    for line in lines:
        print("".join(f"{cell:<{width}}\t" for cell, width in zip(line, widths, strict=True)))


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
