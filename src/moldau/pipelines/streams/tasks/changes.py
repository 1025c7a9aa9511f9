"""What a table's change looks like in the repartition topic of a grouped table: Kafka Streams' own bytes.

The new or the old value and a flag; or both, the new one with its length before it. The length is a zigzag
varint, as in records.
"""

from __future__ import annotations

from dataclasses import dataclass

from moldau.client.serdes import SerializationError
from moldau.protocol.primitives import read_uvarint, uvarint

_OLD, _NEW, _BOTH = b"\x00", b"\x01", b"\x02"


@dataclass(frozen=True, slots=True)
class Change:
    """None is a value that is not there."""

    new: bytes | None
    old: bytes | None


def encode_change(change: Change) -> bytes:
    if change.new is not None and change.old is not None:
        zigzag = len(change.new) << 1
        return uvarint(zigzag) + change.new + change.old + _BOTH
    if change.new is not None:
        return change.new + _NEW
    if change.old is not None:
        return change.old + _OLD
    raise SerializationError("a change has a new value, an old one, or both")


def decode_change(data: bytes) -> Change:
    body, flag = data[:-1], data[-1:]
    if flag == _NEW:
        return Change(body, None)
    if flag == _OLD:
        return Change(None, body)
    if flag != _BOTH:
        raise SerializationError(
            f"a change ends with 0, 1 or 2, these bytes with {data[-1:].hex() or 'nothing'}"
        )
    zigzag, at = read_uvarint(body, 0)
    end = at + (zigzag >> 1)
    return Change(body[at:end], body[end:])
