"""Logical types: Decimal, Date, Time and Timestamp, and the encoded values below them.

Decimals are `decimal.Decimal` with the scale of their schema; dates, times of day and timestamps are aware
`datetime`s, a time of day on 1970-01-01. Encoded, a decimal is its unscaled value as two's complement bytes,
a date the days since the epoch, a time the milliseconds of the day, a timestamp the milliseconds since the
epoch. Kafka's classes accept any 64-bit number of milliseconds; ours end with the year 9999.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from typing import Any

from moldau.pipelines.connect.data.errors import DataError
from moldau.pipelines.connect.data.schema import Schema, Type

DECIMAL_NAME = "org.apache.kafka.connect.data.Decimal"
DATE_NAME = "org.apache.kafka.connect.data.Date"
TIME_NAME = "org.apache.kafka.connect.data.Time"
TIMESTAMP_NAME = "org.apache.kafka.connect.data.Timestamp"
SCALE = "scale"

DATE = Schema(Type.INT32, name=DATE_NAME, version=1)
TIME = Schema(Type.INT32, name=TIME_NAME, version=1)
TIMESTAMP = Schema(Type.INT64, name=TIMESTAMP_NAME, version=1)
OPTIONAL_DATE = DATE.replace(optional=True)
OPTIONAL_TIME = TIME.replace(optional=True)
OPTIONAL_TIMESTAMP = TIMESTAMP.replace(optional=True)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLIS_PER_DAY = 86_400_000
_MILLISECOND = timedelta(milliseconds=1)
_DAY = timedelta(days=1)
#: Exact arithmetic: no rounding, whatever the number of digits.
EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)


def decimal_schema(scale: int, **properties: Any) -> Schema:
    """Return the schema of decimals with this many digits after the point."""
    parameters = {SCALE: str(scale)}
    return Schema(Type.BYTES, name=DECIMAL_NAME, version=1, parameters=parameters, **properties)


def decimal_scale(schema: Schema) -> int:
    text = schema.parameters.get(SCALE) if schema.parameters else None
    if text is None:
        raise DataError("Invalid Decimal schema: scale parameter not found.")
    try:
        return int(text)
    except ValueError:
        raise DataError("Invalid scale parameter found in Decimal schema: ") from None


def scale_of(value: Decimal) -> int:
    """Return the digits after the point; negative if the value has trailing zeros only in its exponent."""
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int):
        raise DataError(f"{value} is not a decimal number")
    return -exponent


def unscaled_value(value: Decimal) -> int:
    return int(value.scaleb(scale_of(value), EXACT))


def decimal_of(unscaled: int, scale: int) -> Decimal:
    return Decimal(unscaled).scaleb(-scale, EXACT)


def signed_bytes(value: int) -> bytes:
    """Return the shortest two's complement form, as Java's BigInteger does."""
    bits = value.bit_length() if value >= 0 else (value + 1).bit_length()
    return value.to_bytes(bits // 8 + 1, "big", signed=True)


def decimal_to_bytes(schema: Schema, value: Decimal) -> bytes:
    wanted, found = decimal_scale(schema), scale_of(value)
    if wanted != found:
        raise DataError(
            "Decimal value has mismatching scale for given Decimal schema. "
            f"Schema has scale {wanted}, value has scale {found}."
        )
    return signed_bytes(unscaled_value(value))


def decimal_from_bytes(schema: Schema, value: bytes) -> Decimal:
    return decimal_of(int.from_bytes(value, "big", signed=True), decimal_scale(schema))


def millis_of(value: datetime) -> int:
    """Return the milliseconds since the epoch; finer parts are cut off."""
    if value.tzinfo is None:
        raise DataError("Dates and times need a time zone: use an aware datetime")
    return (value - EPOCH) // _MILLISECOND


def datetime_of(millis: int) -> datetime:
    try:
        return EPOCH + timedelta(milliseconds=millis)
    except OverflowError:
        raise DataError(f"{millis} ms since the epoch is outside the years 1 to 9999") from None


def date_to_days(schema: Schema, value: datetime) -> int:
    if schema.name != DATE_NAME:
        raise DataError("Requested conversion of Date object but the schema does not match.")
    days, rest = divmod(millis_of(value), MILLIS_PER_DAY)
    if rest:
        raise DataError("Kafka Connect Date type should not have any time fields set to non-zero values.")
    return days


def date_from_days(schema: Schema, value: int) -> datetime:
    if schema.name != DATE_NAME:
        raise DataError("Requested conversion of Date object but the schema does not match.")
    return datetime_of(value * MILLIS_PER_DAY)


def time_to_millis(schema: Schema, value: datetime) -> int:
    if schema.name != TIME_NAME:
        raise DataError("Requested conversion of Time object but the schema does not match.")
    millis = millis_of(value)
    if not 0 <= millis <= MILLIS_PER_DAY:
        raise DataError("Kafka Connect Time type should not have any date fields set to non-zero values.")
    return millis


def time_from_millis(schema: Schema, value: int) -> datetime:
    if schema.name != TIME_NAME:
        raise DataError("Requested conversion of Date object but the schema does not match.")
    if not 0 <= value <= MILLIS_PER_DAY:
        raise DataError("Time values must use number of milliseconds greater than 0 and less than 86400000")
    return datetime_of(value)


def timestamp_to_millis(schema: Schema, value: datetime) -> int:
    if schema.name != TIMESTAMP_NAME:
        raise DataError("Requested conversion of Timestamp object but the schema does not match.")
    return millis_of(value)


def timestamp_from_millis(schema: Schema, value: int) -> datetime:
    if schema.name != TIMESTAMP_NAME:
        raise DataError("Requested conversion of Timestamp object but the schema does not match.")
    return datetime_of(value)
