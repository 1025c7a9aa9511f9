"""Validation of a batch before a leader appends it.

The rules for the header always apply and cost nothing per record: format, length, checksum, counts,
timestamps, size. Records are parsed only if a rule requires it: every record of a compacted topic needs a
key, a topic with its own `compression.type` stores batches in that codec, and with schema validation every
key or value names a schema. That is slow enough to be done in the pool (`must_open` decides, `open_batch`
does it).

An error names the violated rule, with Kafka's error code, and lists the invalid records if only some are
(`InvalidRecords`).
"""

from __future__ import annotations

from typing import NamedTuple

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.protocol.compression import CODEC_NAMES, GZIP, LZ4, NONE, ZSTD
from moldau.protocol.records import (
    BATCH_HEADER_SIZE,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    NO_TIMESTAMP,
    BatchHeader,
    CorruptBatch,
    Record,
    UnsupportedMagic,
    batch_payload,
    check_crc,
    iter_batches,
    iter_records,
    read_batch_header,
    recompress,
)
from moldau.storage.cleaner.records import scan
from moldau.storage.disk.disk import Buffer
from moldau.storage.log.append import InvalidRecords, KeylessRecords, RecordError, refused_records
from moldau.storage.log.config import LogConfig
from moldau.storage.log.schema_ids import SchemaIds, read_schema_ids

_LAST_CODEC = ZSTD
_CODEC_OR_CONTROL = 0x27
#: The header of an invalid batch may claim billions of records.
_MAX_ERRORS = 1000
_MIN_RECORD_SIZE = 7
#: The position of the length field, its minimum, and the bytes needed to read the magic byte.
_LENGTH_AT = 8
_MIN_LENGTH = 14
_UP_TO_MAGIC = 17


class OpenedBatch(NamedTuple):
    """A batch in the topic's codec, and the schemas that its records name (None: they are not validated)."""

    records: Buffer
    schema_ids: SchemaIds | None


class Validation:
    """The rules of one topic; a changed config gets a new object."""

    __slots__ = (
        "_after_ms",
        "_before_ms",
        "_config",
        "_topic_partition",
        "codec",
        "log_append_time",
        "opens",
    )

    def __init__(self, topic_partition: TopicPartition, config: LogConfig) -> None:
        self._topic_partition = topic_partition
        self._config = config
        self._before_ms = config.message_timestamp_before_max_ms
        self._after_ms = config.message_timestamp_after_max_ms
        self.log_append_time = config.message_timestamp_type == "LogAppendTime"
        #: The codec in which batches are stored; None: as the producer sent them.
        self.codec = _target_codec(config.compression_type)
        #: Whether any batch may have to be opened.
        self.opens = config.compact or self.codec is not None or config.validates_schemas

    def client_batch(self, records: Buffer) -> BatchHeader:
        """Return the header of the only batch that a produce request may have per partition."""
        try:
            header = read_batch_header(records)
            if header.size_in_bytes == len(records):
                return header
            batches = list(iter_batches(records))
        except UnsupportedMagic as error:
            code = ErrorCode.INVALID_RECORD if error.magic in (0, 1) else ErrorCode.CORRUPT_MESSAGE
            raise self._refusal(code, str(error)) from error
        except CorruptBatch as error:
            code = ErrorCode.INVALID_RECORD if _is_cut_off(records) else ErrorCode.CORRUPT_MESSAGE
            raise self._refusal(code, str(error)) from error
        if len(batches) != 1:
            raise self._refusal(
                ErrorCode.INVALID_RECORD,
                f"a produce request must contain one record batch per partition, not {len(batches)}",
            )
        return batches[0][1]

    def check_client(self, records: Buffer, header: BatchHeader, now_ms: int) -> None:
        """Apply the rules for batches of clients."""
        if header.base_offset != 0:
            raise self._refusal(
                ErrorCode.INVALID_RECORD, f"the base offset of a new batch is 0, not {header.base_offset}"
            )
        self.check_size(header.size_in_bytes)
        if not check_crc(records, 0, header):
            raise self._refusal(ErrorCode.CORRUPT_MESSAGE, "the checksum of the record batch does not match")
        if header.records_count <= 0 or header.records_count != header.last_offset_delta + 1:
            raise self._refusal(
                ErrorCode.INVALID_RECORD,
                f"the last offset delta of {header.records_count} records is {header.last_offset_delta}",
            )
        if header.attributes & _CODEC_OR_CONTROL:
            self._check_attributes(header)
        elif header.records_count * _MIN_RECORD_SIZE > len(records) - BATCH_HEADER_SIZE:
            raise self._refusal(
                ErrorCode.INVALID_RECORD,
                f"{header.records_count} records cannot fit into {len(records)} bytes",
            )
        if header.producer_id >= 0 and header.base_sequence < 0:
            raise self._refusal(
                ErrorCode.INVALID_RECORD,
                f"invalid base sequence {header.base_sequence} of producer {header.producer_id}",
            )
        if self.log_append_time:
            if header.timestamp_type == LOG_APPEND_TIME:
                raise self._all_records(header, "only the broker sets the timestamp type LogAppendTime")
        elif not self._in_time(header.max_timestamp, now_ms) or not self._in_time(
            header.base_timestamp, now_ms
        ):
            raise self._timestamp_error(records, header, now_ms)

    def check_size(self, size: int) -> None:
        if size > self._config.max_message_bytes:
            raise self._refusal(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"the record batch of {size} bytes exceeds max.message.bytes="
                f"{self._config.max_message_bytes}",
            )

    def check_fits_segment(self, size: int) -> None:
        if size > self._config.segment_bytes:
            raise self._refusal(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"{size} bytes of records do not fit into a segment of {self._config.segment_bytes}",
            )

    def must_open(self, header: BatchHeader) -> bool:
        """Whether the batch must be recompressed or its records parsed."""
        if header.is_control:
            return False
        config = self._config
        recompressed = self.codec is not None and self.codec != header.codec
        return config.compact or recompressed or config.validates_schemas

    def open_batch(self, records: Buffer, header: BatchHeader) -> OpenedBatch:
        """Validate the records, and return the batch in the topic's codec."""
        try:
            schema_ids = self._check_records(records, header)
            if self.codec is None or self.codec == header.codec:
                return OpenedBatch(records, schema_ids)
            changed = recompress(records, header, self.codec, _level(self._config, self.codec))
        except CorruptBatch as error:
            raise self._refusal(ErrorCode.INVALID_RECORD, str(error)) from error
        self.check_size(len(changed))
        return OpenedBatch(changed, schema_ids)

    def _check_attributes(self, header: BatchHeader) -> None:
        if header.is_control:
            raise self._refusal(ErrorCode.INVALID_RECORD, "clients must not write control records")
        if header.codec > _LAST_CODEC:
            raise self._refusal(
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"unknown compression codec {header.codec}"
            )

    def _check_records(self, records: Buffer, header: BatchHeader) -> SchemaIds | None:
        config, payload = self._config, batch_payload(records, header)
        spans = scan(payload, header.records_count)
        errors = [
            RecordError(number, "a record of a compacted topic needs a key")
            for number, span in enumerate(spans)
            if span[3] is None and config.compact
        ]
        if errors:
            raise refused_records(self._topic_partition, ErrorCode.INVALID_RECORD, errors, KeylessRecords)
        if any(span[2] != number for number, span in enumerate(spans)):
            raise self._refusal(
                ErrorCode.INVALID_RECORD, "the offsets in the record batch are not consecutive"
            )
        if not config.validates_schemas:
            return None
        schema_ids, errors = read_schema_ids(
            payload,
            spans,
            keys=config.confluent_key_schema_validation,
            values=config.confluent_value_schema_validation,
        )
        if errors:
            raise refused_records(self._topic_partition, ErrorCode.INVALID_RECORD, errors)
        return schema_ids

    def _in_time(self, timestamp: int, now_ms: int) -> bool:
        if timestamp == NO_TIMESTAMP:
            return True
        return now_ms - self._before_ms <= timestamp <= now_ms + self._after_ms

    def _timestamp_error(self, records: Buffer, header: BatchHeader, now_ms: int) -> InvalidRecords:
        errors = [
            RecordError(
                number,
                f"timestamp {record.timestamp} is not between {now_ms - self._before_ms} and "
                f"{now_ms + self._after_ms}",
            )
            for number, record in enumerate(self._open_records(records, header))
            if not self._in_time(record.timestamp, now_ms)
        ]
        return refused_records(self._topic_partition, ErrorCode.INVALID_TIMESTAMP, errors)

    def _open_records(self, records: Buffer, header: BatchHeader) -> list[Record]:
        try:
            return list(iter_records(records, header))
        except CorruptBatch as error:
            raise self._refusal(ErrorCode.INVALID_RECORD, str(error)) from error

    def _all_records(self, header: BatchHeader, message: str) -> InvalidRecords:
        errors = [RecordError(number, message) for number in range(min(header.records_count, _MAX_ERRORS))]
        return refused_records(self._topic_partition, ErrorCode.INVALID_TIMESTAMP, errors)

    def _refusal(self, code: ErrorCode, message: str) -> KafkaError:
        return KafkaError(code, f"{self._topic_partition}: {message}")


def _is_cut_off(records: Buffer) -> bool:
    """Whether the bytes end before the batch does, by its length field."""
    if len(records) < _UP_TO_MAGIC:
        return True
    length = int.from_bytes(records[_LENGTH_AT : _LENGTH_AT + 4], "big", signed=True)
    return length >= _MIN_LENGTH and LOG_OVERHEAD + length > len(records)


def _target_codec(compression_type: str) -> int | None:
    if compression_type == "producer":
        return None
    if compression_type in ("uncompressed", "none"):
        return NONE
    return CODEC_NAMES.index(compression_type)


def _level(config: LogConfig, codec: int) -> int | None:
    if codec == GZIP:
        return config.compression_gzip_level
    if codec == LZ4:
        return config.compression_lz4_level
    return config.compression_zstd_level if codec == ZSTD else None
