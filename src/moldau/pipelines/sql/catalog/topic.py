"""Where streams, tables and queries are kept: in a compacted topic of the cluster, `_moldau_sql`.

Everybody who opens the same cluster sees the same. A record's key is the kind and name of a thing, its value
the thing as JSON, or nothing if it was dropped. The topic has one partition, so there is one order. What
somebody else has written there is left out and told.
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
from moldau.pipelines.sql.parse.statements import ColumnDefinition, Window
from moldau.pipelines.sql.parse.types import parse_type

TOPIC = "_moldau_sql"
_VERSION = 1
_TIMEOUT_S = 30
_log = logging.getLogger(__name__)


class CatalogTopic:
    """Reads on where it last stopped, so looking for news costs one request."""

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
        """Read what others have written."""
        end = self._consumer.end_offsets([self._partition])[self._partition]
        while (self._consumer.position(self._partition) or 0) < end:
            for record in self._consumer.poll(1.0):
                try:
                    self._replay(record.key, record.value)
                except (ValueError, KeyError, TypeError, SqlError) as error:
                    _log.warning("A record of %s was not written by Moldau: %s", self._partition, error)

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
                f"{self._partition.topic} was written by a newer Moldau; use that one, or another cluster",
            )
        self.catalog.put(_source(data) if kind == "source" else PersistentQuery(**_tuples(data)))

    def put(self, thing: Source | PersistentQuery) -> None:
        self._write(thing, json.dumps({"version": _VERSION, **_data(thing)}).encode())
        self.catalog.put(thing)

    def remove(self, thing: Source | PersistentQuery) -> None:
        self._write(thing, None)
        self.catalog.remove(thing)

    def _write(self, thing: Source | PersistentQuery, value: bytes | None) -> None:
        key = f"source:{thing.name.upper()}" if isinstance(thing, Source) else f"query:{thing.id.upper()}"
        self._producer.send(self._partition.topic, value, key.encode()).result(_TIMEOUT_S)

    def close(self) -> None:
        self._consumer.close()
        self._producer.close()


def _data(thing: Source | PersistentQuery) -> dict[str, Any]:
    data = asdict(thing)
    if isinstance(thing, Source):
        data["columns"] = [[one.name, str(one.type), one.role, one.header] for one in thing.columns]
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
