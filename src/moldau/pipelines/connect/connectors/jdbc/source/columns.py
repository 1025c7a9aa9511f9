"""Columns as fields: schemas of rows, and the conversion of the driver's values."""

from __future__ import annotations

import struct as packing
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from typing import Any, Final

from moldau.pipelines.connect.connectors.jdbc.dialects.interface import Dialect
from moldau.pipelines.connect.connectors.jdbc.model import Column, ColumnType
from moldau.pipelines.connect.data import logical
from moldau.pipelines.connect.data.errors import ConnectError
from moldau.pipelines.connect.data.schema import Schema, Type, array, struct
from moldau.pipelines.connect.data.struct import Struct

PRECISION: Final = "connect.decimal.precision"
#: The scale of numbers without a limit: Connect's decimals have a fixed one.
_UNLIMITED_SCALE: Final = 127
#: The digits that fit into 64 bits.
_MAX_PRECISION: Final = 18

Convert = Callable[[Any], Any]


class RowConverter:
    """Converts rows of a table or query to structs."""

    def __init__(
        self,
        name: str | None,
        columns: Sequence[Column],
        dialect: Dialect,
        *,
        numeric_mapping: str,
        granularity: str,
    ) -> None:
        fields, self._converts = [], []
        for column in columns:
            schema, convert = _mapped(column, dialect, numeric_mapping, granularity)
            fields.append((column.name, schema.replace(optional=True) if column.nullable else schema))
            self._converts.append(convert)
        self.schema = struct(fields, name=name)
        self._names = [column.name for column in columns]

    def convert(self, row: Sequence[Any]) -> Struct:
        values = []
        for value, convert, name in zip(row, self._converts, self._names, strict=True):
            try:
                values.append(None if value is None else convert(value))
            except (ValueError, TypeError, OverflowError, ArithmeticError) as error:
                raise ConnectError(f"The value of column {name} cannot be converted: {error}") from error
        return Struct.of(self.schema, values)


def _mapped(
    column: Column, dialect: Dialect, numeric_mapping: str, granularity: str
) -> tuple[Schema, Convert]:
    """Return schema and conversion of a column that is not null."""
    if column.type is ColumnType.NUMERIC:
        return _numeric(column, numeric_mapping)
    if column.type is ColumnType.TIMESTAMP:
        return _timestamp(dialect, granularity)
    if column.type is ColumnType.ARRAY and column.element is not None:
        element, convert = _mapped(column.element, dialect, numeric_mapping, granularity)
        return array(element.replace(optional=True)), _each(convert)
    if column.type is ColumnType.DATE:
        return logical.DATE, lambda value: _date(value, dialect)
    if column.type is ColumnType.TIME:
        return logical.TIME, _time
    type_, convert = _PLAIN[column.type]
    return Schema(type_), convert


def _each(convert: Convert) -> Convert:
    return lambda values: [None if value is None else convert(value) for value in values]


def _numeric(column: Column, mapping: str) -> tuple[Schema, Convert]:
    precision, scale = column.precision, column.scale
    is_whole = scale is not None and (scale == 0 or (scale < 0 and mapping != "precision_only"))
    if is_whole and precision <= _MAX_PRECISION and mapping != "none":
        return Schema(_integer_type(precision - min(scale or 0, 0))), int
    if scale is None or scale > 0:
        eager = mapping == "best_fit_eager_double"
        if eager or (mapping == "best_fit" and scale is not None and precision <= _MAX_PRECISION):
            return Schema(Type.FLOAT64), float
    digits = _UNLIMITED_SCALE if scale is None else scale
    schema = logical.decimal_schema(digits)
    if precision:
        parameters = {**(schema.parameters or {}), PRECISION: str(precision)}
        schema = schema.replace(parameters=parameters)
    unit = Decimal(1).scaleb(-digits)
    return schema, lambda value: _decimal(value).quantize(unit, context=logical.EXACT)


def _integer_type(precision: int) -> Type:
    if precision > 9:
        return Type.INT64
    if precision > 4:
        return Type.INT32
    return Type.INT16 if precision > 2 else Type.INT8


def _decimal(value: Any) -> Decimal:
    found = value if isinstance(value, Decimal) else Decimal(str(value))
    if not found.is_finite():
        raise ValueError(f"{found} is no finite number")
    return found


def _timestamp(dialect: Dialect, granularity: str) -> tuple[Schema, Convert]:
    if granularity == "connect_logical":
        return logical.TIMESTAMP, lambda value: _instant(value, dialect).astimezone(UTC)
    unit, _, form = granularity.partition("_")
    zeros = "000" if unit == "nanos" else ""
    if form == "iso_datetime_string":
        return Schema(Type.STRING), lambda value: _iso(_instant(value, dialect), dialect.zone) + zeros
    factor = 1000 if unit == "nanos" else 1

    def number(value: Any) -> int:
        return (_instant(value, dialect) - logical.EPOCH) // timedelta(microseconds=1) * factor

    if form == "long":
        return Schema(Type.INT64), number
    return Schema(Type.STRING), lambda value: str(number(value))


def _instant(value: Any, dialect: Dialect) -> datetime:
    return dialect.instant(value)


def _iso(instant: datetime, zone: tzinfo) -> str:
    return instant.astimezone(zone).replace(tzinfo=None).isoformat(timespec="microseconds")


def _date(value: Any, dialect: Dialect) -> datetime:
    if not isinstance(value, date):
        value = dialect.instant(value)
    return datetime(value.year, value.month, value.day, tzinfo=UTC)


def _time(value: Any) -> datetime:
    if isinstance(value, timedelta):
        if not timedelta(0) <= value < timedelta(days=1):
            raise ValueError(f"{value} is no time of a day")
        return logical.EPOCH + value
    if isinstance(value, int):
        return logical.EPOCH + timedelta(milliseconds=value)
    found = value if isinstance(value, time) else time.fromisoformat(value)
    return datetime.combine(logical.EPOCH.date(), found.replace(tzinfo=None), UTC)


def _boolean(value: Any) -> bool:
    return value.lower() in ("true", "t", "1") if isinstance(value, str) else bool(value)


def _small(value: Any) -> int:
    """Return a small integer; drivers return single bits as bytes."""
    return int.from_bytes(value, "big") if isinstance(value, bytes) else int(value)


def _single(value: Any) -> float:
    """Return the nearest number of single precision."""
    found: float = packing.unpack("f", packing.pack("f", float(value)))[0]
    return found


def _text(value: Any) -> str:
    if isinstance(value, bytes | memoryview):
        return bytes(value).decode("utf-8", "replace")
    return value if isinstance(value, str) else str(value)


def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


_PLAIN: Final[dict[ColumnType, tuple[Type, Convert]]] = {
    ColumnType.BOOLEAN: (Type.BOOLEAN, _boolean),
    ColumnType.INT8: (Type.INT8, _small),
    ColumnType.INT16: (Type.INT16, int),
    ColumnType.INT32: (Type.INT32, int),
    ColumnType.INT64: (Type.INT64, int),
    ColumnType.FLOAT32: (Type.FLOAT32, _single),
    ColumnType.FLOAT64: (Type.FLOAT64, float),
    ColumnType.STRING: (Type.STRING, _text),
    ColumnType.BYTES: (Type.BYTES, _bytes),
}
