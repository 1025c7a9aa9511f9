"""Records of the topic `heartbeats`: one key per pair of clusters."""

from __future__ import annotations

from typing import NamedTuple

from moldau.pipelines.mirror.records.fields import FieldReader, MalformedRecord, int16, int64, string

_VERSION = 0


class Heartbeat(NamedTuple):
    source: str
    target: str
    timestamp: int

    def key(self) -> bytes:
        return string(self.source) + string(self.target)

    def value(self) -> bytes:
        return int16(_VERSION) + int64(self.timestamp)


def read_heartbeat(key: bytes | None, value: bytes | None) -> Heartbeat:
    names, fields = FieldReader(key), FieldReader(value)
    if fields.int16() != _VERSION:
        raise MalformedRecord("unknown version of a heartbeat")
    return Heartbeat(names.string(), names.string(), fields.int64())
