"""The records of the coordinators: typed keys and values, and the end markers of transactions.

One decision becomes one batch. Records of a producer's transaction carry the producer, and their batch is
transactional; the end of a transaction is a control batch. Decoding is the reverse, when a shard is loaded.
Records of unknown types are skipped: a newer release may have written them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from moldau.protocol.errors import DecodeError
from moldau.protocol.records import Record, build_batch, iter_batches, iter_records
from moldau.protocol.schema import Message
from moldau.protocol.stored.control import (
    ControlType,
    EndTxnMarker,
    decode_control_key,
    decode_control_value,
    encode_control_key,
    encode_control_value,
)
from moldau.protocol.stored.coordinator import (
    CoordinatorTable,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)

logger = logging.getLogger(__name__)


class Producer(NamedTuple):
    """A producer id with its epoch."""

    id: int
    epoch: int


class CoordinatorRecord(NamedTuple):
    key: Message
    #: None makes the record a tombstone.
    value: Message | None
    #: The version of the encoded value.
    version: int = 0
    #: The producer whose transaction the record belongs to.
    producer: Producer | None = None


class EndTransaction(NamedTuple):
    """The end marker of a producer's transaction."""

    producer: Producer
    committed: bool
    coordinator_epoch: int
    #: The `transaction.version` of the transaction; not stored.
    transaction_version: int = 0


Entry = CoordinatorRecord | EndTransaction


def encode_entries(entries: Sequence[Entry], now_ms: int, codec: int = 0) -> bytearray:
    """Encode the batch of one decision; an end marker has a batch of its own."""
    first = entries[0]
    if isinstance(first, EndTransaction):
        return _encode_end(first, now_ms)
    records = [
        _encode_record(each, number, now_ms)
        for number, each in enumerate(entries)
        if isinstance(each, CoordinatorRecord)
    ]
    producer = first.producer
    if producer is None:
        return build_batch(records, codec=codec)
    return build_batch(
        records, codec=codec, producer_id=producer.id, producer_epoch=producer.epoch, is_transactional=True
    )


def _encode_record(record: CoordinatorRecord, number: int, now_ms: int) -> Record:
    value = None if record.value is None else encode_value(record.value, record.version)
    return Record(number, now_ms, encode_key(record.key), value, [])


def _encode_end(end: EndTransaction, now_ms: int) -> bytearray:
    kind = ControlType.COMMIT if end.committed else ControlType.ABORT
    value = encode_control_value(EndTxnMarker(coordinator_epoch=end.coordinator_epoch))
    return build_batch(
        [Record(0, now_ms, encode_control_key(kind), value, [])],
        producer_id=end.producer.id,
        producer_epoch=end.producer.epoch,
        is_transactional=True,
        is_control=True,
    )


def decode_entries(table: CoordinatorTable, data: memoryview) -> Iterator[tuple[int, Entry]]:
    """Decode whole batches; yield each entry with its offset."""
    for position, header in iter_batches(data):
        batch = data[position : position + header.size_in_bytes]
        producer = Producer(header.producer_id, header.producer_epoch) if header.is_transactional else None
        for record in iter_records(batch, header):
            entry: Entry | None = (
                _decode_end(record, producer)
                if header.is_control
                else _decode_record(table, record, producer)
            )
            if entry is not None:
                yield record.offset, entry


def _decode_record(
    table: CoordinatorTable, record: Record, producer: Producer | None
) -> CoordinatorRecord | None:
    if record.key is None:
        return None
    try:
        key = decode_key(table, record.key)
        value = None if record.value is None else decode_value(table, key, record.value)
    except DecodeError as error:
        logger.warning("skipping a coordinator record at offset %d: %s", record.offset, error)
        return None
    version = 0 if record.value is None else int.from_bytes(record.value[:2], "big", signed=True)
    return CoordinatorRecord(key, value, version, producer)


def _decode_end(record: Record, producer: Producer | None) -> EndTransaction | None:
    kind = decode_control_key(record.key)
    if kind not in (ControlType.COMMIT, ControlType.ABORT) or producer is None or record.value is None:
        return None
    marker = decode_control_value(kind, record.value)
    epoch = marker.coordinator_epoch if isinstance(marker, EndTxnMarker) else 0
    return EndTransaction(producer, kind == ControlType.COMMIT, epoch)
