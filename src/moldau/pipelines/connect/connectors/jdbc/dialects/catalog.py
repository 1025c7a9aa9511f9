"""The dialect of a connector: by `dialect.name`, or by its URL."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from moldau.pipelines.connect.connectors.jdbc.dialects.interface import Dialect
from moldau.pipelines.connect.data.errors import ConfigError

_DIALECTS: Final = {
    "PostgreSqlDatabaseDialect": "postgresql:PostgreSqlDialect",
    "MySqlDatabaseDialect": "mysql:MySqlDialect",
    "SqliteDatabaseDialect": "sqlite:SqliteDialect",
}
_BY_KIND: Final = {
    "postgresql": "PostgreSqlDatabaseDialect",
    "mysql": "MySqlDatabaseDialect",
    "mariadb": "MySqlDatabaseDialect",
    "sqlite": "SqliteDatabaseDialect",
}
DIALECT_NAMES: Final = ("", *_DIALECTS)


def create_dialect(kind: str, name: str = "", **properties: Any) -> Dialect:
    """Return the dialect for the kind of a URL; its driver is imported when it connects."""
    module, _, attribute = _DIALECTS[name or _BY_KIND[kind]].partition(":")
    found = getattr(import_module(f"{__package__}.{module}"), attribute)
    dialect: Dialect = found(**properties)
    return dialect


def time_zone(setting: str, name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise ConfigError.invalid(setting, name, "Invalid time zone identifier") from None
