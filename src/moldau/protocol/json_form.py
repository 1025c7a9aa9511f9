"""Messages as JSON in Kafka's form, for the `quorum-state` file and `kafka-dump-log`.

Names are Kafka's (camel case), ids are URL-safe base64, bytes are plain base64. A tagged field with its
default and a field that the version lacks are left out.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, TypeVar

from moldau.base.ids import Uuid, format_uuid, parse_uuid
from moldau.protocol.errors import DecodeError, EncodeError
from moldau.protocol.fields import FRESH, Field, StructType
from moldau.protocol.schema import Message, Struct

M = TypeVar("M", bound=Message)


def json_name(field_name: str) -> str:
    """`leader_epoch` -> `leaderEpoch`."""
    first, *rest = field_name.split("_")
    return ("kRaft" if first == "kraft" else first) + "".join(word.capitalize() for word in rest)


def to_json(message: Message, version: int) -> dict[str, Any]:
    """Return an object for `json.dumps`; `EncodeError` if the message has no such version."""
    if not message.VERSIONS.has(version):
        raise EncodeError(f"{type(message).__name__} has no version {version}")
    return _struct_to_json(message, version)


def from_json(cls: type[M], data: object, version: int) -> M:
    """Build a message from the result of `json.loads`; unknown fields are ignored, as in Kafka."""
    if not cls.VERSIONS.has(version):
        raise DecodeError(f"{cls.__name__} has no version {version}")
    message = _struct_from_json(cls, data, version, cls.__name__)
    return message  # type: ignore[return-value]


def _struct_to_json(value: Struct, version: int) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for field in value.FIELDS:
        content = getattr(value, field.name)
        if not field.versions.has(version) or (field.tagged.has(version) and _is_default(field, content)):
            continue
        if content is None:
            result[json_name(field.name)] = None
        elif field.is_array:
            result[json_name(field.name)] = [_to_json(field.type, item, version) for item in content]
        else:
            result[json_name(field.name)] = _to_json(field.type, content, version)
    return result


def _is_default(field: Field, content: Any) -> bool:
    if field.default is not FRESH:
        return bool(content == field.default)
    if field.is_array:
        return bool(content == [])
    return isinstance(field.type, StructType) and bool(content == field.type())


def _to_json(kind: Any, value: Any, version: int) -> Any:
    if isinstance(kind, StructType):
        return _struct_to_json(value, version)
    if kind.__name__ == "uuid":
        return format_uuid(value)
    if kind.format is None and kind.__name__ != "string":
        return base64.b64encode(value).decode("ascii")
    return value


def _struct_from_json(cls: StructType, data: object, version: int, path: str) -> Struct:
    if not isinstance(data, dict):
        raise DecodeError(f"{path} must be an object, not {data!r}")
    values = {}
    for field in cls.FIELDS:
        name = json_name(field.name)
        if not field.versions.has(version):
            continue
        if name in data:
            values[field.name] = _field_from_json(field, data[name], version, f"{path}.{name}")
        elif not field.tagged.has(version):
            raise DecodeError(f"{path} lacks {name}")
    struct: Struct = cls(**values)
    return struct


def _field_from_json(field: Field, value: Any, version: int, path: str) -> Any:
    if value is None:
        if not field.nullable.has(version):
            raise DecodeError(f"{path} may not be null")
        return None
    if not field.is_array:
        return _from_json(field.type, value, version, path)
    if not isinstance(value, list):
        raise DecodeError(f"{path} must be an array, not {value!r}")
    return [_from_json(field.type, item, version, path) for item in value]


def _from_json(kind: Any, value: Any, version: int, path: str) -> Any:
    if isinstance(kind, StructType):
        return _struct_from_json(kind, value, version, path)
    expected = _JSON_TYPES.get(kind.__name__, int)
    if not isinstance(value, expected) or (isinstance(value, bool) and expected is not bool):
        raise DecodeError(f"{path} is not of type {kind.__name__}: {value!r}")
    try:
        if kind.__name__ == "uuid":
            return Uuid(parse_uuid(value))
        if kind.__name__ in ("bytes", "records"):
            return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise DecodeError(f"{path}: {error}") from error
    return value


_JSON_TYPES: dict[str, Any] = {
    "bool": bool,
    "float64": (int, float),
    "string": str,
    "uuid": str,
    "bytes": str,
    "records": str,
}
