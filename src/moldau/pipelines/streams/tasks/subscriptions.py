"""The messages of foreign-key joins, in the bytes of Kafka Streams.

A subscription consists of a version (whose highest bit is set if there is no hash), an instruction, the hash
of the row's value, the row's key and its partition. A response consists of a version, the hash, and the value
of the other table. In addition to Kafka Streams, a header identifies the record of the row in its topic
(`Place`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from struct import Struct

from moldau.client.records import Headers
from moldau.client.serdes import SerializationError

_VERSION, _RESPONSE_VERSION = 1, 0
_NO_HASH = 0x80
_HASH_BYTES = 16
_PARTITION = Struct(">i")
_TWO_LONGS, _LITTLE = Struct(">QQ"), Struct("<QQ")
_MASK = (1 << 64) - 1
_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F
_SEED = 104729
_PLACE_HEADER = "__streams.row"
_PLACE = Struct(">qi")

#: The offset of a record, and the number of the row among those derived from it.
Place = tuple[int, int]
#: Before all other places.
NO_PLACE: Place = (-1, -1)


class Instruction(IntEnum):
    """The handling of a subscription: whether it is stored, and in which cases a response is sent."""

    DELETE_KEY_NO_PROPAGATE = 0
    DELETE_KEY_AND_PROPAGATE = 1
    PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE = 2
    PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE = 3


@dataclass(frozen=True, slots=True)
class Subscription:
    hash: bytes | None
    instruction: Instruction
    key: bytes
    partition: int


@dataclass(frozen=True, slots=True)
class Response:
    """A response. Responses are pickled into state, so this class must keep its name and fields."""

    hash: bytes | None
    value: bytes | None


def encode_subscription(subscription: Subscription) -> bytes:
    start = bytes([_version(_VERSION, subscription.hash), subscription.instruction])
    body = (subscription.hash or b"") + subscription.key
    return start + body + _PARTITION.pack(subscription.partition)


def decode_subscription(data: bytes) -> Subscription:
    if data[0] & ~_NO_HASH != _VERSION:
        raise SerializationError(
            f"Unsupported subscription version {data[0] & ~_NO_HASH}: expected {_VERSION}"
        )
    at = 2 if data[0] & _NO_HASH else 2 + _HASH_BYTES
    end = len(data) - _PARTITION.size
    found = None if at == 2 else data[2:at]
    return Subscription(found, Instruction(data[1]), data[at:end], _PARTITION.unpack_from(data, end)[0])


def encode_response(response: Response) -> bytes:
    start = bytes([_version(_RESPONSE_VERSION, response.hash)])
    return start + (response.hash or b"") + (response.value or b"")


def decode_response(data: bytes) -> Response:
    if data[0] & ~_NO_HASH != _RESPONSE_VERSION:
        raise SerializationError(
            f"Unsupported response version {data[0] & ~_NO_HASH}: expected {_RESPONSE_VERSION}"
        )
    at = 1 if data[0] & _NO_HASH else 1 + _HASH_BYTES
    return Response(None if at == 1 else data[1:at], data[at:] or None)


def encode_place(place: Place) -> bytes:
    return _PLACE.pack(*place)


def decode_place(data: bytes | None) -> Place:
    if data is None:
        return NO_PLACE
    offset, seq = _PLACE.unpack(data)
    return offset, seq


def with_place(headers: Headers, place: Place) -> Headers:
    return [*split_headers(headers)[1], (_PLACE_HEADER, encode_place(place))]


def split_headers(headers: Headers) -> tuple[Place, Headers]:
    """Return the place from its header, and the other headers."""
    places = [value for name, value in headers if name == _PLACE_HEADER]
    others = [each for each in headers if each[0] != _PLACE_HEADER]
    return decode_place(places[-1] if places else None), others


def _version(version: int, value_hash: bytes | None) -> int:
    return version | _NO_HASH if value_hash is None else version


def hash_of(value: bytes | None) -> bytes | None:
    """Return the 128-bit Murmur3 hash, with the seed of Kafka Streams."""
    if value is None:
        return None
    one = two = _SEED
    whole = len(value) & ~15
    for first, second in _LITTLE.iter_unpack(value[:whole]):
        one = ((_rotated(one ^ _first(first), 27) + two) * 5 + 0x52DCE729) & _MASK
        two = ((_rotated(two ^ _second(second), 31) + one) * 5 + 0x38495AB5) & _MASK
    first, second = _LITTLE.unpack(value[whole:].ljust(_HASH_BYTES, b"\0"))
    one ^= _first(first) ^ len(value)
    two ^= _second(second) ^ len(value)
    one = (one + two) & _MASK
    two = (two + one) & _MASK
    one, two = _mixed(one), _mixed(two)
    one = (one + two) & _MASK
    return _TWO_LONGS.pack(one, (two + one) & _MASK)


def _first(block: int) -> int:
    return _rotated(block * _C1 & _MASK, 31) * _C2 & _MASK


def _second(block: int) -> int:
    return _rotated(block * _C2 & _MASK, 33) * _C1 & _MASK


def _rotated(value: int, by: int) -> int:
    return (value << by | value >> (64 - by)) & _MASK


def _mixed(value: int) -> int:
    value = (value ^ value >> 33) * 0xFF51AFD7ED558CCD & _MASK
    value = (value ^ value >> 33) * 0xC4CEB9FE1A85EC53 & _MASK
    return value ^ value >> 33
