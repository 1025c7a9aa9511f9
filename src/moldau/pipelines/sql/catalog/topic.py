"""The catalog topic: a compacted topic of the cluster, `_moldau_sql`, that all engines share.

The key of a record is the kind and name of a definition, the value is the definition as JSON, or a tombstone
if it was dropped. The topic has one partition, so that definitions have one order. Records in another format
are ignored with a warning.
"""

from __future__ import annotations

import json
import logging
from dataclasses import asdict
from typing import Any

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client import AdminClient, Consumer, NewTopic, Producer, TopicPartition
from moldau.pipelines.sql.catalog.catalog import Catalog, PersistentQuery, Source
from moldau.pipelines.sql.errors import SqlError
from moldau.pipelines.sql.parse.create import parse_type
from moldau.pipelines.sql.parse.statements import ColumnDefinition, Window

TOPIC = "_moldau_sql"
_VERSION = 1
_TIMEOUT_S = 30

logger = logging.getLogger(__name__)


class CatalogTopic:
    """Reads and writes the catalog topic. A refresh without new records costs one request."""

    def __init__(self, config: dict[str, Any], admin: AdminClient, topic: str = TOPIC) -> None:
        self.catalog = Catalog()
        self.topic = topic
        self._partition = TopicPartition(topic, 0)
        self._create(admin)
        self._consumer: Consumer[bytes, bytes] = Consumer({**config, "auto.offset.reset": "earliest"})
        self._consumer.assign([self._partition])
        self._consumer.seek_to_beginning()
        self._producer: Producer[bytes, bytes] = Producer({**config, "acks": "all"})

    def _create(self, admin: AdminClient) -> None:
        topic = NewTopic(self._partition.topic, 1, configs={"cleanup.policy": "compact"})
        error = admin.create_topics([topic])[topic.name]
        if error is not None and error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise error

    def refresh(self) -> None:
        """Read new records."""
        end = self._consumer.end_offsets([self._partition])[self._partition]
        while (self._consumer.position(self._partition) or 0) < end:
            for record in self._consumer.poll(1.0):
                try:
                    self._replay(record.key, record.value)
                except (ValueError, KeyError, TypeError, SqlError) as error:
                    logger.warning("Ignoring an invalid record of the catalog %s: %s", self._partition, error)

    def _replay(self, key: bytes | None, value: bytes | None) -> None:
        kind, _, name = (key or b"").decode().partition(":")
        if kind == "source":
            known: Source | PersistentQuery | None = self.catalog.get(name)
        else:
            known = self.catalog.query(name)
        if value is None:
            if known is not None:
                self.catalog.remove(known)
            return
        data = json.loads(value)
        if data.pop("version") > _VERSION:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"{self._partition.topic} was written by a newer version of Moldau: upgrade Moldau, or use "
                "another cluster",
            )
        self.catalog.put(_source(data) if kind == "source" else PersistentQuery(**_tuples(data)))

    def put(self, definition: Source | PersistentQuery) -> None:
        self._write(definition, json.dumps({"version": _VERSION, **_data(definition)}).encode())
        self.catalog.put(definition)

    def remove(self, definition: Source | PersistentQuery) -> None:
        self._write(definition, None)
        self.catalog.remove(definition)

    def _write(self, definition: Source | PersistentQuery, value: bytes | None) -> None:
        if isinstance(definition, Source):
            key = f"source:{definition.name.upper()}"
        else:
            key = f"query:{definition.id.upper()}"
        self._producer.send(self._partition.topic, value, key.encode()).result(_TIMEOUT_S)

    def close(self) -> None:
        self._consumer.close()
        self._producer.close()


def _data(definition: Source | PersistentQuery) -> dict[str, Any]:
    data = asdict(definition)
    if isinstance(definition, Source):
        data["columns"] = [[one.name, str(one.type), one.role, one.header] for one in definition.columns]
    return data


def _source(data: dict[str, Any]) -> Source:
    columns = tuple(
        ColumnDefinition(name, parse_type(kind), role, header)
        for name, kind, role, header in data.pop("columns")
    )
    window = data.pop("window")
    return Source(**data, columns=columns, window=None if window is None else Window(**window))


def _tuples(data: dict[str, Any]) -> dict[str, Any]:
    return {**data, "sources": tuple(data["sources"])}
