"""Java's text formats, for output that must equal that of Kafka's Java tools."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from moldau.base.java_numbers import java_double as java_double
from moldau.base.java_numbers import java_float as java_float

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


def java_boolean(value: bool) -> str:
    return "true" if value else "false"
