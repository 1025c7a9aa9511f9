"""Converters and transformations of one task, and what they make of records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from moldau.client.records import NO_TIMESTAMP_TYPE, ConsumerRecord, ProducerRecord
from moldau.pipelines.connect.converters.interface import Converter, HeaderConverter
from moldau.pipelines.connect.data.headers import Headers
from moldau.pipelines.connect.data.records import SinkRecord, SourceRecord
from moldau.pipelines.connect.plugins import Plugins, java_name
from moldau.pipelines.connect.transforms.chain import TransformationChain
from moldau.pipelines.connect.worker.task.errors import ErrorHandler, Skipped, Stage

KEY: Final = "key.converter"
VALUE: Final = "value.converter"
HEADER: Final = "header.converter"
DEFAULT_HEADER_CONVERTER: Final = "org.apache.kafka.connect.storage.SimpleHeaderConverter"

_Bytes = tuple[str, bytes | None]


class Converters(NamedTuple):
    key: Converter
    value: Converter
    header: HeaderConverter


def create_converters(
    plugins: Plugins, connector: Mapping[str, str], worker: Mapping[str, str]
) -> Converters:
    """Create the converters: a connector's own with its settings, otherwise the worker's with those.

    A connector's settings of a converter that it does not name itself have no effect, as in Kafka Connect.
    """
    key, value, header = (_source(name, connector, worker) for name in (KEY, VALUE, HEADER))
    converters = Converters(
        plugins.converter(key[KEY]),
        plugins.converter(value[VALUE]),
        plugins.header_converter(header.get(HEADER) or DEFAULT_HEADER_CONVERTER),
    )
    converters.key.configure(_settings(KEY, key), is_key=True)
    converters.value.configure(_settings(VALUE, value), is_key=False)
    converters.header.configure({"converter.type": "header", **_settings(HEADER, header)})
    return converters


def _source(name: str, connector: Mapping[str, str], worker: Mapping[str, str]) -> Mapping[str, str]:
    return connector if connector.get(name) else worker


def _settings(name: str, properties: Mapping[str, str]) -> dict[str, str]:
    prefix = f"{name}."
    return {each.removeprefix(prefix): value for each, value in properties.items() if each.startswith(prefix)}


class SourceConversion:
    """Source records to producer records."""

    def __init__(self, converters: Converters, chain: TransformationChain, errors: ErrorHandler) -> None:
        self._converters = converters
        self._chain = chain
        self._errors = errors
        self._names = [java_name(type(each)) for each in converters]

    def convert(self, record: SourceRecord) -> ProducerRecord[bytes, bytes] | None:
        """Return the record to produce; None if a transformation dropped it or a tolerated error did."""
        try:
            transformed = transform(self._chain, self._errors, record, record)
            return None if transformed is None else self._produced(transformed, record)
        except Skipped:
            return None

    def _produced(self, record: SourceRecord, original: SourceRecord) -> ProducerRecord[bytes, bytes]:
        topic, run, converters = record.topic, self._errors.run, self._converters
        key_name, value_name, header_name = self._names
        headers: list[_Bytes] = []
        if record.headers:
            headers = run(Stage.HEADER_CONVERTER, header_name, original, self._headers, topic, record.headers)
        to_key, to_value = converters.key.from_connect, converters.value.from_connect
        key = run(
            Stage.KEY_CONVERTER, key_name, original, to_key, topic, headers, record.key_schema, record.key
        )
        value_schema, value = record.value_schema, record.value
        data = run(Stage.VALUE_CONVERTER, value_name, original, to_value, topic, headers, value_schema, value)
        return ProducerRecord(topic, data, key, record.partition, record.timestamp, headers)

    def _headers(self, topic: str, headers: Headers) -> list[_Bytes]:
        convert = self._converters.header.from_connect_header
        return [(each.key, convert(topic, each.key, each.schema, each.value)) for each in headers]


class SinkConversion:
    """Consumed records to sink records."""

    def __init__(self, converters: Converters, chain: TransformationChain, errors: ErrorHandler) -> None:
        self._converters = converters
        self._chain = chain
        self._errors = errors
        self._names = [java_name(type(each)) for each in converters]

    def convert(self, record: ConsumerRecord[Any, Any]) -> SinkRecord | None:
        """Return the record for the sink; None if it was dropped."""
        try:
            found: SinkRecord | None = transform(self._chain, self._errors, self._consumed(record), record)
            return found
        except Skipped:
            return None

    def _consumed(self, record: ConsumerRecord[Any, Any]) -> SinkRecord:
        topic, run, converters = record.topic, self._errors.run, self._converters
        key_name, value_name, header_name = self._names
        to_key, to_value = converters.key.to_connect, converters.value.to_connect
        key = run(Stage.KEY_CONVERTER, key_name, record, to_key, topic, record.headers, record.key)
        value = run(Stage.VALUE_CONVERTER, value_name, record, to_value, topic, record.headers, record.value)
        headers = Headers()
        if record.headers:
            headers = run(Stage.HEADER_CONVERTER, header_name, record, self._headers, record)
        return SinkRecord(
            topic=topic,
            partition=record.partition,
            key_schema=key.schema,
            key=key.value,
            value_schema=value.schema,
            value=value.value,
            timestamp=None if record.timestamp_type == NO_TIMESTAMP_TYPE else record.timestamp,
            headers=headers,
            offset=record.offset,
            timestamp_type=record.timestamp_type,
        )

    def _headers(self, record: ConsumerRecord[Any, Any]) -> Headers:
        headers = Headers()
        for key, data in record.headers:
            found = self._converters.header.to_connect_header(record.topic, key, data)
            headers.append(key, found.schema, found.value)
        return headers


def transform(chain: TransformationChain, errors: ErrorHandler, record: Any, original: Any) -> Any:
    """Apply the chain step by step, so that a failure names the transformation that failed."""
    for stage in chain.stages:
        record = errors.run(Stage.TRANSFORMATION, stage.java_class, original, stage.apply, record)
        if record is None:
            return None
    return record
