"""Values to the type of a column, which may differ from the type of the record: "12" fits a column of
integers.

The rules are those of Iceberg's Kafka Connect sink: numbers and their texts are converted, times are texts
in ISO 8601 or milliseconds since the epoch, bytes are Base64, and anything becomes text. Unlike there, a
conversion that would lose something is an error.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from moldau.pipelines.connect.data.errors import DataError
from moldau.pipelines.connect.data.logical import EPOCH, millis_of
from moldau.pipelines.connect.data.struct import Struct, java_class

Convert = Callable[[Any], Any]
_BOOLEANS: Final = {"true": True, "false": False}
#: Python types that Arrow stores in such a column as they are.
_NATIVE: Final[dict[str, tuple[type, ...]]] = {
    "int32": (int,),
    "int64": (int,),
    "float": (float,),
    "double": (float,),
    "bool": (bool,),
    "string": (str,),
    "binary": (bytes,),
}


def column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return the values as a column; `DataError` if one does not fit."""
    native = _NATIVE.get(str(kind))
    if native is None or not all(value is None or type(value) in native for value in values):
        convert = converter(kind)
        values = [None if value is None else convert(value) for value in values]
    try:
        return pa.array(values, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise DataError(f"A value does not fit the column type {kind}: {error}") from error


@lru_cache(maxsize=1000)
def converter(kind: pa.DataType) -> Convert:
    """Return a function that converts values to what Arrow stores in such a column."""
    found = next((make(kind) for applies, make in _CONVERTERS if applies(kind)), None)
    if found is None:
        raise DataError(f"Columns of the type {kind} cannot be written.")
    return found


def _refused(value: object, kind: object) -> DataError:
    return DataError(f"A value of class {java_class(value)} does not fit the column type {kind}")


def _integer(kind: pa.DataType) -> Convert:
    most = 2 ** (kind.bit_width - 1)

    def convert(value: Any) -> int:
        found = _to_integer(value, kind)
        if not -most <= found < most:
            raise DataError(f"{found} is out of range for the column type {kind}")
        return found

    return convert


def _to_integer(value: Any, kind: pa.DataType) -> int:
    if isinstance(value, datetime):
        return millis_of(value)
    if isinstance(value, bool):
        raise _refused(value, kind)
    try:
        found = int(value)
    except (TypeError, ValueError, OverflowError):
        raise _refused(value, kind) from None
    if isinstance(value, (float, Decimal)) and found != value:
        raise DataError(f"{value} is not a whole number, as the column type {kind} requires")
    return found


def _floating(kind: pa.DataType) -> Convert:
    def convert(value: Any) -> float:
        if isinstance(value, bool):
            raise _refused(value, kind)
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError):
            raise _refused(value, kind) from None

    return convert


def _boolean(kind: pa.DataType) -> Convert:
    def convert(value: Any) -> bool:
        found = _BOOLEANS.get(value.lower()) if isinstance(value, str) else value
        if not isinstance(found, bool):
            raise _refused(value, kind)
        return found

    return convert


def _string(kind: pa.DataType) -> Convert:
    return text


def text(value: Any) -> str:
    """Return a value as text: composed ones as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, (Struct, dict, list)):
        return json.dumps(_json_value(value), ensure_ascii=False, separators=(",", ":"))
    return str(value)


def _json_value(value: Any) -> Any:
    if isinstance(value, Struct):
        return {field.name: _json_value(value.value_of(field)) for field in value.schema.fields}
    if isinstance(value, dict):
        return {text(key): _json_value(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_json_value(each) for each in value]
    finite = not isinstance(value, float) or math.isfinite(value)
    return value if value is None or (isinstance(value, (bool, int, float, str)) and finite) else text(value)


def _binary(kind: pa.DataType) -> Convert:
    def convert(value: Any) -> bytes:
        if isinstance(value, (bytes, bytearray)):
            return bytes(value)
        if not isinstance(value, str):
            raise _refused(value, kind)
        try:
            return base64.b64decode(value, validate=True)
        except ValueError:
            raise DataError(f"A text that is not Base64 does not fit the column type {kind}") from None

    return convert


def _decimal(kind: pa.DataType) -> Convert:
    step = Decimal(1).scaleb(-kind.scale)

    def convert(value: Any) -> Decimal:
        if isinstance(value, bool) or not isinstance(value, (int, float, Decimal, str)):
            raise _refused(value, kind)
        try:
            found = Decimal(str(value) if isinstance(value, float) else value)
            rounded = found.quantize(step)
        except ArithmeticError:
            raise _refused(value, kind) from None
        if rounded != found:
            raise DataError(f"{value} has more than {kind.scale} digits after the point")
        return rounded

    return convert


def _date(kind: pa.DataType) -> Convert:
    def convert(value: Any) -> date:
        if isinstance(value, datetime):
            return value.astimezone(UTC).date() if value.tzinfo else value.date()
        if isinstance(value, int) and not isinstance(value, bool):
            return (EPOCH + timedelta(days=value)).date()
        return _parsed(date.fromisoformat, value, kind)  # type: ignore[no-any-return]

    return convert


def _time(kind: pa.DataType) -> Convert:
    def convert(value: Any) -> time:
        if isinstance(value, datetime):
            return value.time()
        if isinstance(value, int) and not isinstance(value, bool):
            return (EPOCH + timedelta(milliseconds=value)).time()
        return _parsed(time.fromisoformat, value, kind)  # type: ignore[no-any-return]

    return convert


def _timestamp(kind: pa.DataType) -> Convert:
    def convert(value: Any) -> datetime:
        if isinstance(value, int) and not isinstance(value, bool):
            value = _parsed(lambda ms: EPOCH + timedelta(milliseconds=ms), value, kind)
        elif not isinstance(value, datetime):
            value = _parsed(datetime.fromisoformat, value, kind)
        moment: datetime = value if value.tzinfo else value.replace(tzinfo=UTC)
        return moment if kind.tz else moment.astimezone(UTC).replace(tzinfo=None)

    return convert


def _parsed(parse: Convert, value: Any, kind: pa.DataType) -> Any:
    try:
        return parse(value)
    except (TypeError, ValueError, OverflowError):
        raise _refused(value, kind) from None


def _list(kind: pa.DataType) -> Convert:
    element = converter(kind.value_type)

    def convert(value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise _refused(value, kind)
        return [None if each is None else element(each) for each in value]

    return convert


def _map(kind: pa.DataType) -> Convert:
    key, item = converter(kind.key_type), converter(kind.item_type)

    def convert(value: Any) -> list[tuple[Any, Any]]:
        if not isinstance(value, dict):
            raise _refused(value, kind)
        return [(key(name), None if each is None else item(each)) for name, each in value.items()]

    return convert


def _struct(kind: pa.DataType) -> Convert:
    fields = [(field.name, field.nullable, converter(field.type)) for field in kind]

    def convert(value: Any) -> dict[str, Any]:
        if not isinstance(value, (Struct, dict)):
            raise _refused(value, kind)
        found = {}
        for name, nullable, part in fields:
            inner = part_of(value, name)
            if inner is None and not nullable:
                raise DataError(f"The field {name} is required and has no value")
            found[name] = None if inner is None else part(inner)
        return found

    return convert


def part_of(value: Struct | dict[Any, Any], name: str) -> Any:
    """Return a field of a struct or an entry of a map; None if there is none."""
    if isinstance(value, dict):
        return value.get(name)
    field = value.schema.field(name)
    return None if field is None else value.value_of(field)


_CONVERTERS: Final[list[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], Convert]]]] = [
    (pa.types.is_signed_integer, _integer),
    (pa.types.is_floating, _floating),
    (pa.types.is_boolean, _boolean),
    (pa.types.is_string, _string),
    (pa.types.is_binary, _binary),
    (pa.types.is_decimal, _decimal),
    (pa.types.is_date, _date),
    (pa.types.is_time, _time),
    (pa.types.is_timestamp, _timestamp),
    (pa.types.is_list, _list),
    (pa.types.is_map, _map),
    (pa.types.is_struct, _struct),
]
