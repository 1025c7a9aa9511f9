"""Decoders of kafka-dump-log: keys and payloads as text or numbers, records of internal topics as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from moldau.cli.shared.java import java_double
from moldau.cli.shared.tool import ToolError
from moldau.protocol.errors import DecodeError
from moldau.protocol.json_form import to_json
from moldau.protocol.schema import Message, decode_prefix

if TYPE_CHECKING:
    from moldau.protocol.records import Record
    from moldau.protocol.stored.coordinator import CoordinatorTable


class Decoded(NamedTuple):
    key: str | None
    payload: str | None


Decoder = Callable[["Record"], Decoded]


def plain_decoder(key_class: str, value_class: str) -> Decoder:
    """Return a decoder of keys and values; the classes are named with or without their package."""
    decode_key, decode_value = _plain(key_class), _plain(value_class)

    def decode_record(record: Record) -> Decoded:
        return Decoded(
            None if record.key is None else decode_key(record.key),
            None if record.value is None else decode_value(record.value),
        )

    return decode_record


def _number(size: int) -> Callable[[bytes], str]:
    def decode_number(data: bytes) -> str:
        if len(data) != size:
            raise ToolError(f"{data!r} is not a number of {size} bytes")
        return str(int.from_bytes(data, "big", signed=True))

    return decode_number


_PLAIN: dict[str, Callable[[bytes], str]] = {
    "StringDecoder": lambda data: data.decode("utf-8", "replace"),
    "DefaultDecoder": lambda data: data.decode("utf-8", "backslashreplace"),
    "IntegerDecoder": _number(4),
    "LongDecoder": _number(8),
}


def _plain(name: str) -> Callable[[bytes], str]:
    decoder = _PLAIN.get(name.rpartition(".")[2])
    if decoder is None:
        raise ToolError(f"There is no decoder {name}; there are: {', '.join(_PLAIN)}")
    return decoder


def cluster_metadata(record: Record) -> Decoded:
    """Decode a record of __cluster_metadata."""
    try:
        message, version = _metadata_record(record.value or b"")
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(message).__name__).upper()
        text = _dumps({"type": name, "version": version, "data": to_json(message, version)})
    except (DecodeError, IndexError, ValueError) as error:
        text = f"Error at {record.offset}, skipping. {error}"
    return Decoded(None, text)


def _metadata_record(value: bytes) -> tuple[Message, int]:
    from moldau.protocol.stored.metadata import METADATA_RECORDS

    frame_version, position = _varint(value, 0)
    record_type, position = _varint(value, position)
    version, position = _varint(value, position)
    if frame_version != 1:
        raise DecodeError(f"Could not deserialize metadata record with frame version {frame_version}")
    if record_type not in METADATA_RECORDS:
        raise DecodeError(f"Unknown metadata id {record_type}")
    message, _ = decode_prefix(METADATA_RECORDS[record_type], value, version, position)
    return message, version


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


def consumer_offsets(record: Record) -> Decoded:
    """Decode a record of __consumer_offsets."""
    from moldau.protocol.stored.coordinator import CONSUMER_OFFSETS

    return _coordinator_record(CONSUMER_OFFSETS, record)


def transaction_state(record: Record) -> Decoded:
    """Decode a record of __transaction_state."""
    from moldau.protocol.stored.coordinator import TRANSACTION_STATE

    return _coordinator_record(TRANSACTION_STATE, record)


def share_group_state(record: Record) -> Decoded:
    """Decode a record of __share_group_state."""
    from moldau.protocol.stored.coordinator import SHARE_GROUP_STATE

    return _coordinator_record(SHARE_GROUP_STATE, record)


def _coordinator_record(table: CoordinatorTable, record: Record) -> Decoded:
    from moldau.protocol.stored.coordinator import decode_key, decode_value

    if record.key is None:
        raise ToolError(f"Failed to decode message at offset {record.offset} (message had a missing key)")
    record_type = int.from_bytes(record.key[:2], "big", signed=True)
    if record_type not in table:
        return Decoded(f"Unknown record type {record_type} at offset {record.offset}, skipping.", None)
    try:
        key = decode_key(table, record.key)
        shown_key = _dumps({"type": str(record_type), "data": to_json(key, 0)})
        if record.value is None:
            return Decoded(shown_key, "<DELETE>")
        value = decode_value(table, key, record.value)
        version = int.from_bytes(record.value[:2], "big", signed=True)
        data = _with_protocol(value, to_json(value, version))
        return Decoded(shown_key, _dumps({"version": str(version), "data": data}))
    except (DecodeError, ValueError) as error:
        return Decoded(f"Error at offset {record.offset}, skipping. {error}", None)


def _with_protocol(value: Message, data: dict[str, Any]) -> dict[str, Any]:
    """Decode the subscriptions and assignments of classic consumers; undecodable bytes remain as they are."""
    from moldau.protocol.stored.classic_groups import GroupMetadataValue
    from moldau.protocol.stored.consumer_protocol import (
        ConsumerProtocolAssignment,
        ConsumerProtocolSubscription,
    )

    if not isinstance(value, GroupMetadataValue) or value.protocol_type != "consumer":
        return data
    for member, shown in zip(value.members, data["members"], strict=True):
        for field, kind in (
            ("subscription", ConsumerProtocolSubscription),
            ("assignment", ConsumerProtocolAssignment),
        ):
            content = getattr(member, field)
            version = int.from_bytes(content[:2], "big", signed=True)
            try:
                shown[field] = to_json(decode_prefix(kind, content, version, 2)[0], version)
            except (DecodeError, ValueError):
                continue
    return data


def control_text(record: Record) -> str:
    """Format a control record."""
    from moldau.protocol.stored.control import (
        ControlType,
        EndTxnMarker,
        decode_control_key,
        decode_control_value,
    )

    kind = decode_control_key(record.key)
    if kind not in ControlType.__members__.values():
        return f"controlType: UNKNOWN({kind})"
    value = decode_control_value(kind, record.value or b"")
    if isinstance(value, EndTxnMarker):
        return f"endTxnMarker: {ControlType(kind).name} coordinatorEpoch: {value.coordinator_epoch}"
    word = {
        ControlType.LEADER_CHANGE: "LeaderChange:",
        ControlType.SNAPSHOT_HEADER: "SnapshotHeader",
        ControlType.SNAPSHOT_FOOTER: "SnapshotFooter",
        ControlType.KRAFT_VERSION: "KRaftVersion",
        ControlType.KRAFT_VOTERS: "KRaftVoters",
    }[ControlType(kind)]
    version = min(getattr(value, "version", 0), value.VERSIONS.last)
    return f"{word} {_dumps(to_json(value, version))}"


def _dumps(value: object) -> str:
    """Return compact JSON with numbers in Java's format."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{_dumps(name)}:{_dumps(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_dumps, value)) + "]"
    if isinstance(value, float):
        return java_double(value)
    return json.dumps(value, ensure_ascii=False)
