"""The search sink: records become documents.

The id of a document is the record's key, or its coordinates. With the key, the offset is the document's
external version, so that a record that is delivered again, or late, never replaces a newer one: each record
counts once.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from moldau.base.ids import TopicPartition
from moldau.pipelines.connect.config.definition import ConfigDef, ConfigValue
from moldau.pipelines.connect.connectors.documents import coordinates, key_text
from moldau.pipelines.connect.connectors.http.client import Refused, Unavailable
from moldau.pipelines.connect.connectors.search import settings as names
from moldau.pipelines.connect.connectors.search.cluster import ItemResult, SearchCluster
from moldau.pipelines.connect.connectors.search.mapping import document_text, properties_of
from moldau.pipelines.connect.data.errors import ConnectError, DataError
from moldau.pipelines.connect.data.records import SinkRecord
from moldau.pipelines.connect.data.schema import Schema, Type
from moldau.pipelines.connect.sdk import SinkConnector, SinkContext, SinkTask

logger = logging.getLogger(__name__)

_CONFLICT: Final = 409
_MAX_BACKOFF_S: Final = 30.0


class ElasticsearchSinkConnector(SinkConnector):
    config = names.search_config()

    def task_configs(self, max_tasks: int) -> list[Mapping[str, str]]:
        return [self.properties] * max_tasks

    def validate(self, properties: Mapping[str, str]) -> dict[str, ConfigValue]:
        values = super().validate(properties)
        names.check_search(values)
        return values

    def task(self) -> SinkTask:
        return SearchSinkTask(self.config)

    def alter_offsets(
        self, properties: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]
    ) -> bool:
        return True


class OpensearchSinkConnector(ElasticsearchSinkConnector):
    """The same under the name of Aiven's connector."""


class _Action(NamedTuple):
    record: SinkRecord
    text: str
    index_name: str


class SearchSinkTask(SinkTask):
    def __init__(self, definition: ConfigDef) -> None:
        self._definition = definition
        self._cluster: SearchCluster | None = None
        #: Indexes that exist, with the schemas whose mapping they have.
        self._mapped: dict[str, set[Schema | None]] = {}

    def start(self, context: SinkContext) -> None:
        self._config = config = self._definition.parse(context.config)
        self._context = context
        self._cluster = SearchCluster(config)
        self._indexes = dict(each.split(":", 1) for each in config[names.RESOURCES])
        self._compact: bool = config[names.COMPACT_MAPS]
        self._stream_type: str = config[names.DATA_STREAM_TYPE].lower()

    def put(self, records: Sequence[SinkRecord]) -> None:
        try:
            for batch in self._batches(self._actions(records)):
                self._write(batch)
        except Unavailable as error:
            self._context.retry_after(max(1000, self._config[names.BACKOFF]))
            raise Unavailable(str(error)) from error

    def stop(self) -> None:
        if self._cluster is not None:
            self._cluster.close()

    # Records as actions.

    def _actions(self, records: Sequence[SinkRecord]) -> Iterator[_Action]:
        for record in records:
            try:
                text = self._text(record)
            except DataError as error:
                self._context.report(record, error)
                continue
            if text is not None:
                yield _Action(record, text, self._index(record.topic))

    def _text(self, record: SinkRecord) -> str | None:
        """Return the lines of a bulk request; None for a record that is ignored."""
        config, topic = self._config, record.topic
        target: dict[str, Any] = {"_index": self._index(topic)}
        ignores_key = config[names.KEY_IGNORE] or topic in config[names.TOPIC_KEY_IGNORE]
        is_stream = self._stream_type != "none"
        if ignores_key:
            target["_id"] = coordinates(record)
        else:
            key = key_text(record)
            if key is None:
                raise DataError("The record has no key to be the document's id: set key.ignore=true")
            target["_id"] = key
        is_update = config[names.WRITE_METHOD].lower() == names.UPSERT
        if not ignores_key and not is_update and not is_stream:
            target |= {"version": record.original_offset, "version_type": "external"}
        if record.value is None:
            return self._deletion(record, target, ignores_key=ignores_key or is_stream)
        self._prepare(record)
        document = self._document(record, is_stream=is_stream)
        if is_update:
            return f'{_line(update=target)}{{"doc":{document},"doc_as_upsert":true}}\n'
        if is_stream:
            return f"{_line(create=target)}{document}\n"
        return f"{_line(index=target)}{document}\n"

    def _deletion(self, record: SinkRecord, target: dict[str, Any], *, ignores_key: bool) -> str | None:
        choice = self._config[names.ON_NULL].lower()
        if choice == names.DELETE and not ignores_key:
            return _line(delete=target)
        if choice == names.FAIL:
            raise DataError("The record has no value: set behavior.on.null.values to delete or ignore")
        return None

    def _document(self, record: SinkRecord, *, is_stream: bool) -> str:
        text = document_text(record.value_schema, record.value, compact=self._compact)
        if not is_stream:
            return text
        found = json.loads(text)
        fields = self._config[names.DATA_STREAM_TIMESTAMP]
        stamps = [found[each] for each in fields if found.get(each) is not None]
        found.setdefault("@timestamp", stamps[0] if stamps else record.timestamp)
        return json.dumps(found, ensure_ascii=False, separators=(",", ":"))

    def _index(self, topic: str) -> str:
        if self._stream_type != "none":
            parts = (self._config[names.DATA_STREAM_DATASET], self._config[names.DATA_STREAM_NAMESPACE])
            dataset, namespace = (each.replace("${topic}", topic).lower().replace("-", "_") for each in parts)
            return f"{self._stream_type}-{dataset}-{namespace}"
        return self._indexes.get(topic) or _index_name(topic)

    def _prepare(self, record: SinkRecord) -> None:
        """Create the index and its mapping before the first document of a schema."""
        index, schema = self._index(record.topic), record.value_schema
        done = self._mapped.setdefault(index, set())
        ignored = self._config[names.SCHEMA_IGNORE] or record.topic in self._config[names.TOPIC_SCHEMA_IGNORE]
        key = None if ignored or self._stream_type != "none" else schema
        if key in done:
            return
        if len(done) >= 1000:
            done.clear()
        if self._stream_type == "none":
            self._open.ensure_index(index)
            if key is not None and key.type is Type.STRUCT:
                self._open.put_mapping(index, properties_of(key, compact=self._compact))
        done.add(key)

    # Bulk requests.

    def _batches(self, actions: Iterator[_Action]) -> Iterator[list[_Action]]:
        batch: list[_Action] = []
        size = 0
        for action in actions:
            batch.append(action)
            size += len(action.text)
            if len(batch) >= self._config[names.BATCH_SIZE] or size >= self._config[names.BATCH_BYTES]:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch

    def _write(self, batch: list[_Action]) -> None:
        """Write a batch; what the cluster is too busy for is repeated, in order."""
        failures = 0
        while batch:
            try:
                results = self._open.bulk([each.text for each in batch])
                left = self._left(batch, results)
            except Unavailable:
                left = batch
                if failures >= self._config[names.MAX_RETRIES]:
                    raise
            if left:
                if failures >= self._config[names.MAX_RETRIES]:
                    raise Unavailable(f"The cluster is too busy for {len(left)} documents")
                pause_s = min(self._config[names.BACKOFF] / 1000 * 2 ** min(failures, 20), _MAX_BACKOFF_S)
                failures += 1
                if self._context.wait(pause_s):
                    raise Unavailable("The task stops")
            batch = left

    def _left(self, batch: list[_Action], results: list[ItemResult]) -> list[_Action]:
        """Handle refused documents; return the first document that was not taken and those after it."""
        for position, (action, result) in enumerate(zip(batch, results, strict=True)):
            if result.is_busy:
                return batch[position:]
            is_gone = result.status == 404 and not result.kind
            if result.status >= 400 and result.status != _CONFLICT and not is_gone:
                self._refused(action, result)
        return []

    def _refused(self, action: _Action, result: ItemResult) -> None:
        if result.kind == "index_not_found_exception":
            self._mapped.pop(action.index_name, None)
        error = Refused(f"The document was refused with {result.status}, {result.kind}: {result.reason}")
        choice = self._config[names.ON_MALFORMED].lower()
        if choice == names.FAIL:
            self._context.report(action.record, error)
        elif choice == names.WARN:
            logger.warning("A document of %s was refused: %s", coordinates(action.record), error)

    @property
    def _open(self) -> SearchCluster:
        if self._cluster is None:
            raise ConnectError("The task has not started")
        return self._cluster


def _line(**action: Any) -> str:
    return json.dumps(action, ensure_ascii=False, separators=(",", ":")) + "\n"


def _index_name(topic: str) -> str:
    """Return a valid name: lower-case, without a leading - or _."""
    return topic.lower().lstrip("-_+") or "topic"
