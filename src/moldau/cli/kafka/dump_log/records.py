"""Printing segments and snapshots, batch by batch and record by record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from moldau.cli.kafka.dump_log.decoders import Decoder, control_text
from moldau.cli.kafka.dump_log.files import Inconsistencies, SegmentFile
from moldau.cli.shared.java import java_boolean
from moldau.cli.shared.tool import warn
from moldau.protocol.compression import CODEC_NAMES
from moldau.protocol.errors import DecodeError
from moldau.protocol.records import BatchHeader, CorruptBatch, Record, check_crc, iter_batches, iter_records

WHOLE_FILE = 2**31 - 1
_BOOTSTRAP = "bootstrap.checkpoint"


class LogOptions(NamedTuple):
    deep: bool
    print_data: bool
    skip_metadata: bool
    max_bytes: int
    decoder: Decoder


def dump_log(segment: SegmentFile, options: LogOptions, inconsistencies: Inconsistencies) -> None:
    print(_title(segment))
    view = segment.view()[: options.max_bytes]
    valid = 0
    try:
        for position, header in iter_batches(view):
            batch = view[position : position + header.size_in_bytes]
            print(_batch_line(batch, header, position))
            if options.deep:
                _dump_records(segment, batch, header, options, inconsistencies)
            valid = position + header.size_in_bytes
    except CorruptBatch as error:
        warn(f"{segment.path} at position {valid}: {error}")
    if valid < len(view) and options.max_bytes == WHOLE_FILE:
        print(f"Found {len(view) - valid} invalid bytes at the end of {segment.name}")


def _title(segment: SegmentFile) -> str:
    if segment.name.endswith(".log"):
        return f"Log starting offset: {segment.base_offset}"
    if segment.name == _BOOTSTRAP:
        return "KRaft bootstrap snapshot"
    offset, _, epoch = segment.name.removesuffix(".checkpoint").partition("-")
    return f"Snapshot end offset: {int(offset)}, epoch: {int(epoch or 0)}"


def _batch_line(batch: memoryview, header: BatchHeader, position: int) -> str:
    horizon = f"OptionalLong[{header.base_timestamp}]" if header.has_delete_horizon else "OptionalLong.empty"
    codec = CODEC_NAMES[header.codec] if header.codec < len(CODEC_NAMES) else str(header.codec)
    return (
        f"baseOffset: {header.base_offset} lastOffset: {header.last_offset} count: {header.records_count} "
        f"baseSequence: {header.base_sequence} lastSequence: {header.last_sequence} "
        f"producerId: {header.producer_id} producerEpoch: {header.producer_epoch} "
        f"partitionLeaderEpoch: {header.partition_leader_epoch} "
        f"isTransactional: {java_boolean(header.is_transactional)} "
        f"isControl: {java_boolean(header.is_control)} "
        f"deleteHorizonMs: {horizon} position: {position} {_timestamp_type(header)}: {header.max_timestamp} "
        f"size: {header.size_in_bytes} magic: {header.magic} compresscodec: {codec} crc: {header.crc} "
        f"isvalid: {java_boolean(check_crc(batch, 0, header))}"
    )


def _timestamp_type(header: BatchHeader) -> str:
    return "LogAppendTime" if header.timestamp_type else "CreateTime"


def _dump_records(
    segment: SegmentFile,
    batch: memoryview,
    header: BatchHeader,
    options: LogOptions,
    inconsistencies: Inconsistencies,
) -> None:
    for record in _records(segment, batch, header):
        inconsistencies.saw_offset(segment.path, record.offset)
        parts = [] if options.skip_metadata else [_record_text(record, header)]
        if options.print_data and not header.is_control:
            decoded = options.decoder(record)
            if decoded.key is not None:
                parts.append(f"key: {decoded.key}")
            if decoded.payload is not None:
                parts.append(f"payload: {decoded.payload}")
        print(f"| {' '.join(parts)}" if parts else "")


def _records(segment: SegmentFile, batch: memoryview, header: BatchHeader) -> Iterator[Record]:
    try:
        yield from iter_records(batch, header, max_bytes=WHOLE_FILE)
    except CorruptBatch as error:
        warn(f"{segment.path}: the batch at offset {header.base_offset} cannot be read: {error}")


def _record_text(record: Record, header: BatchHeader) -> str:
    keys = ",".join(name for name, _ in record.headers)
    text = (
        f"offset: {record.offset} {_timestamp_type(header)}: {record.timestamp} keySize: {_size(record.key)} "
        f"valueSize: {_size(record.value)} sequence: {record.sequence} headerKeys: [{keys}]"
    )
    if not header.is_control:
        return text
    try:
        return f"{text} {control_text(record)}"
    except DecodeError as error:
        return f"{text} controlType: unreadable ({error})"


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)
