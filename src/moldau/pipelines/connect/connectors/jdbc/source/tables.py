"""Which tables of a database a source reads."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from moldau.pipelines.connect.connectors.jdbc.model import TableId
from moldau.pipelines.connect.connectors.jdbc.source import settings as names
from moldau.pipelines.connect.data.errors import ConfigError, ConnectError


class TableFilter:
    """Selects tables by the lists and patterns of a configuration."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._whitelist = set(config[names.WHITELIST])
        self._blacklist = set(config[names.BLACKLIST])
        self._include = _patterns(names.INCLUDE, config[names.INCLUDE])
        self._exclude = _patterns(names.EXCLUDE, config[names.EXCLUDE])
        self._catalog: str | None = config[names.CATALOG_PATTERN]
        self._schema: str | None = config[names.SCHEMA_PATTERN]

    def select(self, tables: Sequence[TableId]) -> list[TableId]:
        """Return the tables to read; `ConnectError` if two would share a topic."""
        selected = [each for each in tables if self._matches(each)]
        by_name: dict[str, TableId] = {}
        for each in selected:
            other = by_name.setdefault(each.table, each)
            if other != each:
                raise ConnectError(
                    f"The tables {other} and {each} have the same name and would share a topic: exclude one, "
                    "or read them with two connectors"
                )
        return selected

    def _matches(self, table: TableId) -> bool:
        if not _like(self._catalog, table.catalog) or not _like(self._schema, table.schema):
            return False
        name = str(table)
        if self._include:
            return any(each.fullmatch(name) for each in self._include) and not any(
                each.fullmatch(name) for each in self._exclude
            )
        if self._whitelist:
            return bool({name, table.table} & self._whitelist)
        return not {name, table.table} & self._blacklist


def _patterns(setting: str, texts: Sequence[str]) -> list[re.Pattern[str]]:
    try:
        return [re.compile(each) for each in texts]
    except re.error as error:
        raise ConfigError.invalid(setting, list(texts), f"not a regular expression: {error}") from error


def _like(pattern: str | None, value: str | None) -> bool:
    """Return whether a name matches a pattern as in LIKE; None matches all, an empty one no name."""
    if pattern is None:
        return True
    expression = "".join({"%": ".*", "_": "."}.get(char, re.escape(char)) for char in pattern)
    return re.fullmatch(expression, value or "") is not None
