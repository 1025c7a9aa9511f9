"""Types of PostgreSQL as Connect's schemas, as Debezium maps them, and the conversion of their text."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final

from moldau.pipelines.connect.data import logical
from moldau.pipelines.connect.data.errors import ConnectError
from moldau.pipelines.connect.data.schema import BYTES, INT32, Schema, Type, array, struct
from moldau.pipelines.connect.data.struct import Struct

PRECISION: Final = "connect.decimal.precision"
VARIABLE_SCALE: Final = struct(
    {"scale": INT32, "value": BYTES},
    name="io.debezium.data.VariableScaleDecimal",
    version=1,
    doc="Variable scaled decimal",
)
_MICROSECOND: Final = timedelta(microseconds=1)
_EPOCH_DAY: Final = date(1970, 1, 1)
#: Debezium's numbers for the infinite timestamps of PostgreSQL.
_INFINITY_US: Final = {"infinity": 9_223_371_331_200_000_000, "-infinity": -9_223_372_036_832_400_000}
_INTERVAL: Final = re.compile(
    r"P(?:(-?\d+)Y)?(?:(-?\d+)M)?(?:(-?\d+)W)?(?:(-?\d+)D)?(?:T(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(-?[\d.]+)S)?)?"
)
_AVERAGE_DAYS: Final = 365.25 / 12

Convert = Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class TypeInfo:
    """A type of the server's catalog.

    `labels` are those of an enum, `element` is the type of an array's elements, `base` that of a domain.
    """

    name: str
    element: int = 0
    labels: tuple[str, ...] = ()
    base: int = 0
    base_modifier: int = -1


@dataclass(frozen=True, slots=True)
class TypeModes:
    """The settings that choose between forms of the same value."""

    time: str = "adaptive"
    decimal: str = "precise"
    binary: str = "bytes"
    interval: str = "numeric"
    unknown: bool = False


@dataclass(frozen=True, slots=True)
class Mapped:
    """How to represent a column: the schema without optionality, and the conversion of its text."""

    schema: Schema
    convert: Convert


class TypeMapping:
    def __init__(self, types: dict[int, TypeInfo], modes: TypeModes) -> None:
        self._types = types
        self._modes = modes

    def map(self, oid: int, modifier: int) -> Mapped | None:
        """Return the representation of a type; None if it has none and the column is left out."""
        info = self._types.get(oid)
        if info is None:
            return None
        if info.base:
            return self.map(info.base, info.base_modifier)
        if info.element:
            element = self.map(info.element, modifier)
            if element is None:
                return None
            schema = array(element.schema.replace(optional=True))
            return Mapped(schema, lambda text: parse_array(text, element.convert))
        if info.labels:
            parameters = {"allowed": ",".join(info.labels)}
            schema = Schema(Type.STRING, name="io.debezium.data.Enum", version=1, parameters=parameters)
            return Mapped(schema, str)
        return self._scalar(info.name, modifier)

    def _scalar(self, name: str, modifier: int) -> Mapped | None:
        if name in _PLAIN:
            return _PLAIN[name]
        if name in ("numeric", "money"):
            return self._decimal(name, modifier)
        if name == "bytea":
            return _BINARY[self._modes.binary]
        if name in ("bit", "varbit"):
            return _bits(name, modifier)
        if name == "interval":
            return _named(Type.STRING, "Interval", str) if self._modes.interval == "string" else _DURATION
        connect = self._modes.time == "connect"
        if name == "date":
            return Mapped(logical.DATE, _connect_date) if connect else _named(Type.INT32, "Date", _days)
        if name == "time":
            return self._time(modifier)
        if name == "timestamp":
            return self._timestamp(modifier)
        if self._modes.unknown:
            return Mapped(Schema(Type.BYTES), str.encode)
        return None

    def _decimal(self, name: str, modifier: int) -> Mapped:
        if self._modes.decimal == "double":
            return Mapped(Schema(Type.FLOAT64), lambda text: float(_money(text)))
        if self._modes.decimal == "string":
            return Mapped(Schema(Type.STRING), _money)
        if name == "numeric" and modifier < 4:
            return Mapped(VARIABLE_SCALE, _variable_scale)
        if name == "money":
            scale, precision = 2, ""
        else:
            scale, precision = (modifier - 4) & 0x7FF, str((modifier - 4) >> 16 & 0xFFFF)
            scale -= 0x800 if scale >= 0x400 else 0
        schema, unit = logical.decimal_schema(scale), Decimal(1).scaleb(-scale)
        if precision:
            schema = schema.replace(parameters={**(schema.parameters or {}), PRECISION: precision})

        def convert(text: str) -> Decimal:
            return _finite(_money(text)).quantize(unit, context=logical.EXACT)

        return Mapped(schema, convert)

    def _time(self, modifier: int) -> Mapped:
        if self._modes.time == "connect":
            return Mapped(logical.TIME, lambda text: logical.EPOCH + timedelta(microseconds=_day_us(text)))
        if self._modes.time == "adaptive" and 0 <= modifier <= 3:
            return _named(Type.INT32, "Time", lambda text: _day_us(text) // 1000)
        return _named(Type.INT64, "MicroTime", _day_us)

    def _timestamp(self, modifier: int) -> Mapped:
        if self._modes.time == "connect":
            return Mapped(logical.TIMESTAMP, lambda text: _instant(text).astimezone(UTC))
        if 0 <= modifier <= 3:
            return _named(Type.INT64, "Timestamp", lambda text: _epoch_us(text) // 1000)
        return _named(Type.INT64, "MicroTimestamp", _epoch_us)


def default_of(schema: Schema) -> Any:
    """Return what a required column has in an event that does not carry its value."""
    if schema.default is not None:
        return schema.default
    if schema.name == logical.DECIMAL_NAME:
        return logical.decimal_of(0, logical.decimal_scale(schema))
    if schema.name in (logical.DATE_NAME, logical.TIME_NAME, logical.TIMESTAMP_NAME):
        return logical.EPOCH
    if schema == VARIABLE_SCALE:
        return Struct(VARIABLE_SCALE, scale=0, value=b"\0")
    return _DEFAULTS.get(schema.type)


def parse_array(text: str, convert: Convert) -> list[Any]:
    """Return the elements of an array's text, `{1,NULL,"a,b"}`; inner arrays remain lists."""
    if text.startswith("["):
        text = text.partition("=")[2]
    found, rest = _elements(text, 0, convert)
    if rest != len(text):
        raise ConnectError(f"The array {text[:40]!r} has text after its end")
    return found


def _elements(text: str, at: int, convert: Convert) -> tuple[list[Any], int]:
    found: list[Any] = []
    at += 1
    while True:
        char = text[at]
        if char == "}":
            return found, at + 1
        if char == ",":
            at += 1
        elif char == "{":
            inner, at = _elements(text, at, convert)
            found.append(inner)
        else:
            value, quoted, at = _element(text, at)
            found.append(None if value == "NULL" and not quoted else convert(value))


def _element(text: str, at: int) -> tuple[str, bool, int]:
    if text[at] != '"':
        end = at
        while text[end] not in ",}":
            end += 1
        return text[at:end], False, end
    value, at = "", at + 1
    while text[at] != '"':
        at += text[at] == "\\"
        value += text[at]
        at += 1
    return value, True, at + 1


def _named(type_: Type, name: str, convert: Convert) -> Mapped:
    return Mapped(Schema(type_, name=f"io.debezium.time.{name}", version=1), convert)


def _text(name: str) -> Mapped:
    return Mapped(Schema(Type.STRING, name=f"io.debezium.data.{name}", version=1), str)


def _instant(text: str) -> datetime:
    if text.endswith(" BC") or text.lstrip("-") == "infinity":
        raise ConnectError(f"The timestamp {text} is outside the years 1 to 9999")
    found = datetime.fromisoformat(text if not re.search(r"[+-]\d\d$", text) else f"{text}:00")
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _epoch_us(text: str) -> int:
    infinite = _INFINITY_US.get(text)
    return (_instant(text) - logical.EPOCH) // _MICROSECOND if infinite is None else infinite


def _zoned(text: str) -> str:
    if text.lstrip("-") == "infinity":
        return text
    found = _instant(text).astimezone(UTC)
    fraction = f".{found.microsecond:06d}" if found.microsecond else ""
    return f"{found:%Y-%m-%dT%H:%M:%S}{fraction}Z"


def _zoned_time(text: str) -> str:
    found = time.fromisoformat(text if not re.search(r"[+-]\d\d$", text) else f"{text}:00")
    moment = datetime.combine(_EPOCH_DAY, found).astimezone(UTC)
    fraction = f".{moment.microsecond:06d}" if moment.microsecond else ""
    return f"{moment:%H:%M:%S}{fraction}Z"


def _days(text: str) -> int:
    if text.endswith(" BC") or text.lstrip("-") == "infinity":
        raise ConnectError(f"The date {text} is outside the years 1 to 9999")
    return (date.fromisoformat(text) - _EPOCH_DAY).days


def _connect_date(text: str) -> datetime:
    return logical.EPOCH + timedelta(days=_days(text))


def _day_us(text: str) -> int:
    if text == "24:00:00":
        return 86_400_000_000
    found = time.fromisoformat(text)
    return (found.hour * 3600 + found.minute * 60 + found.second) * 1_000_000 + found.microsecond


def _duration(text: str) -> int:
    """Return microseconds; months have their average length, as in Debezium."""
    match = _INTERVAL.fullmatch(text)
    if match is None:
        raise ConnectError(f"{text!r} is no interval")
    years, months, weeks, days, hours, minutes = (int(each or 0) for each in match.groups()[:-1])
    total_days = (years * 12 + months) * _AVERAGE_DAYS + weeks * 7 + days
    seconds = Decimal(match[7] or 0) + hours * 3600 + minutes * 60
    return round(total_days * 86_400_000_000) + int(seconds * 1_000_000)


def _money(text: str) -> str:
    """Return the digits of an amount, without the currency of the server's locale."""
    if text.lstrip("-").replace(".", "", 1).isdecimal():
        return text
    if not any(char.isdecimal() for char in text):
        return text
    sign = "-" if text.startswith(("-", "(")) else ""
    return sign + "".join(char for char in text if char.isdecimal() or char == ".")


def _finite(text: str) -> Decimal:
    found = Decimal(text)
    if not found.is_finite():
        raise ConnectError(f"{text} is no finite number: use decimal.handling.mode=string or double")
    return found


def _variable_scale(text: str) -> Struct:
    found = _finite(text)
    scale = logical.scale_of(found)
    return Struct(VARIABLE_SCALE, scale=scale, value=logical.signed_bytes(logical.unscaled_value(found)))


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("\\x"))


def _bits(name: str, modifier: int) -> Mapped:
    if name == "bit" and modifier == 1:
        return Mapped(Schema(Type.BOOLEAN), lambda text: text == "1")
    length = str(modifier if modifier > 0 else 2**31 - 1)
    schema = Schema(Type.BYTES, name="io.debezium.data.Bits", version=1, parameters={"length": length})

    def convert(text: str) -> bytes:
        return int(text or "0", 2).to_bytes((len(text) + 7) // 8, "little")

    return Mapped(schema, convert)


def _hstore(text: str) -> str:
    import json

    pairs = re.findall(r'"((?:[^"\\]|\\.)*)"=>(?:"((?:[^"\\]|\\.)*)"|NULL)', text)
    clean = {_unescaped(key): _unescaped(value) for key, value in pairs}
    for key in re.findall(r'"((?:[^"\\]|\\.)*)"=>NULL', text):
        clean[_unescaped(key)] = None  # type: ignore[assignment]
    return json.dumps(clean, separators=(",", ":"))


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _plain(type_: Type, convert: Convert) -> Mapped:
    return Mapped(Schema(type_), convert)


_STRINGS: Final = (
    *("text", "varchar", "bpchar", "name", "char", "citext", "inet", "cidr", "macaddr", "macaddr8"),
    *("int4range", "int8range", "numrange", "tsrange", "tstzrange", "daterange", "tsvector"),
)
_PLAIN: Final[dict[str, Mapped]] = {
    "bool": _plain(Type.BOOLEAN, lambda text: text in ("t", "true")),
    "int2": _plain(Type.INT16, int),
    "int4": _plain(Type.INT32, int),
    "int8": _plain(Type.INT64, int),
    "oid": _plain(Type.INT64, int),
    "float4": _plain(Type.FLOAT32, float),
    "float8": _plain(Type.FLOAT64, float),
    "json": _text("Json"),
    "jsonb": _text("Json"),
    "xml": _text("Xml"),
    "uuid": _text("Uuid"),
    "ltree": _text("Ltree"),
    "hstore": Mapped(Schema(Type.STRING, name="io.debezium.data.Json", version=1), _hstore),
    "timestamptz": _named(Type.STRING, "ZonedTimestamp", _zoned),
    "timetz": _named(Type.STRING, "ZonedTime", _zoned_time),
    **{name: _plain(Type.STRING, str) for name in _STRINGS},
}
_DURATION: Final = _named(Type.INT64, "MicroDuration", _duration)
_BINARY: Final = {
    "bytes": _plain(Type.BYTES, _bytes),
    "base64": _plain(Type.STRING, lambda text: b64encode(_bytes(text)).decode()),
    "hex": _plain(Type.STRING, lambda text: text.removeprefix("\\x")),
}
_DEFAULTS: Final[dict[Type, Any]] = {
    **dict.fromkeys((Type.INT8, Type.INT16, Type.INT32, Type.INT64), 0),
    Type.FLOAT32: 0.0,
    Type.FLOAT64: 0.0,
    Type.BOOLEAN: False,
    Type.STRING: "",
    Type.BYTES: b"",
    Type.ARRAY: [],
}
