"""The HTTP sink: records become requests, one each or in batches.

A request that fails is repeated; one that the server refuses is reported, record by record. Delivery is at
least once: the server should treat repeated requests as one, for example by the record's coordinates in a
header.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final
from urllib.parse import quote

from moldau.base.ids import TopicPartition
from moldau.pipelines.connect.config.definition import (
    NO_DEFAULT,
    ConfigDef,
    ConfigType,
    ConfigValue,
    Importance,
    NonEmptyString,
    Range,
    ValidString,
)
from moldau.pipelines.connect.connectors.documents import JsonText, coordinates, key_text
from moldau.pipelines.connect.connectors.http import client as requests
from moldau.pipelines.connect.connectors.http.client import Client, Refused, Unavailable
from moldau.pipelines.connect.data.errors import ConfigError, ConnectError
from moldau.pipelines.connect.data.records import SinkRecord
from moldau.pipelines.connect.data.values.text import to_string
from moldau.pipelines.connect.sdk import SinkConnector, SinkContext, SinkTask

logger = logging.getLogger(__name__)

URL: Final = "http.api.url"
METHOD: Final = "request.method"
FORMAT: Final = "request.body.format"
HEADERS, HEADER_SEPARATOR = "headers", "header.separator"
BATCH_SIZE: Final = "batch.max.size"
PREFIX, SUFFIX, SEPARATOR = "batch.prefix", "batch.suffix", "batch.separator"
JSON_ARRAY: Final = "batch.json.as.array"
ON_NULL, ON_ERROR = "behavior.on.null.values", "behavior.on.error"
IGNORE, DELETE, FAIL, LOG = "ignore", "delete", "fail", "log"
#: Names the record, so that the server can recognise a repetition.
_COORDINATES: Final = "X-Kafka-Record"


def _definition() -> ConfigDef:
    high, medium, low, text = Importance.HIGH, Importance.MEDIUM, Importance.LOW, ConfigType.STRING
    definition = ConfigDef()
    definition.define(
        URL,
        text,
        NO_DEFAULT,
        high,
        "URL of the requests; ${topic} and ${key} are replaced.",
        validator=NonEmptyString(),
    )
    definition.define(
        METHOD,
        text,
        "POST",
        high,
        "Method of the requests: POST, PUT, PATCH or DELETE.",
        validator=ValidString(("POST", "PUT", "PATCH", "DELETE"), ignore_case=True),
    )
    definition.define(
        FORMAT,
        text,
        "json",
        medium,
        "Form of a record's value in the body: json or string.",
        validator=ValidString(("json", "string"), ignore_case=True),
    )
    definition.define(HEADERS, text, "", high, "Headers of the requests: Name: value, with separators.")
    definition.define(HEADER_SEPARATOR, text, "|", low, "Text between the headers.")
    definition.define(
        BATCH_SIZE, ConfigType.INT, 1, high, "Maximum number of records in a request.", validator=Range(1)
    )
    definition.define(
        JSON_ARRAY,
        ConfigType.BOOLEAN,
        True,
        medium,
        "Write a batch of JSON as an array, instead of with prefix, separator and suffix.",
    )
    definition.define(PREFIX, text, "", low, "Text before the records of a batch.")
    definition.define(SUFFIX, text, "", low, "Text after the records of a batch.")
    definition.define(SEPARATOR, text, ",", low, "Text between the records of a batch.")
    definition.define(
        ON_NULL,
        text,
        IGNORE,
        medium,
        "What to do with a record without value: ignore it, delete (a DELETE request to its URL), or fail.",
        validator=ValidString((IGNORE, DELETE, FAIL), ignore_case=True),
    )
    definition.define(
        ON_ERROR,
        text,
        FAIL,
        medium,
        "What to do with a request that the server refuses: fail (report its records, see errors.tolerance), "
        "log or ignore.",
        validator=ValidString((FAIL, LOG, IGNORE), ignore_case=True),
    )
    return requests.define_requests(definition)


class HttpSinkConnector(SinkConnector):
    config = _definition()

    def task_configs(self, max_tasks: int) -> list[Mapping[str, str]]:
        return [self.properties] * max_tasks

    def validate(self, properties: Mapping[str, str]) -> dict[str, ConfigValue]:
        values = super().validate(properties)
        requests.check_requests(values)
        url = values[URL]
        if url.value and not str(url.value).startswith(("http://", "https://")):
            url.errors.append("The URL must begin with http:// or https://.")
        try:
            requests.parse_headers(HEADERS, values[HEADERS].value, values[HEADER_SEPARATOR].value)
        except ConfigError as error:
            values[HEADERS].errors.append(str(error))
        return values

    def task(self) -> SinkTask:
        return HttpSinkTask(self.config)

    def alter_offsets(
        self, properties: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]
    ) -> bool:
        return True


class HttpSinkTask(SinkTask):
    def __init__(self, definition: ConfigDef) -> None:
        self._definition = definition
        self._client: Client | None = None
        self._json = JsonText()
        #: The next offset of each partition that was sent: a batch that is put again is not sent again.
        self._sent: dict[TopicPartition, int] = {}

    def start(self, context: SinkContext) -> None:
        self._config = config = self._definition.parse(context.config)
        self._context = context
        self._client = Client(config, context.wait)
        self._headers = requests.parse_headers(HEADERS, config[HEADERS], config[HEADER_SEPARATOR])
        self._is_json = config[FORMAT].lower() == "json"
        if self._is_json and not any(name.lower() == "content-type" for name in self._headers):
            self._headers["Content-Type"] = "application/json"

    def put(self, records: Sequence[SinkRecord]) -> None:
        left = [each for each in records if each.original_offset >= self._sent.get(_partition(each), -1)]
        for batch in self._batches(left):
            try:
                self._send(batch)
            except Unavailable as error:
                self._context.retry_after(self._config[requests.BACKOFF])
                raise Unavailable(f"{len(batch)} records wait: {error}") from error
            for each in batch:
                self._sent[_partition(each)] = each.original_offset + 1

    def close(self, partitions: Sequence[TopicPartition]) -> None:
        for each in partitions:
            self._sent.pop(each, None)

    def stop(self) -> None:
        if self._client is not None:
            self._client.close()

    def _batches(self, records: Sequence[SinkRecord]) -> Iterator[list[SinkRecord]]:
        """Yield neighbours with the same URL and kind, in order."""
        size = self._config[BATCH_SIZE]
        for _, group in groupby(records, key=lambda each: (self._url(each), each.value is None)):
            batch: list[SinkRecord] = []
            for record in group:
                batch.append(record)
                if len(batch) == size or record.value is None:
                    yield batch
                    batch = []
            if batch:
                yield batch

    def _send(self, batch: list[SinkRecord]) -> None:
        first, method, body = batch[0], self._config[METHOD].upper(), None
        if first.value is None:
            choice = self._config[ON_NULL].lower()
            if choice == IGNORE:
                return
            if choice == FAIL:
                self._context.report(first, ConnectError("The record has no value"))
                return
            method = "DELETE"
        else:
            body = self._body(batch)
        try:
            headers = {**self._headers, _COORDINATES: coordinates(first)}
            self._requests.request(method, self._url(first), headers, body)
        except Refused as error:
            self._refused(batch, error)

    def _refused(self, batch: list[SinkRecord], error: Refused) -> None:
        choice = self._config[ON_ERROR].lower()
        if choice == FAIL:
            for each in batch:
                self._context.report(each, error)
        elif choice == LOG:
            logger.error("%d records were refused: %s", len(batch), error)

    def _body(self, batch: list[SinkRecord]) -> str:
        config = self._config
        texts = [self._text(each) for each in batch]
        if config[BATCH_SIZE] == 1:
            return f"{config[PREFIX]}{texts[0]}{config[SUFFIX]}"
        if self._is_json and config[JSON_ARRAY]:
            return f"[{','.join(texts)}]"
        return f"{config[PREFIX]}{config[SEPARATOR].join(texts)}{config[SUFFIX]}"

    def _text(self, record: SinkRecord) -> str:
        if self._is_json:
            return self._json.of(record.topic, record.value_schema, record.value)
        value = record.value
        return (
            value.decode("utf-8", "replace")
            if isinstance(value, bytes)
            else to_string(record.value_schema, value)
        )

    def _url(self, record: SinkRecord) -> str:
        url: str = self._config[URL]
        if "${key}" in url:
            url = url.replace("${key}", quote(key_text(record) or "", safe=""))
        return url.replace("${topic}", quote(record.topic, safe=""))

    @property
    def _requests(self) -> Client:
        if self._client is None:
            raise ConnectError("The task has not started")
        return self._client


def _partition(record: SinkRecord) -> TopicPartition:
    return TopicPartition(record.original_topic, record.original_partition)
