"""Java's text formats, for output that must equal that of Kafka's Java tools."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moldau.base.errors import KafkaError

#: Exception names of Kafka's Java client that do not follow from the name of the error code.
_EXCEPTIONS = {
    "DELEGATION_TOKEN_AUTH_DISABLED": "DelegationTokenDisabled",
    "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED": "UnsupportedByAuthentication",
    "NON_EMPTY_GROUP": "GroupNotEmpty",
    "REQUEST_TIMED_OUT": "Timeout",
    "UNKNOWN_SERVER_ERROR": "UnknownServer",
}


def java_class(error: KafkaError) -> str:
    """Return the class of the exception that Kafka's Java client throws for an error."""
    name = error.code.name
    simple = _EXCEPTIONS.get(name) or name.removesuffix("_FAILED").removesuffix("_EXCEPTION").title()
    return f"org.apache.kafka.common.errors.{simple.replace('_', '')}Exception"


def java_error(error: KafkaError) -> str:
    """Return an error as Java prints the exception; scripts search for the class name."""
    return f"{java_class(error)}: {error.message}" if error.message else java_class(error)


def print_columns(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table whose columns are as wide as their widest cell, with a tab after each cell."""
    lines = [header, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    for line in lines:
        print("".join(f"{cell:<{width}}\t" for cell, width in zip(line, widths, strict=True)))


def java_double(value: float) -> str:
    """Format like `Double.toString`: plain digits from 0.001 up to ten million, `1.0E7` outside of that."""
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
    """Format a 32-bit number like `Float.toString`: with the fewest digits that identify it."""
    for digits in range(1, 10):
        shorter = float(f"{value:.{digits}g}")
        if ctypes.c_float(shorter).value == value:
            return java_double(shorter)
    return java_double(value)
