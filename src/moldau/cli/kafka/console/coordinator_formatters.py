"""Formatters for the topics of coordinators: a line of JSON for each record of the selected types."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any

from moldau.cli.kafka.console.formatters import ConsoleRecord, Formatter
from moldau.protocol.errors import DecodeError
from moldau.protocol.json_form import to_json
from moldau.protocol.stored.coordinator import (
    CONSUMER_OFFSETS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
    CoordinatorTable,
    decode_key,
    decode_value,
)

OFFSET_TYPES = (0, 1)
GROUP_TYPES = (2,)


class CoordinatorFormatter:
    """Formats records of some types, or of all types of the table if none are given."""

    def __init__(self, table: CoordinatorTable, types: Collection[int] = ()) -> None:
        self._table = table
        self._types = types or tuple(table)

    def format(self, record: ConsoleRecord) -> bytes:
        if record.key is None or len(record.key) < 2:
            return b""
        record_type = int.from_bytes(record.key[:2], "big", signed=True)
        if record_type not in self._types:
            return b""
        try:
            shown = self._shown(record_type, record.key, record.value)
        except (DecodeError, ValueError) as error:
            shown = {"key": {"type": record_type, "data": f"unreadable: {error}"}, "value": None}
        return json.dumps(shown, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"

    def _shown(self, record_type: int, key: bytes, value: bytes | None) -> dict[str, Any]:
        decoded = decode_key(self._table, key)
        shown_key = {"type": record_type, "data": to_json(decoded, 0)}
        if value is None:
            return {"key": shown_key, "value": None}
        version = int.from_bytes(value[:2], "big", signed=True)
        data = to_json(decode_value(self._table, decoded, value), version)
        return {"key": shown_key, "value": {"version": version, "data": data}}


COORDINATOR_FORMATTERS: dict[str, Callable[[Mapping[str, str]], Formatter]] = {
    "OffsetsMessageFormatter": lambda _: CoordinatorFormatter(CONSUMER_OFFSETS, OFFSET_TYPES),
    "GroupMetadataMessageFormatter": lambda _: CoordinatorFormatter(CONSUMER_OFFSETS, GROUP_TYPES),
    "TransactionLogMessageFormatter": lambda _: CoordinatorFormatter(TRANSACTION_STATE),
    "ShareGroupStateMessageFormatter": lambda _: CoordinatorFormatter(SHARE_GROUP_STATE),
}
