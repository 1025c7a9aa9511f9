"""Replay a recorded session to another broker: the same frames, in order, on as many connections.

Ids that a broker generates are replaced by those of this broker: topic ids, fetch session ids,
producer ids. Everything else is sent as recorded, byte for byte. A response is read where the recording
has it, so requests that waited wait again.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fastcrc import crc32

from moldau.protocol.apis import APIS
from moldau.protocol.headers import RequestHeader, decode_request_header, decode_response_header
from moldau.protocol.records import iter_batches, iter_records
from moldau.protocol.schema import Struct, decode
from tests.harness.sessions.sessions import ANSWER, REQUEST, Event, Session
from tests.harness.wire.wire import Wire

PRODUCE, FETCH, INIT_PRODUCER_ID = 0, 1, 22
_CRC_AT, _CHECKED_FROM, _PRODUCER_ID_AT = 17, 21, 43


@dataclass
class Exchange:
    """A request, its recorded response, and its response now."""

    header: RequestHeader
    recorded: Any = None
    found: Any = None


@dataclass
class Substitutes:
    """The ids of this broker by the ids of the recorded broker."""

    ids: dict[bytes, bytes] = field(default_factory=dict)
    sessions: dict[int, int] = field(default_factory=dict)
    producers: dict[int, int] = field(default_factory=dict)

    def learn(self, exchange: Exchange) -> None:
        recorded, found = exchange.recorded, exchange.found
        if exchange.header.api_key == FETCH and recorded.session_id:
            self.sessions[recorded.session_id] = found.session_id
        if exchange.header.api_key == INIT_PRODUCER_ID and recorded.error_code == 0:
            self.producers[recorded.producer_id] = found.producer_id
        now = dict(topic_ids(found))
        self.ids |= {old: now[name] for name, old in topic_ids(recorded) if name in now}

    def apply(self, frame: bytes) -> bytes:
        header, start = decode_request_header(frame)
        for old, new in self.ids.items():
            frame = frame.replace(old, new)
        if header.api_key == FETCH and header.api_version >= 7:
            at = start + (17 if header.api_version < 15 else 13)
            (session,) = struct.unpack_from(">i", frame, at)
            frame = frame[:at] + struct.pack(">i", self.sessions.get(session, session)) + frame[at + 4 :]
        if header.api_key == PRODUCE:
            for records in produced(decode(APIS[PRODUCE].request, frame, header.api_version, start)):
                frame = frame.replace(records, self._with_producer(records))
        return frame

    def _with_producer(self, records: bytes) -> bytes:
        """Replace the producer ids of a produce request, which has one batch per partition."""
        (producer,) = struct.unpack_from(">q", records, _PRODUCER_ID_AT)
        patched = bytearray(records)
        struct.pack_into(">q", patched, _PRODUCER_ID_AT, self.producers.get(producer, producer))
        struct.pack_into(">I", patched, _CRC_AT, crc32.iscsi(bytes(patched[_CHECKED_FROM:])))
        return bytes(patched)


def replay(session: Session, bootstrap: str) -> Iterator[Exchange]:
    """Yield every exchange of the session with the response of this broker."""
    wires: dict[int, Wire] = {}
    pending: dict[tuple[int, int], Exchange] = {}
    substitutes = Substitutes()
    try:
        for number, event in enumerate(session.events):
            if event.kind == REQUEST:
                exchange = Exchange(decode_request_header(event.frame)[0])
                pending[event.connection, exchange.header.correlation_id] = exchange
                wire = wires.setdefault(event.connection, Wire(bootstrap, timeout=60))
                wire.send_frame(substitutes.apply(event.frame))
            elif event.kind == ANSWER:
                exchange = _answered(event, wires[event.connection], pending, number)
                substitutes.learn(exchange)
                yield exchange
            elif event.connection in wires:
                wires.pop(event.connection).close()
    finally:
        for wire in wires.values():
            wire.close()


def _answered(event: Event, wire: Wire, pending: dict[tuple[int, int], Exchange], number: int) -> Exchange:
    (correlation_id,) = struct.unpack_from(">i", event.frame)
    exchange = pending.pop((event.connection, correlation_id))
    header = exchange.header
    answer = wire.read_frame()
    assert answer is not None, f"event {number}: the connection is closed instead of answering {header}"
    exchange.recorded = _answer(header, event.frame)
    exchange.found = _answer(header, answer)
    return exchange


def _answer(header: RequestHeader, frame: bytes) -> Any:
    correlation_id, start = decode_response_header(header.api_key, header.api_version, frame)
    assert correlation_id == header.correlation_id
    api = APIS[header.api_key]
    # ApiVersions in an unknown version is answered in version 0.
    version = header.api_version if header.api_version <= api.max_version else 0
    return decode(api.response, frame, version, start)


def topic_ids(value: Any) -> Iterator[tuple[str, bytes]]:
    """Return names and ids of all topics in a response that have both."""
    if isinstance(value, list):
        for each in value:
            yield from topic_ids(each)
    elif isinstance(value, Struct):
        identity, name = getattr(value, "topic_id", None), getattr(value, "name", None)
        if identity and any(identity) and name:
            yield name, bytes(identity)
        for each in value.FIELDS:
            yield from topic_ids(getattr(value, each.name))


def produced(request: Any) -> Iterator[bytes]:
    for topic in request.topic_data:
        for partition in topic.partition_data:
            if partition.records:
                yield bytes(partition.records)


def error_codes(value: Any, place: str = "") -> Iterator[tuple[str, int]]:
    """Return every error code of a response with the names it belongs to."""
    if isinstance(value, list):
        for each in value:
            yield from error_codes(each, place)
    elif isinstance(value, Struct):
        names = [str(getattr(value, key)) for key in _NAMES if getattr(value, key, None) is not None]
        place = "/".join([place, *names])
        for each in value.FIELDS:
            if each.name.endswith("error_code"):
                yield place, getattr(value, each.name)
            else:
                yield from error_codes(getattr(value, each.name), place)


_NAMES = ("name", "topic", "resource_name", "partition", "partition_index", "index")


def fetched(answer: Any, names: dict[bytes, str]) -> Iterator[tuple[str, int, list[Any]]]:
    """Return topic, partition and records of a fetch response."""
    for topic in answer.responses:
        name = topic.topic or names[bytes(topic.topic_id)]
        for partition in topic.partitions:
            data = bytes(partition.records or b"")
            records = [
                (record.offset, record.key, record.value, tuple(record.headers))
                for position, header in iter_batches(data)
                for record in iter_records(memoryview(data)[position:], header)
            ]
            yield name, partition.partition_index, records
