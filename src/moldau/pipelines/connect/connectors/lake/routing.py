"""Which tables a record is written to."""

from __future__ import annotations

import re
from collections.abc import Sequence

from moldau.pipelines.connect.connectors.lake.rows.keys import nested
from moldau.pipelines.connect.connectors.lake.rows.values import text
from moldau.pipelines.connect.connectors.lake.settings import (
    DYNAMIC,
    ROUTE_FIELD,
    LakeSettings,
    table_of_topic,
)
from moldau.pipelines.connect.data.records import SinkRecord


class Routing:
    """By default every record goes to all tables of the configuration.

    With a route field its value names the table (dynamic), or selects the tables whose `route-regex` matches
    all of it. A record without it, or without a match, goes nowhere.
    """

    def __init__(self, settings: LakeSettings) -> None:
        self._tables = settings.tables
        self._dynamic: bool = settings[DYNAMIC]
        self._field: str | None = settings[ROUTE_FIELD]
        self._patterns = {
            table: re.compile(found)
            for table in self._tables
            if (found := settings.of_table(table, "route-regex")) is not None
        }

    def tables(self, record: SinkRecord) -> Sequence[str]:
        if self._field is None:
            return [table_of_topic(table, record.topic) for table in self._tables]
        value = nested(record.value, self._field)
        if value is None:
            return ()
        route = text(value)
        if self._dynamic:
            # Iceberg's sink looks names up in lower case, too.
            return [route.lower()]
        return [
            table_of_topic(table, record.topic)
            for table, pattern in self._patterns.items()
            if pattern.fullmatch(route)
        ]
