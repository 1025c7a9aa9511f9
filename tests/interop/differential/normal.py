"""Normalise a response to plain data without values that differ between clusters.

Ids, ports, current times, disk sizes and messages become placeholders; records become their batch
headers. Lists without a defined order are sorted. The rest must be the same on both brokers.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Mapping
from typing import Any

from moldau.base.ids import ZERO_UUID
from moldau.protocol.records import BATCH_HEADER_SIZE, read_batch_header
from moldau.protocol.schema import Struct

_TEXTS = frozenset(
    {"error_message", "acknowledge_error_message", "batch_index_error_message", "documentation"}
)
_SIZES = frozenset({"partition_size", "total_bytes", "usable_bytes"})
#: Fields with error codes.
_ERRORS = frozenset({"error_code", "partition_error_code"})
_METADATA_OFFSETS = frozenset({"finalized_features_epoch"})
_KEYS = (
    "api_key",
    "name",
    "topic",
    "topic_name",
    "topic_id",
    "resource_type",
    "resource_name",
    "broker_id",
    "node_id",
    "partition_index",
    "partition_id",
    "partition",
    "index",
    "producer_id",
    "key",
    "entity",
)
_TEN_MINUTES = 600_000
#: The end of member ids.
_JAVA_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Normal:
    """`topic_ids` and `ports` are the placeholders of this broker's ids and ports."""

    def __init__(self, topic_ids: Mapping[bytes, str], ports: Mapping[int, str]) -> None:
        self._topic_ids = topic_ids
        self._ports = ports

    def __call__(self, value: Any, name: str = "") -> Any:
        if isinstance(value, Struct):
            return {field.name: self(getattr(value, field.name), field.name) for field in value.FIELDS}
        if name == "records":
            return "null" if value is None else batches(bytes(value))
        if isinstance(value, list | tuple):
            return sorted((self(item, name) for item in value), key=_order)
        if isinstance(value, bytes) and len(value) == len(ZERO_UUID):
            return self._uuid(value, name)
        if isinstance(value, int) and not isinstance(value, bool):
            return self._number(value, name)
        if isinstance(value, str):
            return self._text(value, name)
        return value

    def _uuid(self, value: bytes, name: str) -> str:
        if value == ZERO_UUID:
            return "zero"
        if "directory" in name:
            return "a directory"
        known = self._topic_ids.get(value)
        return f"id of {known}" if known is not None else value.hex()

    def _number(self, value: int, name: str) -> Any:
        if name == "port":
            return self._ports.get(value, value)
        if name in _SIZES:
            return "a size" if value > 0 else value
        if name in _METADATA_OFFSETS:
            return "an offset" if value >= 0 else value
        if name == "session_id":
            return "a session" if value else 0
        if abs(value - time.time() * 1000) < _TEN_MINUTES:
            return "now"
        return value

    def _text(self, value: str, name: str) -> str:
        if name in _TEXTS:
            return "a text" if value else "an empty text"
        if name == "cluster_id":
            return "the cluster"
        if name == "log_dir":
            return "a directory"
        return _JAVA_UUID.sub("a uuid", value)


def has_error(answer: Any) -> bool:
    """Return whether any error code of a response is set."""
    if isinstance(answer, list | tuple):
        return any(map(has_error, answer))
    if not isinstance(answer, Struct):
        return False
    return any(
        value != 0 if field.name in _ERRORS else has_error(value)
        for field in answer.FIELDS
        for value in [getattr(answer, field.name)]
    )


def batches(data: bytes) -> list[dict[str, Any]]:
    """Return the complete batches in `data`: headers, and a digest of the records."""
    found, position = [], 0
    while position + BATCH_HEADER_SIZE <= len(data):
        header = read_batch_header(data, position)
        end = position + header.size_in_bytes
        if end > len(data):
            break
        fields: dict[str, Any] = header._asdict()
        del fields["crc"]
        fields["payload"] = hashlib.sha1(data[position + BATCH_HEADER_SIZE : end]).hexdigest()[:8]
        if fields["attributes"] & 8:
            fields["max_timestamp"] = "append time"
        found.append(fields)
        position = end
    return found


def _order(item: Any) -> str:
    if isinstance(item, dict):
        return repr([item[key] for key in _KEYS if key in item]) + repr(item)
    return repr(item)


def differences(apache: Any, moldau: Any, path: str = "") -> list[str]:
    """Yield a line for each difference between two normalised responses."""
    if isinstance(apache, dict) and isinstance(moldau, dict) and apache.keys() == moldau.keys():
        inner = [(f"{path}.{key}" if path else key, apache[key], moldau[key]) for key in apache]
    elif isinstance(apache, list) and isinstance(moldau, list) and len(apache) == len(moldau):
        inner = [(f"{path}[{n}]", *pair) for n, pair in enumerate(zip(apache, moldau, strict=True))]
    elif apache == moldau:
        return []
    else:
        return [f"{path}: Apache {_short(apache)}, Moldau {_short(moldau)}"]
    return [line for where, ours, theirs in inner for line in differences(ours, theirs, where)]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:300]}…"
